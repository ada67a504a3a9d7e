// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the engine needs from devices, and devices around devices.
//!
//! # Writing a device
//!
//! A device implements [`Gpu`], this one with registers that answer at once, and a list of pages:
//!
//! ```
//! use std::collections::BTreeMap;
//! use gpureplay_core::{DeviceError, Gpu, Lines};
//! use gpureplay_format::Access;
//!
//! #[derive(Default)]
//! struct Registers {
//!     values: BTreeMap<u32, u32>,
//!     pages: BTreeMap<u64, [u8; 4096]>,
//!     now_us: u64,
//! }
//!
//! impl Gpu for Registers {
//!     fn read32(&mut self, register: u32) -> u32 {
//!         self.values.get(&register).copied().unwrap_or(0)
//!     }
//!     fn write32(&mut self, register: u32, value: u32) {
//!         self.values.insert(register, value);
//!         // A reset (GPU_CMD) completes at once: bit 8 of GPU_INT_RAWSTAT.
//!         if register == 0x30 {
//!             self.values.insert(0x20, 1 << 8);
//!         }
//!     }
//!     // Without interrupts a wait is a sleep: the engine reads the registers afterwards.
//!     fn wait_irq(&mut self, _: Lines, timeout_us: u32) -> Lines {
//!         self.now_us += u64::from(timeout_us);
//!         Lines::NONE
//!     }
//!     fn now_us(&mut self) -> u64 {
//!         self.now_us += 1;
//!         self.now_us
//!     }
//!     fn map(&mut self, va: u64, pages: u32, _: Access) -> Result<(), DeviceError> {
//!         let new = (0..u64::from(pages)).map(|page| (va + page * 4096, [0; 4096]));
//!         self.pages.extend(new);
//!         Ok(())
//!     }
//!     // A GPU with an MMU gets its page tables here, see `mali_drive::page_table`.
//!     fn activate(&mut self) -> Result<u8, DeviceError> {
//!         Ok(0)
//!     }
//!     fn reset(&mut self) -> Result<(), DeviceError> {
//!         mali_drive::reset(self)
//!     }
//!     fn release(&mut self) {
//!         self.pages.clear();
//!     }
//!     fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
//!         for (va, byte) in (va..).zip(bytes) {
//!             let page = self.pages.get_mut(&(va & !4095)).ok_or(DeviceError::NotMapped(va))?;
//!             page[va as usize & 4095] = *byte;
//!         }
//!         Ok(())
//!     }
//!     fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
//!         for (va, byte) in (va..).zip(bytes) {
//!             let page = self.pages.get(&(va & !4095)).ok_or(DeviceError::NotMapped(va))?;
//!             *byte = page[va as usize & 4095];
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut gpu = Registers::default();
//! gpu.reset()?;
//! gpu.map(0x20_0000, 1, Access::READ_WRITE)?;
//! gpu.fill_memory(0x20_0ffe, 2, 7)?;
//! let mut bytes = [0; 3];
//! gpu.read_memory(0x20_0ffd, &mut bytes)?;
//! assert_eq!(bytes, [0, 7, 7]);
//! # Ok::<(), DeviceError>(())
//! ```
//!
//! # Writing a device without registers
//!
//! A kernel driver for whole chains overrides [`Gpu::apply`], [`Gpu::start`] and [`Gpu::run_chain`], answers the
//! registers of identity in `read32`, and ignores `write32`. The engine still uploads, makes headers ready and checks
//! them, binds tensors and keeps states. [`Gpu::activate`] and [`Gpu::wait_irq`] are never called.
//!
//! # Writing a device around a device
//!
//! A wrapper implements [`Wrapper`] and overrides what it changes. All other calls reach the device inside: a wrapper
//! cannot forget one. Wrappers have `get_ref`, `get_mut` and `into_inner`.
//!
//! ```
//! use gpureplay_core::{Chain, DeviceError, Gpu, Wrapper};
//!
//! /// Counts the chains that start.
//! struct Counter<G> {
//!     gpu: G,
//!     chains: u32,
//! }
//!
//! impl<G: Gpu> Wrapper for Counter<G> {
//!     type Inner = G;
//!     fn inner(&mut self) -> &mut G {
//!         &mut self.gpu
//!     }
//!     fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
//!         self.chains += 1;
//!         self.gpu.before_chain(chain)
//!     }
//! }
//!
//! fn replay(gpu: impl Gpu) {}
//! fn count(gpu: &mut dyn Gpu) {
//!     replay(Counter { gpu, chains: 0 });
//! }
//! ```

