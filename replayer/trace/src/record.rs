// SPDX-License-Identifier: MIT OR Apache-2.0
//! One decoded record.

use core::fmt;

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($(#[$item_meta:meta])* $item:ident = $value:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$item_meta])* $item = $value,)+ }
        impl $name {
            /// `None` for an unknown number.
            pub const fn from_code(code: $repr) -> Option<Self> {
                match code { $($value => Some(Self::$item),)+ _ => None }
            }
            /// Number in the stream.
            pub const fn code(self) -> $repr { self as $repr }
            /// Name that dumps use.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$item => $text,)+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.name()) }
        }
    };
}

numbered! {
    /// What a record tells.
    RecordType: u16 {
        /// First record.
        Begin = 1, "BEGIN";
        /// A register was read.
        RegRead = 2, "REG_READ";
        /// A register is about to be written.
        RegWrite = 3, "REG_WRITE";
        /// Polling starts.
        PollBegin = 4, "POLL_BEGIN";
        /// Polling stopped.
        PollEnd = 5, "POLL_END";
        /// Interrupt handler starts.
        IrqEnter = 6, "IRQ_ENTER";
        /// Interrupt handler ends.
        IrqExit = 7, "IRQ_EXIT";
        /// The driver says that it mapped memory.
        Map = 8, "MAP";
        /// The driver says that it unmapped memory.
        Unmap = 9, "UNMAP";
        /// Work is about to start.
        Submit = 10, "SUBMIT";
        /// A run of mapped pages.
        Region = 11, "REGION";
        /// A changed page.
        Page = 12, "PAGE";
        /// A job chain ended.
        Complete = 13, "COMPLETE";
        /// Remark.
        Note = 14, "NOTE";
        /// The trace is not complete.
        Error = 15, "ERROR";
        /// Last record.
        End = 16, "END";
    }
}

numbered! {
    /// Where the driver was.
    Context: u8 {
        /// Process.
        Process = 0, "process";
        /// Interrupt thread.
        ThreadedIrq = 1, "irq-thread";
        /// Hard interrupt.
        HardIrq = 2, "irq";
    }
}

numbered! {
    /// GPU's interrupt lines.
    Line: u8 {
        /// Job slots.
        Job = 0, "job";
        /// Page faults and bus errors.
        Mmu = 1, "mmu";
        /// Reset, power, caches, faults of the whole GPU.
        Gpu = 2, "gpu";
    }
}

numbered! {
    /// Driver that was recorded.
    Driver: u32 {
        /// Linux's own.
        Panfrost = 1, "panfrost";
        /// Arm's.
        Kbase = 2, "kbase";
        /// Linux's own for GPUs with command streams.
        Panthor = 3, "panthor";
    }
}

numbered! {
    /// When a page was read.
    Phase: u32 {
        /// Before a job: what the CPU changed.
        Before = 0, "before";
        /// After a job: what the GPU changed.
        After = 1, "after";
    }
}

numbered! {
    /// Why the recorder says that a trace is not complete, in words by `name`.
    ErrorCode: u32 {
        /// Detail: records lost.
        LogFull = 1, "the log was full where the driver cannot wait; records lost";
        /// A page table cannot be followed; detail: its entry.
        Walk = 2, "a page table cannot be followed; entry";
        /// A mapped page cannot be read; detail: its GPU address.
        Page = 3, "a mapped page cannot be read; GPU address";
        /// Unknown translation mode; detail: the register.
        Translation = 4, "unknown translation mode; register";
        /// No memory; detail: bytes asked for.
        Memory = 5, "the kernel had no memory; bytes";
        /// A job began while another one ran; detail: the slots.
        Overlap = 6, "a job began while another one ran; slots";
        /// The GPU was set up before the recording started; detail: a register.
        Late = 7, "the GPU was set up before the recording started; register";
        /// A job started without a memory dump; detail: the chain's head.
        Dump = 8, "a job started without a memory dump before it; chain";
        /// Detail: the slots.
        JobLost = 9, "jobs were lost in a reset or never ended; slots";
        /// The kernel did not run a probe; detail: how often.
        Missed = 10, "the kernel did not run a probe; times";
        /// A page changed that neither the app nor a listed job can have changed; detail: its GPU address.
        Unseen = 11, "a page changed that neither the app nor a listed job can change (load the recorder with dirty=0); GPU address";
        /// Another process of the app used the GPU; detail: its number.
        Process = 12, "another process of the app used the GPU, and only one can be recorded; process";
        /// A job uses memory whose creation was not seen; detail: its handle.
        Object = 13, "a job uses memory whose creation was not seen; handle";
        /// kbase gives such memory in the order of atoms. Detail: the atom's requirements.
        JitMemory = 14, "the app uses JIT memory, which is not recorded; requirements";
        /// The app submits a soft job or a render pass; detail: the atom's requirements.
        SoftJob = 15, "the app submits a soft job or a render pass, which is not recorded; requirements";
        /// The app imports or aliases memory; detail: its GPU address.
        Imported = 16, "the app imports or aliases memory, which is not recorded; GPU address";
        /// The app waits for kbase by epoll or io_uring; detail: the file's number.
        Waits = 17, "the app waits for kbase by epoll or io_uring, which is not recorded; file";
    }
}

