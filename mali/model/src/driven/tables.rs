// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables as drivers make them: Mali LPAE for panfrost, AArch64 for panthor, 2 MiB blocks.

use gpureplay_memory::Bus;
use mali_facts::page_table::{
    ENTRY_BYTES, Entry, EntryType, Format, LEVELS, PAGE_BYTES, entry_offset, shift,
};

use super::{Map, NoRoom};

/// Bus address of page tables.
pub const BASE: u64 = 1 << 28;
/// Most bytes of page tables: 4 GiB need 2048 tables of pages and six above.
pub const BYTES: u64 = 16 << 20;
/// A block's pages need no table.
pub const BLOCK_BYTES: u64 = 1 << shift(LAST - 1);

const LAST: u32 = LEVELS - 1;

pub(super) struct Tables<'a, B: Bus> {
    bus: &'a B,
    format: Format,
    end: u64,
}

impl<'a, B: Bus> Tables<'a, B> {
    pub(super) fn new(bus: &'a B, format: Format) -> Option<Self> {
        let end = BASE;
        let mut tables = Self { bus, format, end };
        tables.table()?;
        Some(tables)
    }

    pub(super) fn of(
        bus: &'a B,
        format: Format,
        maps: impl IntoIterator<Item = Map>,
    ) -> Result<(), NoRoom> {
        let mut tables = Self::new(bus, format).ok_or(NoRoom)?;
        let mut maps = maps.into_iter();
        maps.try_for_each(|map| tables.map(map).ok_or(NoRoom))
    }

    fn map(&mut self, map: Map) -> Option<()> {
        let mut done = 0;
        while done < map.size {
            let (va, address) = (map.va + done, map.address + done);
            let block =
                (va | address).is_multiple_of(BLOCK_BYTES) && map.size - done >= BLOCK_BYTES;
            let level = if block { LAST - 1 } else { LAST };
            let place = self.place(va, level)?;
            let entry = if block { Entry::block } else { Entry::page };
            self.store(
                place,
                entry(self.format, address, map.rights.write, map.rights.execute),
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
    use gpureplay_memory::Ram;

    use crate::driven::Rights;

    fn bus() -> Ram {
        Ram::new(((BASE + BYTES) / PAGE_BYTES) as usize).unwrap()
    }

    const DATA: Rights = Rights {
        write: true,
        execute: false,
    };

    fn map(va: u64, address: u64, size: u64, rights: Rights) -> Map {
        Map {
            va,
            address,
            size,
            rights,
        }
    }

    #[test]
    fn pages_and_blocks() {
        let bus = bus();
        let mut tables = Tables::new(&bus, Format::Lpae).unwrap();
        tables
            .map(map(0x20_0000, 0x4000_0000, 0x40_1000, DATA))
            .unwrap();
        let code = Rights {
            write: true,
            execute: true,
        };
        tables
            .map(map(0x200_1000, 0x5000_3000, 0x2000, code))
            .unwrap();
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

    #[test]
    fn pages_and_blocks_of_aarch64() {
        let bus = bus();
        let mut tables = Tables::new(&bus, Format::AArch64).unwrap();
        let va = 0x7fff_ffe0_0000;
        tables.map(map(va, 0x1_4000_0000, 0x20_0000, DATA)).unwrap();
        let code = Rights {
            write: false,
            execute: true,
        };
        tables
            .map(map(va - 0x1000, 0x5000_3000, 0x1000, code))
            .unwrap();
        let mut entry = |va, level| {
            let place = tables.place(va, level).unwrap();
            tables.load(place).0
        };
        assert_eq!(entry(va, 2), 0x0040_0001_4000_0741);
        assert_eq!(entry(va - 0x1000, 3), 0x5000_37c3);
    }

    /// One page in each 2 MiB needs the most tables.
    #[test]
    fn the_whole_space_has_room() {
        let bus = bus();
        let mut tables = Tables::new(&bus, Format::Lpae).unwrap();
        for va in (0..1 << 32).step_by(BLOCK_BYTES as usize) {
            tables.map(map(va, 0x4000_0000, PAGE_BYTES, DATA)).unwrap();
        }
    }
}
