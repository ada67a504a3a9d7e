// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtual machine's memory behind processor caches.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Bus, MapError, Mapped, PAGE_SIZE, Page, Ram};

/// Bytes; the unit of maintenance.
pub const LINE_SIZE: usize = 64;

const LINES: usize = PAGE_SIZE / LINE_SIZE;
const WORDS: usize = LINE_SIZE / 8;
/// Two per page that the GPU reaches: 8 GiB of address space.
const COPIES: usize = 1 << 21;
/// Where no cleaned cache has written.
const NEVER_WRITTEN: u64 = 0xdead_57a1_e0dd_ba11;
/// XORed to the GPU's bytes in a stale line: never the same byte.
const STALE: [u8; 2] = [0xa5, 0x5a];

/// What maintenance does to lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    /// Written data go to memory.
    Clean,
    /// Drops the copy, written or not.
    Invalidate,
    /// Clean, then invalidate.
    CleanInvalidate,
}

/// Page with lines in the processor's caches.
struct Apart {
    /// The GPU's view, a page of the copies.
    memory: u64,
    /// Lines when last filled, cleaned or made stale, a page of the copies.
    filled: u64,
    /// Lines cleaned or invalidated, as bits; others are not in memory.
    valid: u64,
}

enum State {
    Apart(Apart),
    /// Both see the same.
    Uncached,
}

struct Views {
    copies: Ram,
    pages: Mutex<HashMap<u64, State>>,
}

/// A virtual machine's memory ([`Mapped`]) as its GPU sees it.
///
/// Either coherent, or as if caches kept lines until cleaned or invalidated: the GPU has copies of the pages that it
/// reaches. Its writes turn wrong in the processor's view until invalidated: a stale value could be right by chance.
pub struct Cached {
    regions: Mapped,
    views: Option<Views>,
}

impl std::fmt::Debug for Cached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cached")
            .field("regions", &self.regions)
            .field("coherent", &self.views.is_none())
            .finish()
    }
}

impl Cached {
    /// A coherent bus without memory.
    pub fn coherent() -> Cached {
        Cached {
            regions: Mapped::new(),
            views: None,
        }
    }

    /// A bus without memory, not coherent.
    ///
    /// # Errors
    ///
    /// No address space for the copies.
    pub fn apart() -> std::io::Result<Cached> {
        Ok(Cached {
            regions: Mapped::new(),
            views: Some(Views {
                copies: Ram::new(COPIES)?,
                pages: Mutex::default(),
            }),
        })
    }

    /// Whether both see the same.
    pub fn is_coherent(&self) -> bool {
        self.views.is_none()
    }

    /// See [`Mapped::add`].
    ///
    /// # Errors
    ///
    /// See [`MapError`]; nothing has changed.
    pub fn add(
        &self,
        address: u64,
        length: u64,
        file: &impl AsRawFd,
        offset: u64,
        writable: bool,
    ) -> Result<(), MapError> {
        self.regions.add(address, length, file, offset, writable)
    }

    /// See [`Mapped::remove`].
    ///
    /// # Errors
    ///
    /// [`MapError::Unknown`].
    pub fn remove(&self, address: u64, length: u64) -> Result<(), MapError> {
        self.regions.remove(address, length)
    }

    /// Removes all regions.
    pub fn clear(&self) {
        self.regions.clear();
    }

    /// Maintains `lines` lines from `address` (rounded down) on, if they have memory.
    pub fn maintain(&self, what: Maintenance, address: u64, lines: u64) {
        let Some(views) = &self.views else { return };
        let mut pages = views.lock();
        for_pages(address, lines, |page, mask| {
            let Some(seen) = self.regions.page(page) else {
                return;
            };
            views.learn(&mut pages, page, &seen);
            if let Some(State::Apart(apart)) = pages.get_mut(&page) {
                views.maintain(apart, &seen, what, mask);
            }
        });
    }

    /// The processor now bypasses its caches there; what it had not cleaned is lost.
    pub fn set_uncached(&self, address: u64, lines: u64) {
        let Some(views) = &self.views else { return };
        let mut pages = views.lock();
        for_pages(address, lines, |page, _| {
            let Some(seen) = self.regions.page(page) else {
                return;
            };
            if let Some(State::Apart(mut apart)) = pages.insert(page, State::Uncached) {
                let valid = apart.valid;
                views.maintain(&mut apart, &seen, Maintenance::Invalidate, valid);
                views.release(&apart);
            }
        });
    }

    /// No longer shared with the GPU.
    pub fn forget(&self, address: u64, lines: u64) {
        let Some(views) = &self.views else { return };
        let mut pages = views.lock();
        for_pages(address, lines, |page, _| {
            if let Some(State::Apart(apart)) = pages.remove(&page) {
                views.release(&apart);
            }
        });
    }

