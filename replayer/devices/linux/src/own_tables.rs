// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables where the kernel builds none.

use std::collections::{BTreeSet, HashMap};

use gpureplay_core::DeviceError;
use gpureplay_format::{Access, PAGE_SIZE};
use mali_drive::page_table::{Format, PageTables, TableMemory};

use crate::mapped::Mapped;

#[derive(Debug)]
pub(crate) struct TablePages {
    memory: Mapped,
    addresses: Vec<u64>,
    used: usize,
    offsets: HashMap<u64, usize>,
}

impl TablePages {
    pub(crate) fn new(memory: Mapped, addresses: Vec<u64>) -> Self {
        let offsets = addresses
            .iter()
            .enumerate()
            .map(|(page, &address)| (address, page * PAGE_SIZE as usize))
            .collect();
        Self {
            memory,
            addresses,
            used: 0,
            offsets,
        }
    }

    fn offset(&self, pa: u64) -> Option<usize> {
        let within = pa % u64::from(PAGE_SIZE);
        self.offsets
            .get(&(pa - within))
            .map(|page| page + within as usize)
    }
}

impl TableMemory for TablePages {
    fn allocate(&mut self) -> Option<u64> {
        let address = self.addresses.get(self.used).copied()?;
        self.used += 1;
        Some(address)
    }

    fn read(&mut self, pa: u64) -> u64 {
        let mut bytes = [0; 8];
        if let Some(offset) = self.offset(pa) {
            self.memory.read(offset, &mut bytes);
        }
        u64::from_le_bytes(bytes)
    }

    fn write(&mut self, pa: u64, entry: u64) {
        if let Some(offset) = self.offset(pa) {
            self.memory.write(offset, &entry.to_le_bytes());
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct OwnTables {
    leaves: Vec<(u64, u64, Access)>,
    pages: Option<TablePages>,
}

impl OwnTables {
    /// `addresses` are of adjacent pages from `va` on.
    pub(crate) fn remember(&mut self, va: u64, addresses: &[u64], access: Access) {
        let pages = (va..).step_by(PAGE_SIZE as usize).zip(addresses);
        self.leaves
            .extend(pages.map(|(va, &address)| (va, address, access)));
    }

    pub(crate) fn told(&self, va: u64, count: usize) -> impl Iterator<Item = u64> {
        self.leaves
            .iter()
            .skip_while(move |leaf| leaf.0 != va)
            .take(count)
            .map(|leaf| leaf.1)
    }

    pub(crate) fn pages_needed(&self) -> u64 {
        let tables = |shift: u32| {
            self.leaves
                .iter()
                .map(|(va, ..)| va >> shift)
                .collect::<BTreeSet<_>>()
                .len() as u64
        };
        1 + tables(39) + tables(30) + tables(21)
    }

    /// Builds tables in `pages`, which stay until [`OwnTables::forget`].
    pub(crate) fn build(&mut self, mut pages: TablePages) -> Result<PageTables, DeviceError> {
        let mut tables =
            PageTables::new(Format::Lpae, &mut pages).ok_or(DeviceError::OutOfMemory)?;
        for &(va, address, access) in &self.leaves {
            tables
                .map(&mut pages, va, address, access)
                .ok_or(DeviceError::OutOfMemory)?;
        }
        self.pages = Some(pages);
        Ok(tables)
    }

    /// Whether tables were built. Reset the GPU first.
    pub(crate) fn forget(&mut self) -> bool {
        self.leaves.clear();
        self.pages.take().is_some()
    }
}
