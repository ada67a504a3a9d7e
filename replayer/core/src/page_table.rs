// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU page tables, for devices that build them themselves.
//!
//! Four levels of 512 entries over a 48-bit range, 4 KiB pages. Two formats: Mali LPAE (the legacy mode that Linux's
//! panfrost uses) and AArch64 with a 4 KiB granule (what Arm's driver uses on Bifrost).

use gpureplay_format::Access;
use mali_regs::address_space::{
    COMMAND, MEMATTR_HI, MEMATTR_LO, STATUS, TRANSCFG_HI, TRANSCFG_LO, TRANSTAB_HI, TRANSTAB_LO,
    offset,
};
use mali_regs::{AddressSpaceCommand, TranslationConfig, TranslationTable};

use crate::error::DeviceError;
use crate::gpu::{Gpu, poll};

/// Format of page-table entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Mali LPAE: leaf type 1 at every level, permissions in bits 7:6.
    Lpae,
    /// ARMv8 stage 1, 4 KiB granule.
    AArch64,
}

/// Memory for page tables, by physical (bus) address.
pub trait TableMemory {
    /// A zeroed page, or `None` when there is none left.
    fn allocate(&mut self) -> Option<u64>;
    /// Reads the 64-bit entry at a physical address.
    fn read(&mut self, pa: u64) -> u64;
    /// Writes the 64-bit entry at a physical address.
    fn write(&mut self, pa: u64, entry: u64);
}

/// Page tables under construction. Pages are added one by one; nothing is ever changed once the GPU uses them.
#[derive(Clone, Copy, Debug)]
pub struct PageTables {
    format: Format,
    root: u64,
}

const TABLE: u64 = 3;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
const OUTER_SHAREABLE: u64 = 2 << 8;
const INNER_SHAREABLE: u64 = 3 << 8;
const NO_EXECUTE: u64 = 1 << 54;
const LPAE_LEAF: u64 = 1;
const LPAE_READ: u64 = 1 << 6;
const LPAE_WRITE: u64 = 1 << 7;
const NO_EXECUTE_PRIVILEGED: u64 = 1 << 53;
const AARCH64_PAGE: u64 = 3;
const AARCH64_READ_WRITE: u64 = 1 << 6;
const AARCH64_READ_ONLY: u64 = 3 << 6;
const AARCH64_ACCESSED: u64 = 1 << 10;

/// Attributes by index: 0 as the implementation likes, 1 write-back with allocation, 2 as the implementation likes.
const LPAE_MEMORY_ATTRIBUTES: u64 = 0x0088_8d88;
/// Attributes as Arm's driver sets them: index 0 as the implementation likes.
const AARCH64_MEMORY_ATTRIBUTES: u64 = 0x4c8d_888d_8f88;

/// Bound of an address-space command, as drivers have it.
const COMMAND_TIMEOUT_US: u32 = 100_000;

impl PageTables {
    /// Empty tables. `None` without memory for the root.
    pub fn new(format: Format, memory: &mut impl TableMemory) -> Option<Self> {
        Some(Self {
            format,
            root: memory.allocate()?,
        })
    }