    /// The GPU's writes become stale in caches.
    pub fn written(&self) {
        let Some(views) = &self.views else { return };
        for (&page, state) in views.lock().iter() {
            if let (State::Apart(apart), Some(seen)) = (state, self.regions.page(page)) {
                views.make_stale(apart, &seen);
            }
        }
    }
}

impl Bus for Cached {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let seen = self.regions.page(address)?;
        let Some(views) = &self.views else {
            return Some(seen);
        };
        let page = address & !(PAGE_SIZE as u64 - 1);
        let mut pages = views.lock();
        views.learn(&mut pages, page, &seen);
        match pages.get(&page)? {
            State::Uncached => Some(seen),
            State::Apart(apart) => views.copies.page(apart.memory),
        }
    }
}

impl Views {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, State>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without copies left the page stays unknown.
    fn learn(&self, pages: &mut HashMap<u64, State>, page: u64, seen: &Page<'_>) {
        if pages.contains_key(&page) {
            return;
        }
        let (Some(memory), Some(filled)) = (self.copies.allocate(), self.copies.allocate()) else {
            return;
        };
        if let (Some(memory), Some(filled)) = (self.copies.page(memory), self.copies.page(filled)) {
            memory.fill_u64(NEVER_WRITTEN);
            for at in (0..PAGE_SIZE).step_by(8) {
                filled.store_u64(at, seen.load_u64(at));
            }
        }
        let valid = 0;
        let apart = Apart {
            memory,
            filled,
            valid,
        };
        pages.insert(page, State::Apart(apart));
    }

    fn release(&self, apart: &Apart) {
        self.copies.release(apart.memory);
        self.copies.release(apart.filled);
    }

    fn maintain(&self, apart: &mut Apart, seen: &Page<'_>, what: Maintenance, mask: u64) {
        let copies = &self.copies;
        let (Some(memory), Some(filled)) = (copies.page(apart.memory), copies.page(apart.filled))
        else {
            return;
        };
        for line in (0..LINES).filter(|line| mask >> line & 1 != 0) {
            let words = (0..WORDS).map(|word| line * LINE_SIZE + word * 8);
            let written = apart.valid >> line & 1 == 0
                || words
                    .clone()
                    .any(|at| seen.load_u64(at) != filled.load_u64(at));
            if written && what != Maintenance::Invalidate {
                for at in words.clone() {
                    let word = seen.load_u64(at);
                    memory.store_u64(at, word);
                    filled.store_u64(at, word);
                }
            }
            if what != Maintenance::Clean {
                for at in words {
                    let word = memory.load_u64(at);
                    seen.store_u64(at, word);
                    filled.store_u64(at, word);
                }
            }
            apart.valid |= 1 << line;
        }
    }

    fn make_stale(&self, apart: &Apart, seen: &Page<'_>) {
        let copies = &self.copies;
        let (Some(memory), Some(filled)) = (copies.page(apart.memory), copies.page(apart.filled))
        else {
            return;
        };
        for line in (0..LINES).filter(|line| apart.valid >> line & 1 != 0) {
            let words = (0..WORDS).map(|word| line * LINE_SIZE + word * 8);
            for at in words.filter(|&at| memory.load_u64(at) != filled.load_u64(at)) {
                for at in at..at + 8 {
                    let (now, old) = (memory.load_u8(at), filled.load_u8(at));
                    // A byte that the processor wrote stays: its line fights with the GPU's.
                    if now == old || STALE.contains(&(now ^ old)) || seen.load_u8(at) != old {
                        continue;
                    }
                    filled.store_u8(at, now ^ STALE[0]);
                    seen.store_u8(at, now ^ STALE[0]);
                }
            }
        }
    }
}

