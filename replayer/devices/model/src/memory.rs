// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's pages by GPU address.

use std::sync::Arc;

use gpureplay_core::DeviceError;
use gpureplay_format::Access;
use gpureplay_memory::{Bus, PAGE_SIZE, Page, Ram};
use mali_drive::page_table::TableMemory;

const PAGE: u64 = PAGE_SIZE as u64;

struct Region {
    va: u64,
    access: Access,
    pages: Vec<u64>,
}

pub(crate) struct Memory {
    ram: Arc<Ram>,
    /// By ascending address.
    regions: Vec<Region>,
    tables: Vec<u64>,
}

impl Memory {
    pub(crate) fn new(ram: Arc<Ram>) -> Self {
        Self {
            ram,
            regions: Vec::new(),
            tables: Vec::new(),
        }
    }

    pub(crate) fn pages(&self) -> usize {
        let mapped: usize = self.regions.iter().map(|region| region.pages.len()).sum();
        mapped + self.tables.len()
    }

    pub(crate) fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let at = self.regions.partition_point(|region| region.va < va);
        let mut region = Region {
            va,
            access,
            pages: Vec::new(),
        };
        for _ in 0..pages {
            match self.ram.allocate() {
                Some(page) => region.pages.push(page),
                None => {
                    region
                        .pages
                        .into_iter()
                        .for_each(|page| self.ram.release(page));
                    return Err(DeviceError::OutOfMemory);
                }
            }
        }
        self.regions.insert(at, region);
        Ok(())
    }

    pub(crate) fn release(&mut self) {
        let pages = self.regions.drain(..).flat_map(|region| region.pages);
        pages
            .chain(self.tables.drain(..))
            .for_each(|page| self.ram.release(page));
    }

    pub(crate) fn mappings(&self) -> Vec<(u64, u64, Access)> {
        let pages = |region: &'_ Region| {
            let (va, access) = (region.va, region.access);
            let addresses = region.pages.clone().into_iter();
            (va..)
                .step_by(PAGE_SIZE)
                .zip(addresses)
                .map(move |(va, pa)| (va, pa, access))
        };
        self.regions.iter().flat_map(pages).collect()
    }

    fn page(&self, va: u64) -> Option<(Page<'_>, usize)> {
        let after = self.regions.partition_point(|region| region.va <= va);
        let region = self.regions.get(after.checked_sub(1)?)?;
        let offset = va - region.va;
        let page = region.pages.get(usize::try_from(offset / PAGE).ok()?)?;
        Some((self.ram.page(*page)?, (offset % PAGE) as usize))
    }

    /// `step` gets page, offset, bytes done; returns bytes moved.
    fn walk(
        &self,
        va: u64,
        length: u64,
        mut step: impl FnMut(Page<'_>, usize, u64) -> u64,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let at = va.wrapping_add(done);
            let (page, offset) = self.page(at).ok_or(DeviceError::NotMapped(at))?;
            done += step(page, offset, done).max(1);
        }
        Ok(())
    }

    pub(crate) fn write(&self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.walk(va, bytes.len() as u64, |page, offset, done| {
            page.copy_from_slice(offset, &bytes[done as usize..]) as u64
        })
    }

    pub(crate) fn read(&self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.walk(va, bytes.len() as u64, |page, offset, done| {
            page.copy_to_slice(offset, &mut bytes[done as usize..]) as u64
        })
    }

    pub(crate) fn fill(&self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let block = [byte; PAGE_SIZE];
        self.walk(va, length, |page, offset, done| {
            let left = usize::try_from(length - done)
                .unwrap_or(PAGE_SIZE)
                .min(PAGE_SIZE);
            page.copy_from_slice(offset, &block[..left]) as u64
        })
    }
}

pub(crate) struct Tables<'a> {
    pub(crate) memory: &'a mut Memory,
}

impl TableMemory for Tables<'_> {
    fn allocate(&mut self) -> Option<u64> {
        let page = self.memory.ram.allocate()?;
        self.memory.tables.push(page);
        Some(page)
    }

    fn read(&mut self, pa: u64) -> u64 {
        let page = self.memory.ram.page(pa);
        page.map_or(0, |page| page.load_u64((pa % PAGE) as usize))
    }

    fn write(&mut self, pa: u64, entry: u64) {
        if let Some(page) = self.memory.ram.page(pa) {
            page.store_u64((pa % PAGE) as usize, entry);
        }
    }
}
