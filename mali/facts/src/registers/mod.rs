// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register map of Mali job-manager GPUs (Midgard, Bifrost, Valhall-JM).
//!
//! Offsets are bytes from the window's start. Registers have 32 bits; 64-bit quantities are a `_LO`/`_HI` pair.
//!
//! *JS* is a job slot (a queue that runs one job chain and holds one more in `_NEXT` registers), *AS* an address space
//! (one set of page tables), *core* a shader core, *chain* a linked list of job descriptors.
//!
//! ```
//! use mali_facts::registers::{by_name, lookup, job_slot};
//! let doorbell = lookup(job_slot::offset(1, job_slot::COMMAND_NEXT)).unwrap();
//! assert_eq!(doorbell.to_string(), "JS1_COMMAND_NEXT");
//! assert_eq!(by_name("AS0_TRANSTAB_LO").unwrap().offset(), 0x2400);
//! ```
//!
//! Sources: register headers of Linux's `panfrost` driver (6.12 to 7.x) and of Arm's published kernel driver, and
//! register traces of Mali-G71 hardware.

pub mod address_space;
pub mod gpu;
pub mod job;
pub mod job_slot;
mod map;
pub mod mmu;
mod register;

pub use address_space::{
    AddressSpaceCommand, FaultAccess, FaultStatus, LegacyMode, TranslationConfig, TranslationMode,
    TranslationTable,
};
pub use gpu::{GpuCommand, GpuId, GpuInterrupt};
pub use job_slot::{JobCommand, JobConfig, JobConfigFlags, JobStatus};
pub use map::{Block, Located, all, by_name, lookup};
pub use register::{Access, Class, Register};

/// In bytes.
pub const WINDOW_SIZE: u32 = 0x4000;

/// At most (see `JS_PRESENT`).
pub const JOB_SLOTS: u32 = 16;

/// At most (see `AS_PRESENT`).
pub const ADDRESS_SPACES: u32 = 16;
