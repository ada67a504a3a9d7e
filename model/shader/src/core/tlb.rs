// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation look-aside buffers of a host thread.

use gpureplay_memory::{PAGE_SIZE, Page};

use crate::{Access, AddressSpace, MmuFault};

/// Entries until two pages need the same one.
const FEW: usize = 16;
const MANY: usize = 256;

/// Part of an address in its page.
pub const OFFSET: u64 = PAGE_SIZE as u64 - 1;

type Entry<'s> = (u64, Option<Page<'s>>);

fn empty<'s>(count: usize) -> Vec<Entry<'s>> {
    std::iter::repeat_with(|| (u64::MAX, None))
        .take(count)
        .collect()
}

/// Direct-mapped, for one kind of access.
pub struct Tlb<'s> {
    space: &'s dyn AddressSpace,
    access: Access,
    entries: Vec<Entry<'s>>,
    misses: u64,
}

impl<'s> Tlb<'s> {
    pub(crate) fn new(space: &'s dyn AddressSpace, access: Access) -> Tlb<'s> {
        Tlb {
            space,
            access,
            entries: empty(FEW),
            misses: 0,
        }
    }

    pub(super) fn take_misses(&mut self) -> u64 {
        std::mem::take(&mut self.misses)
    }

    #[inline(always)]
    pub(crate) fn page(&mut self, va: u64) -> Result<&Page<'s>, MmuFault> {
        let number = va / PAGE_SIZE as u64;
        if self.entries[self.slot(number)].0 != number {
            self.fill(number, va)?;
        }
        match &self.entries[self.slot(number)].1 {
            Some(page) => Ok(page),
            None => Err(MmuFault {
                va,
                access: self.access,
                code: 0xc3,
            }),
        }
    }

    pub(crate) fn get(&mut self, va: u64) -> Option<Page<'s>> {
        self.page(va).ok().cloned()
    }

    #[inline(always)]
    pub(crate) fn neighbours(&mut self, vas: [u64; 2]) -> Result<[&Page<'s>; 2], MmuFault> {
        for va in vas {
            self.page(va)?;
        }
        // Neighbours have different entries, so the second look-up keeps the first page.
        let page = |va: u64| {
            let entry = &self.entries[self.slot(va / PAGE_SIZE as u64)];
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
    fn fill(&mut self, number: u64, va: u64) -> Result<(), MmuFault> {
        self.misses += 1;
        let page = self.space.translate(va, self.access)?;
        if self.entries.len() < MANY && self.entries[self.slot(number)].1.is_some() {
            let few = std::mem::replace(&mut self.entries, empty(MANY));
            for entry in few.into_iter().filter(|entry| entry.1.is_some()) {
                let slot = self.slot(entry.0);
                self.entries[slot] = entry;
            }
        }
        let slot = self.slot(number);
        self.entries[slot] = (number, Some(page));
        Ok(())
    }

    #[inline(always)]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    /// Reads in ascending order.
    pub fn read(&mut self, va: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < to.len() {
            let at = va.wrapping_add(done as u64);
            done += self
                .page(at)?
                .copy_to_slice((at & OFFSET) as usize, &mut to[done..]);
        }
        Ok(())
    }

    /// Looks up all pages first.
    pub fn write(&mut self, va: u64, from: &[u8]) -> Result<(), MmuFault> {
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
