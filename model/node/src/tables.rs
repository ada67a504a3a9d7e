// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables as the drivers make them: Mali LPAE for panfrost, AArch64 for panthor, 2 MiB blocks.

use mali_facts::page_table::{
    ENTRY_BYTES, Entry, EntryType, Format, LEVELS, PAGE_BYTES, entry_offset, shift,
};
use mali_memory::{Bus, Mapped};

/// On the bus.
pub(crate) const BASE: u64 = 1 << 28;
/// 4 GiB need 2048 tables of pages and six above.
pub(crate) const BYTES: u64 = 16 << 20;
pub(crate) const BLOCK_BYTES: u64 = 1 << shift(LAST - 1);

const LAST: u32 = LEVELS - 1;

pub(crate) struct Tables<'a> {
    bus: &'a Mapped,
    format: Format,
    end: u64,
}

/// What the GPU may do besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) write: bool,
    pub(crate) execute: bool,
}

impl<'a> Tables<'a> {
    /// Replaces all tables.
    pub(crate) fn new(bus: &'a Mapped, format: Format) -> Option<Self> {
        let end = BASE;
        let mut tables = Self { bus, format, end };
        tables.table()?;
        Some(tables)
    }

    pub(crate) fn root(&self) -> u64 {
        BASE
    }

    /// Maps memory, in multiples of the page size.
    pub(crate) fn map(&mut self, va: u64, address: u64, size: u64, rights: Rights) -> Option<()> {
        let mut done = 0;
        while done < size {
            let (va, address) = (va + done, address + done);
            let block = (va | address).is_multiple_of(BLOCK_BYTES) && size - done >= BLOCK_BYTES;
            let level = if block { LAST - 1 } else { LAST };
            let place = self.place(va, level)?;
            let entry = if block { Entry::block } else { Entry::page };
            self.store(
                place,
                entry(self.format, address, rights.write, rights.execute),
            );
            done += if block { BLOCK_BYTES } else { PAGE_BYTES };
        }
        Some(())
    }

    fn place(&mut self, va: u64, level: u32) -> Option<u64> {
        let mut table = BASE;
        for above in 0..level {
            let place = table + entry_offset(va, above);
            let mut entry = self.load(place);
            if entry.entry_type(self.format, above) != EntryType::Table {
                entry = Entry::table(self.table()?);
                self.store(place, entry);
            }
            table = entry.address();
        }
        Some(table + entry_offset(va, level))
    }

    fn table(&mut self) -> Option<u64> {
        let table = self.end;
        if table >= BASE + BYTES {
            return None;
        }
        self.bus.page(table)?.fill_u64(0);
        self.end += PAGE_BYTES;
        Some(table)
    }

    fn load(&self, place: u64) -> Entry {
        let page = self.bus.page(place);
        Entry(page.map_or(0, |page| page.load_u64((place % PAGE_BYTES) as usize)))
    }

    fn store(&self, place: u64, entry: Entry) {
        debug_assert!(place.is_multiple_of(ENTRY_BYTES));
        if let Some(page) = self.bus.page(place) {
            page.store_u64((place % PAGE_BYTES) as usize, entry.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Memory;

    const DATA: Rights = Rights {
        write: true,
        execute: false,
    };

    /// Entries are as the driver writes them.
    #[test]
    fn pages_and_blocks() {
        let memory = Memory::new().unwrap();
        let mut tables = Tables::new(memory.bus(), Format::Lpae).unwrap();
        tables.map(0x20_0000, 0x4000_0000, 0x40_1000, DATA).unwrap();
        let code = Rights {
            write: true,
            execute: true,
        };
        tables.map(0x200_1000, 0x5000_3000, 0x2000, code).unwrap();
        let mut entry = |va, level| {
            let place = tables.place(va, level).unwrap();
            tables.load(place).0
        };
        assert_eq!(entry(0x20_0000, 2), 0x0060_0000_4000_02c1);
        assert_eq!(entry(0x40_0000, 2), 0x0060_0000_4020_02c1);
        assert_eq!(entry(0x60_0000, 3), 0x0060_0000_4040_02c1);
        assert_eq!(entry(0x60_1000, 3), 0);
        assert_eq!(entry(0x200_1000, 3), 0x5000_32c1);
        assert_eq!(entry(0x200_2000, 3), 0x5000_42c1);
    }

    /// High up, with code that cannot be written.
    #[test]
    fn pages_and_blocks_of_aarch64() {
        let memory = Memory::new().unwrap();
        let mut tables = Tables::new(memory.bus(), Format::AArch64).unwrap();
        let va = 0x7fff_ffe0_0000;
        tables.map(va, 0x1_4000_0000, 0x20_0000, DATA).unwrap();
        let code = Rights {
            write: false,
            execute: true,
        };
        tables.map(va - 0x1000, 0x5000_3000, 0x1000, code).unwrap();
        let mut entry = |va, level| {
            let place = tables.place(va, level).unwrap();
            tables.load(place).0
        };
        assert_eq!(entry(va, 2), 0x0040_0001_4000_0741);
        assert_eq!(entry(va - 0x1000, 3), 0x5000_37c3);
    }

    /// Pages 2 MiB apart.
    #[test]
    fn the_whole_space_has_room() {
        let memory = Memory::new().unwrap();
        let mut tables = Tables::new(memory.bus(), Format::Lpae).unwrap();
        for va in (0..1 << 32).step_by(BLOCK_BYTES as usize) {
            tables.map(va, 0x4000_0000, PAGE_BYTES, DATA).unwrap();
        }
    }
}
