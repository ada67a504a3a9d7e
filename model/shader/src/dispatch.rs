// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compute job asks of the shader cores.

pub use mali_facts::Architecture;
use mali_isa::Product;

use crate::ir::Isa;

/// The cores that work on a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Ids of the cores, as bits; 0: work is not placed on cores.
    pub usable: u64,
    /// Order of work groups and their cores; hardware promises neither. 0: in order, to the cores in turn.
    pub seed: u64,
}

/// Storage per thread (stack, spilled registers), from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// Address of the first thread's storage; 0: none.
    pub base: u64,
    /// Bytes per thread: 16 << size code.
    pub bytes_per_thread: u32,
    /// Threads per core; the cores' storage is consecutive.
    pub threads: u32,
}

/// Storage of work groups, from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupStorage {
    /// Address of the first instance; 0: none.
    pub base: u64,
    /// Bytes per instance.
    pub bytes: u32,
    /// Instances per core; the cores' storage is consecutive.
    pub instances: u32,
}

/// What becomes of subnormal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnormals {
    /// They are kept.
    #[default]
    Kept,
    /// Single-precision ones become zeros of their sign.
    SinglesFlushed,
    /// All are.
    Flushed,
}

/// One compute dispatch. Addresses are virtual GPU addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Generation of the GPU.
    pub architecture: Architecture,
    /// Only this product's instructions execute; `None`, and on Valhall: all known ones.
    pub product: Option<Product>,
    /// Subnormal numbers on Valhall; on Bifrost, each clause says it.
    pub subnormals: Subnormals,
    /// Cores that work.
    pub cores: Cores,
    /// Address of the first clause, a multiple of 16; on Valhall of the first word, a multiple of 8.
    pub shader: u64,
    /// Threads in x, y, z; each at least 1.
    pub workgroup_size: [u32; 3],
    /// Work groups in x, y, z; each at least 1.
    pub workgroup_count: [u32; 3],
    /// Address of the push uniforms: 64-bit slots that instructions read.
    pub push_uniforms: u64,
    /// 64-bit slots, 0 to 127.
    pub push_uniform_count: u32,
    /// Address of the uniform buffer table, 8 bytes each.
    pub uniform_buffers: u64,
    /// Entries of that table.
    pub uniform_buffer_count: u32,
    /// Address of attribute descriptors, 8 bytes each.
    pub attributes: u64,
    /// Attributes.
    pub attribute_count: u32,
    /// Address of attribute buffer descriptors, 16 bytes each.
    pub attribute_buffers: u64,
    /// Address of the texture descriptors.
    pub textures: u64,
    /// Textures.
    pub texture_count: u32,
    /// Address of sampler descriptors, 32 bytes each.
    pub samplers: u64,
    /// Samplers.
    pub sampler_count: u32,
    /// Address of resource tables, 16 bytes each; Valhall has buffers, textures and samplers there.
    pub resources: u64,
    /// Resource tables.
    pub resource_count: u32,
    /// Storage of threads.
    pub thread_storage: ThreadStorage,
    /// Storage of work groups.
    pub workgroup_storage: WorkgroupStorage,
}

impl Dispatch {
    pub(crate) fn isa(&self) -> Isa {
        match self.architecture.has_clauses() {
            true => Isa::Bifrost(self.product),
            false => Isa::Valhall(self.subnormals),
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