    /// Maps one page. `None` without memory for a table.
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        va: u64,
        pa: u64,
        access: Access,
    ) -> Option<()> {
        let mut table = self.root;
        for level in 0..3 {
            let slot = table + (va >> (39 - 9 * level) & 511) * 8;
            let mut entry = memory.read(slot);
            if entry & TABLE != TABLE {
                entry = memory.allocate()? & ADDRESS | TABLE;
                memory.write(slot, entry);
            }
            table = entry & ADDRESS;
        }
        memory.write(table + (va >> 12 & 511) * 8, self.leaf(pa, access));
        Some(())
    }

    /// The physical address that a GPU address is mapped to; `None` when it is not.
    pub fn find(&self, memory: &mut impl TableMemory, va: u64) -> Option<u64> {
        let mut table = self.root;
        for level in 0..4 {
            let entry = memory.read(table + (va >> (39 - 9 * level) & 511) * 8);
            if entry == 0 {
                return None;
            }
            table = entry & ADDRESS;
        }
        Some(table | va & 0xfff)
    }

    fn leaf(&self, pa: u64, access: Access) -> u64 {
        let write = access.contains(Access::WRITE);
        let execute = access.contains(Access::EXECUTE);
        let mut entry = pa & ADDRESS;
        match self.format {
            Format::Lpae => {
                entry |= LPAE_LEAF | LPAE_READ | OUTER_SHAREABLE;
                if write {
                    entry |= LPAE_WRITE;
                }
                if !execute {
                    entry |= NO_EXECUTE | NO_EXECUTE_PRIVILEGED;
                }
            }
            Format::AArch64 => {
                entry |= AARCH64_PAGE | AARCH64_ACCESSED | INNER_SHAREABLE;
                entry |= if write {
                    AARCH64_READ_WRITE
                } else {
                    AARCH64_READ_ONLY
                };
                if !execute {
                    entry |= NO_EXECUTE;
                }
            }
        }
        entry
    }

    /// Physical address of the root table.
    pub const fn root(&self) -> u64 {
        self.root
    }

    /// Lets address space `space` of a GPU use these tables.
    ///
    /// # Errors
    /// A command of the address space does not end.
    pub fn activate(
        &self,
        gpu: &mut (impl Gpu + ?Sized),
        space: u8,
        coherent: bool,
    ) -> Result<(), DeviceError> {
        let (table, attributes, mode) = match self.format {
            Format::Lpae => (
                TranslationTable::legacy(self.root, coherent).0,
                LPAE_MEMORY_ATTRIBUTES,
                0,
            ),
            Format::AArch64 => (
                self.root,
                AARCH64_MEMORY_ATTRIBUTES,
                TranslationConfig::aarch64_4k().0,
            ),
        };
        let register = |register| offset(space.into(), register);
        let idle = |gpu: &mut _| idle(gpu, register(STATUS));
        idle(gpu)?;
        for (low, high, value) in [
            (TRANSTAB_LO, TRANSTAB_HI, table),
            (MEMATTR_LO, MEMATTR_HI, attributes),
            (TRANSCFG_LO, TRANSCFG_HI, mode),
        ] {
            gpu.write32(register(low), value as u32);
            gpu.write32(register(high), (value >> 32) as u32);
        }
        gpu.write32(register(COMMAND), AddressSpaceCommand::Update as u32);
        idle(gpu)
    }
}

fn idle(gpu: &mut (impl Gpu + ?Sized), status: u32) -> Result<(), DeviceError> {
    poll(gpu, status, 1, 0, COMMAND_TIMEOUT_US).map_err(|_| DeviceError::AddressSpaceStuck)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    struct Tables(Vec<[u64; 512]>);

    impl TableMemory for Tables {
        fn allocate(&mut self) -> Option<u64> {
            (self.0.len() < 8).then(|| {
                self.0.push([0; 512]);
                self.0.len() as u64 * 4096
            })
        }
        fn read(&mut self, pa: u64) -> u64 {
            self.0[pa as usize / 4096 - 1][pa as usize % 4096 / 8]
        }
        fn write(&mut self, pa: u64, entry: u64) {
            self.0[pa as usize / 4096 - 1][pa as usize % 4096 / 8] = entry;
        }
    }

    fn walk(tables: &mut Tables, root: u64, va: u64) -> u64 {
        let mut table = root;
        for level in 0..3 {
            let entry = tables.read(table + (va >> (39 - 9 * level) & 511) * 8);
            assert_eq!(entry & 3, 3);
            table = entry & ADDRESS;
        }
        tables.read(table + (va >> 12 & 511) * 8)
    }

    #[test]
    fn pages_share_tables_and_keep_their_permissions() {
        for (format, code, data) in [
            (Format::Lpae, 0x1000_0241, 0x0060_0000_2000_02c1),
            (Format::AArch64, 0x1000_07c3, 0x0040_0000_2000_0743),
        ] {
            let mut memory = Tables(Vec::new());
            let mut tables = PageTables::new(format, &mut memory).unwrap();
            let (first, second) = (0xffff_ae00_0000, 0xffff_ae00_1000);
            tables
                .map(&mut memory, first, 0x1000_0000, Access::READ_EXECUTE)
                .unwrap();
            tables
                .map(&mut memory, second, 0x2000_0000, Access::READ_WRITE)
                .unwrap();
            assert_eq!(memory.0.len(), 4);
            assert_eq!(walk(&mut memory, tables.root(), first), code);
            assert_eq!(walk(&mut memory, tables.root(), second), data);
            assert_eq!(tables.find(&mut memory, second + 8), Some(0x2000_0008));
            assert_eq!(tables.find(&mut memory, second + 0x1000), None);
            assert_eq!(tables.find(&mut memory, 0), None);
            tables
                .map(&mut memory, 0, 0x3000_0000, Access::READ)
                .unwrap();
            assert!(
                tables
                    .map(&mut memory, 1 << 40, 0x3000_0000, Access::READ)
                    .is_none()
            );
        }
    }
}
