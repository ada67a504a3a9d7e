// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribute numbers.

/// Values of `CUdevice_attribute`.
pub mod device {
    /// Threads of a block.
    pub const MAX_THREADS_PER_BLOCK: i32 = 1;
    /// Threads of a block in x; y and z follow.
    pub const MAX_BLOCK_DIM_X: i32 = 2;
    /// Blocks of a grid in x; y and z follow.
    pub const MAX_GRID_DIM_X: i32 = 5;
    /// In bytes.
    pub const L2_CACHE_SIZE: i32 = 38;
    /// Compute capability, major.
    pub const CAPABILITY_MAJOR: i32 = 75;
    /// Compute capability, minor.
    pub const CAPABILITY_MINOR: i32 = 76;
    /// Bytes of a block's shared memory, for functions that ask.
    pub const MAX_SHARED_MEMORY_OPTIN: i32 = 97;
}

/// Values of `CUfunction_attribute`.
pub mod function {
    /// By registers and launch bounds.
    pub const MAX_THREADS_PER_BLOCK: i32 = 0;
    /// Static, in bytes.
    pub const SHARED_SIZE_BYTES: i32 = 1;
    /// Per thread.
    pub const NUM_REGS: i32 = 4;
    /// Dynamic, in bytes; can be set.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: i32 = 8;
    /// Shared memory's percentage of what the first-level cache shares; can be set.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: i32 = 9;
}

/// Values of `CUlaunchAttributeID`.
pub mod launch {
    /// All blocks run at once.
    pub const COOPERATIVE: u8 = 2;
    /// Blocks of a cluster.
    pub const CLUSTER_DIMENSION: u8 = 4;
    /// Scheduling of clusters.
    pub const CLUSTER_SCHEDULING_POLICY: u8 = 5;
    /// Recorded by the launch.
    pub const PROGRAMMATIC_EVENT: u8 = 7;
    /// Recorded when the blocks have begun.
    pub const COMPLETION_EVENT: u8 = 12;
    /// Of shared memory.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: u8 = 14;
    /// A replay keeps what does not make a kernel wait for others.
    pub const KEPT: [u8; 4] = [
        COOPERATIVE,
        CLUSTER_DIMENSION,
        CLUSTER_SCHEDULING_POLICY,
        PREFERRED_SHARED_MEMORY_CARVEOUT,
    ];
}

/// Values of `CUjit_option`.
pub mod jit {
    /// Per thread.
    pub const MAX_REGISTERS: i32 = 0;
    /// Buffer for error texts.
    pub const ERROR_LOG_BUFFER: i32 = 5;
    /// Its size in bytes.
    pub const ERROR_LOG_BUFFER_SIZE_BYTES: i32 = 6;
    /// 0 to 4.
    pub const OPTIMIZATION_LEVEL: i32 = 7;
    /// Blocks per multiprocessor.
    pub const MIN_CTA_PER_SM: i32 = 31;
    /// Threads of a block, at most.
    pub const MAX_THREADS_PER_BLOCK: i32 = 32;
    /// 1: options overrule the PTX.
    pub const OVERRIDE_DIRECTIVE_VALUES: i32 = 33;
}

/// Flags of `cuMemHostAlloc` and `cuMemHostRegister`.
pub mod host {
    /// For all contexts.
    pub const PORTABLE: u32 = 1;
    /// The device sees the memory.
    pub const DEVICE_MAP: u32 = 2;
}

/// Values of `CUpointer_attribute`.
pub mod pointer {
    /// Of the memory, an `i32`.
    pub const DEVICE_ORDINAL: i32 = 9;
}

/// Values of `CUlimit`.
pub mod limit {
    /// Bytes per thread.
    pub const STACK_SIZE: i32 = 0;
    /// Bytes, for kernels.
    pub const PRINTF_FIFO_SIZE: i32 = 1;
    /// Bytes, for kernels.
    pub const MALLOC_HEAP_SIZE: i32 = 2;
    /// A replay sets these, since kernels depend on them; by number.
    pub const KEPT: [i32; 3] = [STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE];
}

/// Values of `CUgraphNodeType`.
pub mod node {
    /// A kernel.
    pub const KERNEL: i32 = 0;
    /// A copy.
    pub const MEMCPY: i32 = 1;
    /// A memset.
    pub const MEMSET: i32 = 2;
    /// A host function.
    pub const HOST: i32 = 3;
    /// A graph inside.
    pub const GRAPH: i32 = 4;
    /// Only orders others.
    pub const EMPTY: i32 = 5;

    /// Decides which graphs run, and how often.
    pub const CONDITIONAL: i32 = 13;

    /// What any other node does.
    #[must_use]
    pub const fn name(kind: i32) -> &'static str {
        match kind {
            6 => "waits for an event",
            7 => "records an event",
            8 | 9 => "uses a semaphore",
            10 | 11 => "allocates or frees memory",
            12 => "waits for or writes a word of memory",
            CONDITIONAL => "decides what runs",
            _ => "is of a kind that is not known",
        }
    }
}

/// Streams with names of their own.
pub mod stream {
    /// All threads' default stream, `CU_STREAM_LEGACY`.
    pub const LEGACY: u64 = 1;
    /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: undisturbed by other threads.
    pub const CAPTURE_OF_THREAD: i32 = 1;
    /// The thread's default stream, `CU_STREAM_PER_THREAD`.
    pub const PER_THREAD: u64 = 2;
    /// `CU_STREAM_NON_BLOCKING`, against the default stream.
    pub const NON_BLOCKING: u32 = 1;
}