/// Access to a run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionFlags(pub u32);

impl RegionFlags {
    /// The GPU may read.
    pub const READ: Self = Self(1);
    /// The GPU may write.
    pub const WRITE: Self = Self(2);
    /// The GPU may execute.
    pub const EXECUTE: Self = Self(4);
    /// CPU and GPU share it cached.
    pub const CPU_CACHED: Self = Self(8);
    /// This record starts its address space's list again.
    pub const FIRST: Self = Self(0x100);

    /// All bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for RegionFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for RegionFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |flag, letter| if self.contains(flag) { letter } else { '-' };
        write!(
            f,
            "{}{}{}{}",
            letter(Self::READ, 'r'),
            letter(Self::WRITE, 'w'),
            letter(Self::EXECUTE, 'x'),
            letter(Self::CPU_CACHED, 'c')
        )
    }
}

/// Where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin<'a> {
    /// Driver.
    pub driver: Driver,
    /// The GPU snoops the CPU's caches.
    pub coherent: bool,
    /// A library in the app made it, not the kernel.
    pub in_app: bool,
    /// Driver's name.
    pub driver_name: &'a str,
    /// Kernel's release.
    pub kernel_release: &'a str,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The trace begins.
    Begin(Begin<'a>),
    /// A register was read.
    RegRead {
        /// Byte offset.
        offset: u32,
        /// GPU's answer.
        value: u32,
    },
    /// A register is about to be written.
    RegWrite {
        /// Byte offset.
        offset: u32,
        /// To be written.
        value: u32,
    },
    /// The driver starts to poll; reads follow as [`Event::RegRead`].
    PollBegin {
        /// Byte offset.
        offset: u32,
        /// Driver's bound.
        timeout_us: u32,
    },
    /// Polling stopped.
    PollEnd {
        /// Byte offset.
        offset: u32,
        /// Last value read.
        last_value: u32,
        /// 0 or a negative errno.
        result: i32,
        /// Driver's bound.
        timeout_us: u32,
    },
    /// Interrupt handler starts.
    IrqEnter {
        /// Line.
        line: Line,
    },
    /// Interrupt handler ends.
    IrqExit {
        /// Line.
        line: Line,
        /// 0 none, 1 handled, 2 wake thread.
        irqreturn: u32,
    },
    /// The driver says that it mapped memory.
    Map {
        /// Address space, if known.
        space: Option<u32>,
        /// Driver's flags.
        flags: u32,
        /// GPU address.
        va: u64,
        /// Bytes.
        size: u64,
    },
    /// The driver says that it unmapped memory.
    Unmap {
        /// Address space, if known.
        space: Option<u32>,
        /// Driver's flags.
        flags: u32,
        /// GPU address.
        va: u64,
        /// Bytes.
        size: u64,
    },
    /// A job chain or a command stream is about to start.
    Submit {
        /// Job slot, or queue.
        slot: u8,
        /// Address space.
        space: u32,
        /// GPU address of descriptor or stream.
        chain_head: u64,
        /// 0 for a job chain.
        stream_bytes: u32,
    },
    /// A run of mapped pages.
    Region {
        /// Address space.
        space: u32,
        /// Access and sharing.
        flags: RegionFlags,
        /// A multiple of the page size.
        va: u64,
        /// At least 1.
        pages: u64,
    },
    /// A changed page.
    Page {
        /// Address space.
        space: u32,
        /// Before or after the job.
        phase: Phase,
        /// A multiple of the page size.
        va: u64,
        /// `None` if all bytes are zero.
        bytes: Option<&'a [u8; crate::PAGE_SIZE]>,
    },
    /// A job chain ended.
    Complete {
        /// Job slot.
        slot: u8,
        /// JS_STATUS.
        status: u32,
    },
    /// Remark.
    Note(&'a str),
    /// The trace is not complete.
    Error {
        /// Why.
        code: ErrorCode,
        /// Depends on the code.
        detail: u64,
    },
    /// The trace ends.
    End {
        /// Records before this one.
        records: u64,
        /// Bytes before this one.
        bytes: u64,
    },
}

/// Record of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Byte offset in the trace.
    pub position: u64,
    /// From 0.
    pub sequence: u64,
    /// Monotonic clock.
    pub time_ns: u64,
    /// Where the driver was.
    pub context: Context,
    /// What happened.
    pub event: Event<'a>,
}
