// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of this process, by page.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{MmapOptions, MmapRaw};

use crate::{Bus, PAGE_SIZE, Page};

/// Anonymous memory from [`Ram::BASE`] on; unwritten pages cost nothing.
#[derive(Debug)]
pub struct Ram {
    memory: MmapRaw,
    pages: usize,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    /// From here on never handed out, and zero.
    untouched: usize,
    released: BTreeSet<u64>,
}

impl Ram {
    /// Bus address of the first page.
    pub const BASE: u64 = 0x1000_0000;

    /// Makes room for `pages` pages.
    ///
    /// # Errors
    ///
    /// No address space of that size.
    pub fn new(pages: usize) -> std::io::Result<Ram> {
        let bytes = pages
            .checked_mul(PAGE_SIZE)
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let memory = MmapOptions::new()
            .len(bytes.max(PAGE_SIZE))
            .no_reserve_swap()
            .map_anon()?;
        Ok(Ram {
            memory: memory.into(),
            pages,
            free: Mutex::default(),
        })
    }

    /// A zero page; `None`: none is left.
    pub fn allocate(&self) -> Option<u64> {
        let mut free = self.lock();
        if let Some(address) = free.released.pop_first() {
            drop(free);
            self.page(address)?.fill_u64(0);
            return Some(address);
        }
        drop(free);
        self.allocate_contiguous(1)
    }

    /// `count` zero pages in a row.
    pub fn allocate_contiguous(&self, count: usize) -> Option<u64> {
        let mut free = self.lock();
        let first = free.untouched;
        let end = first.checked_add(count).filter(|&end| end <= self.pages)?;
        free.untouched = end;
        Some(Self::BASE + (first * PAGE_SIZE) as u64)
    }

    /// Takes a page back.
    pub fn release(&self, address: u64) {
        let mut free = self.lock();
        let known = address
            .checked_sub(Self::BASE)
            .is_some_and(|at| at / (PAGE_SIZE as u64) < free.untouched as u64);
        if known && address.is_multiple_of(PAGE_SIZE as u64) {
            free.released.insert(address);
        }
    }

    /// Whether the page is handed out.
    pub fn is_allocated(&self, address: u64) -> bool {
        let page = address - address % PAGE_SIZE as u64;
        let free = self.lock();
        let known = page
            .checked_sub(Self::BASE)
            .is_some_and(|at| at / (PAGE_SIZE as u64) < free.untouched as u64);
        known && !free.released.contains(&page)
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for Ram {
    #[inline]
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let index = address.checked_sub(Self::BASE)? / PAGE_SIZE as u64;
        let index = usize::try_from(index)
            .ok()
            .filter(|&index| index < self.pages)?;
        // SAFETY: `index` is below the mapping's `pages`; the mapping lives as long as `self`.
        unsafe {
            let base = NonNull::new_unchecked(self.memory.as_mut_ptr().add(index * PAGE_SIZE));
            Some(Page::new(base, None))
        }
    }
}
