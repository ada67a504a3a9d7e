// SPDX-License-Identifier: MIT OR Apache-2.0
//! The register map of Mali job-manager GPUs (Midgard, Bifrost, Valhall-JM) as one table.
//!
//! Offsets are bytes from the start of the GPU's register window; each register is 32 bits wide, 64-bit quantities are
//! a `_LO`/`_HI` pair.
//!
//! Glossary: *JS* is a job slot (a queue that runs one job chain at a time and holds one more in its `_NEXT`
//! registers), *AS* an address space (one set of GPU page tables), *core* a shader core, *chain* a linked list of
//! job descriptors.
//!
//! ```
//! use mali_facts::registers::{by_name, lookup, job_slot};
//! let doorbell = lookup(job_slot::offset(1, job_slot::COMMAND_NEXT)).unwrap();
//! assert_eq!(doorbell.to_string(), "JS1_COMMAND_NEXT");
//! assert_eq!(by_name("AS0_TRANSTAB_LO").unwrap().offset(), 0x2400);
//! ```
//!
//! Sources: the register headers of Linux's `panfrost` driver (6.12 to 7.x) and of Arm's published kernel driver,
//! and register traces of Mali-G71 hardware.

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

/// Bytes of a job-manager GPU's registers.
pub const WINDOW_SIZE: u32 = 0x4000;

/// Most that a GPU has (see `JS_PRESENT`).
pub const JOB_SLOTS: u32 = 16;

/// Most that a GPU has (see `AS_PRESENT`).
pub const ADDRESS_SPACES: u32 = 16;
