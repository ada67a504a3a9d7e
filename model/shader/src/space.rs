// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual memory as the shader cores reach it.

pub use mali_facts::Access;
use mali_memory::Page;

/// An access that the MMU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{access} of {va:#x} refused by the MMU with exception {code:#04x}")]
pub struct MmuFault {
    /// Virtual address.
    pub va: u64,
    /// Kind of access.
    pub access: Access,
    /// `AS_FAULTSTATUS`: 0xc0-0xc7 translation, 0xc8-0xcf permission, and so on.
    pub code: u8,
}

/// An MMU address space. Translations must stay valid while a dispatch runs.
pub trait AddressSpace: Sync {
    /// The page of `va`.
    ///
    /// # Errors
    ///
    /// The MMU's fault.
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault>;
}
