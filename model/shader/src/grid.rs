// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dispatch's threads and their storage.

/// A dispatch's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Core ids, as bits; 0: work is not placed.
    pub usable: u64,
    /// For order and cores of work groups, neither promised by hardware. 0: in order, cores in turn.
    pub seed: u64,
}

/// Storage per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// The first thread's address; 0: none.
    pub base: u64,
    /// Bytes per thread.
    pub bytes_per_thread: u32,
    /// Threads per core; cores follow one another.
    pub threads: u32,
}

/// Storage of work groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupStorage {
    /// The first instance's address; 0: none.
    pub base: u64,
    /// Bytes per instance.
    pub bytes: u32,
    /// Instances per core; cores follow one another.
    pub instances: u32,
}

/// Work groups of threads that execute a shader. Addresses are virtual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Cores that work.
    pub cores: Cores,
    /// The first instruction; 0: none, and nothing happens.
    pub shader: u64,
    /// Threads in x, y, z; each at least 1.
    pub workgroup_size: [u32; 3],
    /// Work groups in x, y, z; each at least 1.
    pub workgroup_count: [u32; 3],
    /// Their address.
    pub push_uniforms: u64,
    /// 64-bit slots, 0 to 127.
    pub push_uniform_count: u32,
    /// Of threads.
    pub thread_storage: ThreadStorage,
    /// Of work groups.
    pub workgroup_storage: WorkgroupStorage,
}

impl Grid {
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
