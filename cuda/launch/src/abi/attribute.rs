// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of attributes of devices, functions, launches and the compiler.

/// `CUdevice_attribute`.
pub mod device {
    /// Threads of a block.
    pub const MAX_THREADS_PER_BLOCK: i32 = 1;
    /// Threads of a block in x; y and z follow.
    pub const MAX_BLOCK_DIM_X: i32 = 2;
    /// Blocks of a grid in x; y and z follow.
    pub const MAX_GRID_DIM_X: i32 = 5;
    /// Bytes of the second-level cache.
    pub const L2_CACHE_SIZE: i32 = 38;
    /// Compute capability, major.
    pub const CAPABILITY_MAJOR: i32 = 75;
    /// Compute capability, minor.
    pub const CAPABILITY_MINOR: i32 = 76;
    /// Bytes of shared memory of a block, if its function asks for them.
    pub const MAX_SHARED_MEMORY_OPTIN: i32 = 97;
}

/// `CUfunction_attribute`.
pub mod function {
    /// Threads of a block, given registers and launch bounds.
    pub const MAX_THREADS_PER_BLOCK: i32 = 0;
    /// Static shared memory in bytes.
    pub const SHARED_SIZE_BYTES: i32 = 1;
    /// Registers of a thread.
    pub const NUM_REGS: i32 = 4;
    /// Largest dynamic shared memory in bytes; can be set.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: i32 = 8;
    /// Shared memory's part, in percent, of what it shares with the first-level cache; can be set.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: i32 = 9;
}

/// `CUlaunchAttributeID`.
pub mod launch {
    /// All blocks run at once.
    pub const COOPERATIVE: u8 = 2;
    /// Blocks of a cluster.
    pub const CLUSTER_DIMENSION: u8 = 4;
    /// Scheduling of clusters.
    pub const CLUSTER_SCHEDULING_POLICY: u8 = 5;
    /// An event that the launch records.
    pub const PROGRAMMATIC_EVENT: u8 = 7;
    /// An event recorded when the launch's blocks have begun.
    pub const COMPLETION_EVENT: u8 = 12;
    /// Preferred carve-out of shared memory.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: u8 = 14;
    /// How a kernel runs, not how it waits for others: a replay keeps them.
    pub const KEPT: [u8; 4] = [
        COOPERATIVE,
        CLUSTER_DIMENSION,
        CLUSTER_SCHEDULING_POLICY,
        PREFERRED_SHARED_MEMORY_CARVEOUT,
    ];
}

/// `CUjit_option`.
pub mod jit {
    /// Registers of a thread, at most.
    pub const MAX_REGISTERS: i32 = 0;
    /// Buffer for error texts.
    pub const ERROR_LOG_BUFFER: i32 = 5;
    /// Its size in bytes.
    pub const ERROR_LOG_BUFFER_SIZE_BYTES: i32 = 6;
    /// 0 to 4.
    pub const OPTIMIZATION_LEVEL: i32 = 7;
    /// Blocks per multiprocessor, at least.
    pub const MIN_CTA_PER_SM: i32 = 31;
    /// Threads of a block, at most.
    pub const MAX_THREADS_PER_BLOCK: i32 = 32;
    /// 1: options overrule the PTX.
    pub const OVERRIDE_DIRECTIVE_VALUES: i32 = 33;
}

/// Flags of `cuMemHostAlloc` and `cuMemHostRegister`.
pub mod host {
    /// All contexts may use the memory.
    pub const PORTABLE: u32 = 1;
    /// The device sees the memory.
    pub const DEVICE_MAP: u32 = 2;
}

/// `CUpointer_attribute`.
pub mod pointer {
    /// Ordinal of the memory's device, an `i32`.
    pub const DEVICE_ORDINAL: i32 = 9;
}

/// `CUlimit`.
pub mod limit {
    /// Bytes of a thread's stack.
    pub const STACK_SIZE: i32 = 0;
    /// Bytes of the kernels' `printf` buffer.
    pub const PRINTF_FIFO_SIZE: i32 = 1;
    /// Bytes of the kernels' `malloc` heap.
    pub const MALLOC_HEAP_SIZE: i32 = 2;
    /// Limits that a replay sets, since kernels depend on them; by number.
    pub const KEPT: [i32; 3] = [STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE];
}

/// `CUgraphNodeType`.
pub mod node {
    /// A kernel.
    pub const KERNEL: i32 = 0;
    /// A copy.
    pub const MEMCPY: i32 = 1;
    /// A memset.
    pub const MEMSET: i32 = 2;
    /// A function of the host.
    pub const HOST: i32 = 3;
    /// A graph inside the graph.
    pub const GRAPH: i32 = 4;
    /// Only orders others.
    pub const EMPTY: i32 = 5;

    /// Decides which of its graphs run, and how often.
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
    /// The default stream of all threads, `CU_STREAM_LEGACY`.
    pub const LEGACY: u64 = 1;
    /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads do not disturb it.
    pub const CAPTURE_OF_THREAD: i32 = 1;
    /// The thread's default stream, `CU_STREAM_PER_THREAD`.
    pub const PER_THREAD: u64 = 2;
    /// `CU_STREAM_NON_BLOCKING`: does not wait for the default stream.
    pub const NON_BLOCKING: u32 = 1;
}
