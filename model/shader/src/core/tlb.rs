// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation look-aside buffers: pages that a host thread reached before in this dispatch.

use mali_memory::{PAGE_SIZE, Page};

use crate::{Access, AddressSpace, MmuFault};

const ENTRIES: usize = 256;

/// Offset of an address in its page.
pub(crate) const OFFSET: u64 = PAGE_SIZE as u64 - 1;

/// Direct-mapped translations of one kind of access.
pub(crate) struct Tlb<'s> {
    space: &'s dyn AddressSpace,
    access: Access,
    entries: Vec<(u64, Option<Page<'s>>)>,
    /// Pages looked up in the address space.
    misses: u64,
}

impl<'s> Tlb<'s> {
    pub(crate) fn new(space: &'s dyn AddressSpace, access: Access) -> Tlb<'s> {
        Tlb {
            space,
            access,
            entries: vec![(u64::MAX, None); ENTRIES],
            misses: 0,
        }
    }

    /// How many pages were looked up in the address space since the last time.
    pub(super) fn take_misses(&mut self) -> u64 {
        std::mem::take(&mut self.misses)
    }

    /// The page of `va`.
    #[inline(always)]
    pub(crate) fn page(&mut self, va: u64) -> Result<&Page<'s>, MmuFault> {
        let number = va / PAGE_SIZE as u64;
        let slot = number as usize % ENTRIES;
        if self.entries[slot].0 != number {
            self.fill(slot, number, va)?;
        }
        match &self.entries[slot].1 {
            Some(page) => Ok(page),
            None => Err(MmuFault {
                va,
                access: self.access,
                code: 0xc3,
            }),
        }
    }

    /// The pages of two addresses in neighbouring pages, looked up in this order.
    #[inline(always)]
    pub(crate) fn neighbours(&mut self, vas: [u64; 2]) -> Result<[&Page<'s>; 2], MmuFault> {
        for va in vas {
            self.page(va)?;
        }
        // Neighbours have different entries, so that both are there now.
        let page = |va: u64| {
            let entry = &self.entries[(va / PAGE_SIZE as u64) as usize % ENTRIES];
            let known = entry
                .1
                .as_ref()
                .filter(|_| entry.0 == va / PAGE_SIZE as u64);
            known.ok_or(MmuFault {
                va,
                access: self.access,
                code: 0xc3,
            })
        };
        Ok([page(vas[0])?, page(vas[1])?])
    }

    #[cold]
    fn fill(&mut self, slot: usize, number: u64, va: u64) -> Result<(), MmuFault> {
        self.misses += 1;
        let page = self.space.translate(va, self.access)?;
        self.entries[slot] = (number, Some(page));
        Ok(())
    }

    /// Reads bytes that may cross pages.
    pub(crate) fn read(&mut self, va: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < to.len() {
            let at = va.wrapping_add(done as u64);
            done += self
                .page(at)?
                .copy_to_slice((at & OFFSET) as usize, &mut to[done..]);
        }
        Ok(())
    }

    /// Writes bytes that may cross pages. All pages are looked up before the first byte is written.
    pub(crate) fn write(&mut self, va: u64, from: &[u8]) -> Result<(), MmuFault> {
        if let Some(last) = from.len().checked_sub(1) {
            self.page(va.wrapping_add(last as u64))?;
        }
        let mut done = 0;
        while done < from.len() {
            let at = va.wrapping_add(done as u64);
            done += self
                .page(at)?
                .copy_from_slice((at & OFFSET) as usize, &from[done..]);
        }
        Ok(())
    }
}
