// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compute job asks of the shader cores.

use std::sync::Arc;

pub use mali_facts::Architecture;
use mali_isa::Product;

use crate::ir::Translate;
use crate::mali::bifrost::Bifrost;
use crate::mali::valhall::Valhall;

/// The cores that work on a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Core ids, as bits; 0: work is not placed.
    pub usable: u64,
    /// For order and cores of work groups, neither promised by hardware. 0: in order, cores in turn.
    pub seed: u64,
}

/// Storage per thread, from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// The first thread's address; 0: none.
    pub base: u64,
    /// Bytes per thread: 16 << size code.
    pub bytes_per_thread: u32,
    /// Threads per core; cores follow one another.
    pub threads: u32,
}

/// Storage of work groups, from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupStorage {
    /// The first instance's address; 0: none.
    pub base: u64,
    /// Bytes per instance.
    pub bytes: u32,
    /// Instances per core; cores follow one another.
    pub instances: u32,
}

/// What becomes of subnormal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnormals {
    /// They are kept.
    #[default]
    Kept,
    /// Singles become zeros of their sign.
    SinglesFlushed,
    /// All are.
    Flushed,
}

/// A compute dispatch. Addresses are virtual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Generation of the GPU.
    pub architecture: Architecture,
    /// Executes only its instructions; `None`, and on Valhall: all known.
    pub product: Option<Product>,
    /// On Valhall; Bifrost's clauses say it.
    pub subnormals: Subnormals,
    /// Cores that work.
    pub cores: Cores,
    /// First clause, a multiple of 16; on Valhall first word, a multiple of 8.
    pub shader: u64,
    /// Threads in x, y, z; each at least 1.
    pub workgroup_size: [u32; 3],
    /// Work groups in x, y, z; each at least 1.
    pub workgroup_count: [u32; 3],
    /// Address of the push uniforms: 64-bit slots.
    pub push_uniforms: u64,
    /// 64-bit slots, 0 to 127.
    pub push_uniform_count: u32,
    /// Table's address, 8 bytes each.
    pub uniform_buffers: u64,
    /// Entries of the table.
    pub uniform_buffer_count: u32,
    /// Descriptors' address, 8 bytes each.
    pub attributes: u64,
    /// Attributes.
    pub attribute_count: u32,
    /// Descriptors' address, 16 bytes each.
    pub attribute_buffers: u64,
    /// Address of the texture descriptors.
    pub textures: u64,
    /// Textures.
    pub texture_count: u32,
    /// Descriptors' address, 32 bytes each.
    pub samplers: u64,
    /// Samplers.
    pub sampler_count: u32,
    /// Tables' address, 16 bytes each; on Valhall for buffers, textures and samplers.
    pub resources: u64,
    /// Resource tables.
    pub resource_count: u32,
    /// Storage of threads.
    pub thread_storage: ThreadStorage,
    /// Storage of work groups.
    pub workgroup_storage: WorkgroupStorage,
}

impl Dispatch {
    pub(crate) fn isa(&self) -> Arc<dyn Translate> {
        match self.architecture.has_clauses() {
            true => Arc::new(Bifrost(self.product)),
            false => Arc::new(Valhall(self.subnormals)),
        }
    }

    /// Threads of a work group; `None` on overflow.
    pub fn workgroup_threads(&self) -> Option<u32> {
        let [x, y, z] = self.workgroup_size;
        x.checked_mul(y)?.checked_mul(z)
    }

    /// Work groups; at most 2^96.
    pub fn workgroups(&self) -> u128 {
        self.workgroup_count
            .iter()
            .map(|&count| u128::from(count))
            .product()
    }
}
