// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual memory as the shader cores reach it.

use std::fmt;

use gpureplay_memory::Page;

/// The GPU's access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads data.
    Read,
    /// Writes data, also atomically.
    Write,
    /// Fetches instructions.
    Execute,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Execute => "execute",
        })
    }
}

/// An access that the MMU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{access} of {va:#x} refused by the MMU with exception {code:#04x}")]
pub struct MmuFault {
    /// Virtual address.
    pub va: u64,
    /// Kind of access.
    pub access: Access,
    /// As the MMU reports it.
    pub code: u8,
}

/// Translations must stay valid while a dispatch runs.
pub trait AddressSpace: Sync {
    /// The page of `va`.
    ///
    /// # Errors
    ///
    /// The MMU's fault.
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault>;
}
