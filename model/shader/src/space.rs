// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual memory as the shader cores reach it.

pub use mali_facts::Access;
use mali_memory::Page;

/// A translation that the memory management unit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{access} of {va:#x} refused by the MMU with exception {code:#04x}")]
pub struct MmuFault {
    /// The virtual address of the access.
    pub va: u64,
    /// What the access was to do.
    pub access: Access,
    /// The exception code of `AS_FAULTSTATUS`: 0xc0-0xc7 translation, 0xc8-0xcf permission, and so on.
    pub code: u8,
}

/// One address space of the MMU. Translations must stay valid while a dispatch runs: the shader cores keep them in
/// look-aside buffers for that long.
pub trait AddressSpace: Sync {
    /// The page that holds virtual address `va`, if it may be accessed so.
    ///
    /// # Errors
    ///
    /// The fault that the MMU raises.
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault>;
}
