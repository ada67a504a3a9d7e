// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds page tables in [`mali_facts::page_table`]'s formats.

use gpureplay_format::Access;
pub use mali_facts::page_table::Format;
use mali_facts::page_table::{
    AARCH64_MEMORY_ATTRIBUTES, Entry, LEVELS, LPAE_MEMORY_ATTRIBUTES, PAGE_BYTES, entry_offset,
};
use mali_facts::registers::address_space::{
    COMMAND, MEMATTR_HI, MEMATTR_LO, STATUS, TRANSCFG_HI, TRANSCFG_LO, TRANSTAB_HI, TRANSTAB_LO,
    offset,
};
use mali_facts::registers::{AddressSpaceCommand, TranslationConfig, TranslationTable};

use gpureplay_core::DeviceError;
use gpureplay_core::gpu::{Gpu, poll};

/// Memory for page tables, by physical (bus) address.
pub trait TableMemory {
    /// Zeroed; `None` if none is left.
    fn allocate(&mut self) -> Option<u64>;
    /// A 64-bit entry.
    fn read(&mut self, pa: u64) -> u64;
    /// A 64-bit entry.
    fn write(&mut self, pa: u64, entry: u64);
}

/// Nothing in them changes once the GPU uses them.
#[derive(Clone, Copy, Debug)]
pub struct PageTables {
    format: Format,
    root: u64,
}

/// As drivers have it.
const COMMAND_TIMEOUT_US: u32 = 100_000;

impl PageTables {
    /// `None` without memory for the root.
    pub fn new(format: Format, memory: &mut impl TableMemory) -> Option<Self> {
        Some(Self {
            format,
            root: memory.allocate()?,
        })
    }

    /// `None` without memory for a table.
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        va: u64,
        pa: u64,
        access: Access,
    ) -> Option<()> {
        let mut table = self.root;
        for level in 0..LEVELS - 1 {
            let slot = table + entry_offset(va, level);
            let mut entry = Entry(memory.read(slot));
            // At these levels, our entries are 0 or tables.
            if entry.0 == 0 {
                entry = Entry::table(memory.allocate()?);
                memory.write(slot, entry.0);
            }
            table = entry.address();
        }
        let write = access.contains(Access::WRITE);
        let execute = access.contains(Access::EXECUTE);
        let page = Entry::page(self.format, pa, write, execute);
        memory.write(table + entry_offset(va, LEVELS - 1), page.0);
        Some(())
    }

    /// Physical address; `None` if unmapped.
    pub fn find(&self, memory: &mut impl TableMemory, va: u64) -> Option<u64> {
        let mut table = self.root;
        for level in 0..LEVELS {
            let entry = Entry(memory.read(table + entry_offset(va, level)));
            if entry.0 == 0 {
                return None;
            }
            table = entry.address();
        }
        Some(table | (va % PAGE_BYTES))
    }

    /// Physical address of the root table.
    pub const fn root(&self) -> u64 {
        self.root
    }

    /// Activates these tables for address space `space`.
    ///
    /// # Errors
    /// A command does not end.
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
            table = entry & 0x0000_ffff_ffff_f000;
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