/// Calls `each` for each page, a bit per line.
fn for_pages(address: u64, lines: u64, mut each: impl FnMut(u64, u64)) {
    let line = address / LINE_SIZE as u64;
    let last = line.saturating_add(lines).min(u64::MAX / LINE_SIZE as u64);
    let mut at = line;
    while at < last {
        let page = at / LINES as u64;
        let end = last.min((page + 1) * LINES as u64);
        let below = |line: u64| match line - page * LINES as u64 {
            count @ 0..64 => (1u64 << count) - 1,
            _ => u64::MAX,
        };
        each(page * PAGE_SIZE as u64, below(end) & !below(at));
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    const RAM: u64 = 0x4000_0000;

    fn machine(cached: Cached) -> (Cached, File) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * PAGE_SIZE as u64).unwrap();
        cached
            .add(RAM, 2 * PAGE_SIZE as u64, &file, 0, true)
            .unwrap();
        (cached, file)
    }

    fn gpu(cached: &Cached, at: u64) -> u32 {
        let mut bytes = [0; 4];
        cached.read(RAM + at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn gpu_writes(cached: &Cached, at: u64, value: u32) {
        cached.write(RAM + at, &value.to_le_bytes()).unwrap();
        cached.written();
    }

    fn cpu(file: &File, at: u64) -> u32 {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn cpu_writes(file: &File, at: u64, value: u32) {
        file.write_all_at(&value.to_le_bytes(), at).unwrap();
    }

    #[test]
    fn coherent_memory_needs_no_maintenance() {
        let (cached, file) = machine(Cached::coherent());
        cpu_writes(&file, 8, 5);
        assert_eq!(gpu(&cached, 8), 5);
        gpu_writes(&cached, 8, 6);
        assert_eq!(cpu(&file, 8), 6);
    }

    #[test]
    fn what_the_processor_wrote_is_seen_when_it_was_cleaned() {
        let (cached, file) = machine(Cached::apart().unwrap());
        cpu_writes(&file, 0, 1);
        cpu_writes(&file, 64, 2);
        assert_eq!(gpu(&cached, 0), NEVER_WRITTEN as u32);
        cached.maintain(Maintenance::Clean, RAM, 1);
        assert_eq!(
            (gpu(&cached, 0), gpu(&cached, 64)),
            (1, NEVER_WRITTEN as u32)
        );
        cpu_writes(&file, 0, 3);
        assert_eq!(gpu(&cached, 0), 1);
        cached.maintain(Maintenance::Clean, RAM, 64);
        assert_eq!((gpu(&cached, 0), gpu(&cached, 64)), (3, 2));
        assert_eq!(gpu(&cached, 4096), NEVER_WRITTEN as u32);
    }

    #[test]
    fn what_the_gpu_wrote_is_seen_when_it_was_invalidated() {
        let (cached, file) = machine(Cached::apart().unwrap());
        cached.maintain(Maintenance::Clean, RAM, 64);
        for value in [7, 8] {
            gpu_writes(&cached, 128, value);
            let stale = cpu(&file, 128);
            assert_ne!(stale & 0xff, value);
            cached.written();
            assert_eq!(cpu(&file, 128), stale);
            cached.maintain(Maintenance::Invalidate, RAM + 130, 1);
            assert_eq!(cpu(&file, 128), value);
        }
    }

    #[test]
    fn cleaning_writes_back_only_what_was_written_to() {
        let (cached, file) = machine(Cached::apart().unwrap());
        cpu_writes(&file, 0, 1);
        cached.maintain(Maintenance::Clean, RAM, 64);
        gpu_writes(&cached, 0, 9);
        gpu_writes(&cached, 64, 10);
        // The same value is a write, too.
        cpu_writes(&file, 0, 1);
        cached.maintain(Maintenance::Clean, RAM, 64);
        assert_eq!((gpu(&cached, 0), gpu(&cached, 64)), (1, 10));
        gpu_writes(&cached, 0, 11);
        cached.maintain(Maintenance::CleanInvalidate, RAM, 64);
        assert_eq!((cpu(&file, 0), cpu(&file, 64)), (11, 10));
    }

    #[test]
    fn invalidating_loses_what_was_not_cleaned() {
        let (cached, file) = machine(Cached::apart().unwrap());
        cached.maintain(Maintenance::Clean, RAM, 64);
        cpu_writes(&file, 4, 5);
        cached.maintain(Maintenance::Invalidate, RAM, 64);
        assert_eq!(cpu(&file, 4), 0);
    }

    #[test]
    fn uncached_pages_are_the_same_for_both_until_they_are_forgotten() {
        let (cached, file) = machine(Cached::apart().unwrap());
        cpu_writes(&file, 0, 1);
        cached.maintain(Maintenance::Clean, RAM, 64);
        cpu_writes(&file, 0, 2);
        gpu_writes(&cached, 4, 3);
        cached.set_uncached(RAM, 64);
        assert_eq!((cpu(&file, 0), cpu(&file, 4)), (1, 3));
        cpu_writes(&file, 0, 4);
        gpu_writes(&cached, 4, 5);
        cached.maintain(Maintenance::CleanInvalidate, RAM, 64);
        assert_eq!((gpu(&cached, 0), cpu(&file, 4)), (4, 5));
        cached.forget(RAM, 64);
        assert_eq!(gpu(&cached, 0), NEVER_WRITTEN as u32);
    }

    #[test]
    fn ranges_are_cut_at_pages_and_memory() {
        let mut seen = Vec::new();
        for_pages(4096 - 64, 66, |page, mask| seen.push((page, mask)));
        assert_eq!(seen, [(0, 1 << 63), (4096, u64::MAX), (8192, 1)]);
        let (cached, _file) = machine(Cached::apart().unwrap());
        cached.maintain(Maintenance::Clean, RAM - 4096, 64 * 4);
        cached.maintain(Maintenance::Invalidate, u64::MAX - 4096, u64::MAX);
        cached.set_uncached(0, 1);
        cached.forget(0, 1);
        assert_eq!(gpu(&cached, 4096), 0);
    }
}