mod wait;

use gpureplay_format::Access;
use gpureplay_format::layout::ActionEntry;

use wait::fill;
pub use wait::poll;

use crate::error::{DeviceError, ErrorKind};

/// Set of interrupt lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines(pub u8);

impl Lines {
    /// No line.
    pub const NONE: Self = Self(0);
    /// Job manager.
    pub const JOB: Self = Self(1);
    /// MMU.
    pub const MMU: Self = Self(2);
    /// Resets, power and cache maintenance.
    pub const GPU: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Whether both have a line.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A submitted job chain or launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Chains before it, in this run.
    pub index: u32,
    /// First job header; 0 for a launch.
    pub head: u64,
    /// A chain's slot, a launch's queue.
    pub queue: u8,
    /// Address space.
    pub space: u8,
}

/// Work of an action `submit` or `launch`.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The action.
    pub entry: &'a ActionEntry,
    /// A launch's words, little-endian; empty for a chain.
    pub words: &'a [u8],
}

impl Submission<'_> {
    /// A chain's slot, a launch's queue.
    pub const fn queue(&self) -> u8 {
        self.entry.a
    }

    /// Bits 15:0 of JS_CONFIG, or a launch's bytes.
    pub const fn configuration(&self) -> u16 {
        self.entry.b.get()
    }

    /// Limit of its time.
    pub const fn timeout_us(&self) -> u32 {
        self.entry.c.get()
    }

    /// First job header; 0 for a launch.
    pub const fn head(&self) -> u64 {
        self.entry.d.get()
    }
}

/// A job beyond the work limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// GPU address of its header.
    pub job: u64,
    /// Job slot.
    pub slot: u8,
    /// The device's unit; clauses on the model.
    pub limit: u64,
}

