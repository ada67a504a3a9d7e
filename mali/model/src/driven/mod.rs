// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU as the kernel's driver has it: powered, with one address space and one chain or stream at a time.

mod chains;
mod streams;
mod tables;

pub use chains::DrivenGpu;
pub use mali_facts::page_table::{PAGE_BYTES, VIRTUAL_BITS};
pub use streams::DrivenStreams;
pub use tables::{BASE, BLOCK_BYTES, BYTES};

/// Ticks per second of TIMESTAMP.
pub const TIMESTAMP_FREQUENCY: u64 = 62_500_000;

/// What the GPU may do besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Write.
    pub write: bool,
    /// Execute.
    pub execute: bool,
}

/// Memory in an address space. Multiples of [`PAGE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// GPU address.
    pub va: u64,
    /// On the bus.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// On all pages.
    pub rights: Rights,
}

/// Page tables need more than [`BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page tables do not fit")]
pub struct NoRoom;

/// Address space whose tables are there: file and count of changes.
type Space = (u64, u64);
