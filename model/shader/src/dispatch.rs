// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compute job asks of the shader cores.

pub use mali_facts::Architecture;
use mali_isa::Product;

use crate::ir::Isa;

/// The shader cores that work on a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Ids of the cores that may work, as bits; 0: what runs is not placed on cores.
    pub usable: u64,
    /// Order in which work groups start, and the core that each of them gets; hardware promises neither. 0: in their order, to the cores
    /// in turn.
    pub seed: u64,
}

/// Storage of each thread (stack, spilled registers), from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// Address of the first thread's storage; 0 when there is none.
    pub base: u64,
    /// Bytes that each thread owns: 16 << size code.
    pub bytes_per_thread: u32,
    /// How many threads of a core it is for; the storage of one core's threads follows that of the core before.
    pub threads: u32,
}

/// Storage that the threads of a work group share, from the Local Storage descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupStorage {
    /// Address of the first instance; 0 when there is none.
    pub base: u64,
    /// Bytes of an instance.
    pub bytes: u32,
    /// How many instances of a core it is for; the storage of one core follows that of the core before.
    pub instances: u32,
}

/// What becomes of numbers that are too small to be normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnormals {
    /// They are kept.
    #[default]
    Kept,
    /// Single-precision ones are zeros of their sign.
    SinglesFlushed,
    /// All are.
    Flushed,
}

/// One compute dispatch. Addresses are virtual addresses of the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Generation of the GPU.
    pub architecture: Architecture,
    /// The product, whose instructions alone are executed; `None`: all that are known, and so for Valhall.
    pub product: Option<Product>,
    /// What becomes of subnormal numbers, on Valhall; on Bifrost, each clause says it.
    pub subnormals: Subnormals,
    /// Cores that work.
    pub cores: Cores,
    /// Address of the first clause, a multiple of 16; or of the first word of Valhall, a multiple of 8.
    pub shader: u64,
    /// Threads of a work group in x, y, z; each at least 1.
    pub workgroup_size: [u32; 3],
    /// Work groups in x, y, z; each at least 1.
    pub workgroup_count: [u32; 3],
    /// Address of the push uniforms: 64-bit slots that instructions read directly.
    pub push_uniforms: u64,
    /// How many 64-bit slots there are, 0 to 127.
    pub push_uniform_count: u32,
    /// Address of the uniform buffer table: 8 bytes each.
    pub uniform_buffers: u64,
    /// Entries of the uniform buffer table.
    pub uniform_buffer_count: u32,
    /// Address of the attribute descriptors: 8 bytes each.
    pub attributes: u64,
    /// How many attributes there are.
    pub attribute_count: u32,
    /// Address of the attribute buffer descriptors: records of 16 bytes.
    pub attribute_buffers: u64,
    /// Address of the texture descriptors.
    pub textures: u64,
    /// How many textures there are.
    pub texture_count: u32,
    /// Address of the sampler descriptors: 32 bytes each.
    pub samplers: u64,
    /// How many samplers there are.
    pub sampler_count: u32,
    /// Address of the list of resource tables: 16 bytes each. Valhall has all buffers, textures and samplers there.
    pub resources: u64,
    /// How many resource tables there are.
    pub resource_count: u32,
    /// Storage of threads.
    pub thread_storage: ThreadStorage,
    /// Storage of work groups.
    pub workgroup_storage: WorkgroupStorage,
}

impl Dispatch {
    /// The instructions that its shader has.
    pub(crate) fn isa(&self) -> Isa {
        match self.architecture.has_clauses() {
            true => Isa::Bifrost(self.product),
            false => Isa::Valhall(self.subnormals),
        }
    }

    /// Threads of a work group, or `None` when the product overflows.
    pub fn workgroup_threads(&self) -> Option<u32> {
        let [x, y, z] = self.workgroup_size;
        x.checked_mul(y)?.checked_mul(z)
    }

    /// Work groups of the dispatch; at most 2^96, so a wide number.
    pub fn workgroups(&self) -> u128 {
        self.workgroup_count
            .iter()
            .map(|&count| u128::from(count))
            .product()
    }
}