/// One list: a wrapper forwards every method.
macro_rules! gpu {
    (
        $(#[$about:meta])*
        required {$(
            $(#[$doc:meta])*
            fn $name:ident(&mut $this:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;
        )+}
        provided {$(
            $(#[$more:meta])*
            fn $extra:ident(&mut $self:ident $(, $operand:ident: $kind:ty)*) $(-> $answer:ty)? $body:block
        )+}
    ) => {
        $(#[$about])*
        pub trait Gpu {
            $($(#[$doc])* fn $name(&mut $this $(, $argument: $type)*) $(-> $result)?;)+
            $($(#[$more])* fn $extra(&mut $self $(, $operand: $kind)*) $(-> $answer)? $body)+
        }

        /// A device around another; forwards what it does not override.
        ///
        /// Errors: see [`Gpu`]. Import [`Gpu`] and name this trait by its path: equal method names.
        pub trait Wrapper {
            /// The device inside.
            type Inner: Gpu + ?Sized;

            /// The device inside.
            fn inner(&mut self) -> &mut Self::Inner;

            $(
                #[doc = concat!("See [`Gpu::", stringify!($name), "`].")]
                #[inline]
                fn $name(&mut $this $(, $argument: $type)*) $(-> $result)? {
                    $this.inner().$name($($argument),*)
                }
            )+
            $(
                #[doc = concat!("See [`Gpu::", stringify!($extra), "`].")]
                #[inline]
                fn $extra(&mut $self $(, $operand: $kind)*) $(-> $answer)? {
                    $self.inner().$extra($($operand),*)
                }
            )+
        }

        impl<W: Wrapper + ?Sized> Gpu for W {
            $(
                #[inline]
                fn $name(&mut $this $(, $argument: $type)*) $(-> $result)? {
                    Wrapper::$name($this $(, $argument)*)
                }
            )+
            $(
                #[inline]
                fn $extra(&mut $self $(, $operand: $kind)*) $(-> $answer)? {
                    Wrapper::$extra($self $(, $operand)*)
                }
            )+
        }
    };
}

gpu! {
    /// A GPU with memory of its own.
    ///
    /// The model, the nano driver, /dev/mem, a firmware's registers. A device hands out zeroed pages, keeps page tables
    /// (with `mali_drive::page_table`, or in the kernel), and maintains caches: the GPU sees `write_memory`,
    /// `read_memory` sees GPU writes.
    required {
        /// Reads the register at a byte offset.
        fn read32(&mut self, register: u32) -> u32;

        /// Writes the register at a byte offset.
        fn write32(&mut self, register: u32, value: u32);

        /// Waits for `lines`; returns raised ones, or none early: the engine then asks registers and comes back.
        fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines;

        /// Monotonic clock in microseconds.
        fn now_us(&mut self) -> u64;

        /// Maps zeroed pages, always before [`Gpu::activate`].
        ///
        /// # Errors
        /// No memory, or the device refuses.
        fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError>;

        /// Gives an address space, whose number it returns, the tables of all mappings.
        ///
        /// # Errors
        /// The command does not end in time, or the device refuses.
        fn activate(&mut self) -> Result<u8, DeviceError>;

        /// Stops everything, as after power-on. With registers: by the family's code, such as `mali_drive::reset`.
        ///
        /// # Errors
        /// It did not end in time.
        fn reset(&mut self) -> Result<(), DeviceError>;

        /// Unmaps and frees all pages, after a reset.
        fn release(&mut self);

        /// # Errors
        /// The range is not mapped.
        fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError>;

        /// # Errors
        /// The range is not mapped.
        fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;
    }
    provided {
        /// # Errors
        /// The range is not mapped.
        fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
            fill(self, va, length, byte)
        }

        /// Makes a setting on a device without registers. `None`: write the register.
        ///
        /// # Errors
        /// The device cannot replay with it.
        fn apply(&mut self, register: u32, value: u32) -> Option<Result<(), ErrorKind>> {
            let _ = (register, value);
            None
        }

        /// Prepares mapped memory for work. `None`: the family's code powers up, then [`Gpu::activate`].
        ///
        /// # Errors
        /// Unusable memory, or these cores cannot stay unused.
        fn start(&mut self, unused_cores: u32) -> Option<Result<(), ErrorKind>> {
            let _ = unused_cores;
            None
        }

        /// Runs work to its end. `None`: the family's code does, through all wrappers.
        ///
        /// # Errors
        /// How it failed. The engine also checks a chain's headers.
        fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
            let _ = work;
            None
        }

        /// Between chains: may lend a shared GPU, and waits for it. `true`: lent, now reset, memory untouched.
        ///
        /// # Errors
        /// The GPU did not come back.
        fn lend(&mut self) -> Result<bool, DeviceError> {
            Ok(false)
        }

        /// Told a recording's bytes, with external weights, before use: limited devices let large ones do more.
        fn expect_recording(&mut self, bytes: u64) {
            let _ = bytes;
        }

        /// The job beyond this run's work limit.
        fn used_up(&mut self) -> Option<UsedUp> {
            None
        }

        /// Called before a chain's start command.
        ///
        /// # Errors
        /// Ends the run.
        fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
            let _ = chain;
            Ok(())
        }

        /// Called with the slot's success (headers not read yet), or the error. Memory holds what the chain wrote.
        fn after_chain(&mut self, chain: &Chain, result: Result<(), ErrorKind>) {
            let _ = (chain, result);
        }
    }
}

impl<G: Gpu + ?Sized> Wrapper for &mut G {
    type Inner = G;
    #[inline]
    fn inner(&mut self) -> &mut G {
        self
    }
}
