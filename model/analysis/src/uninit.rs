// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of unwritten memory. A work group's storage is unwritten when it begins.

use std::collections::BTreeMap;

use gpureplay_shader::probe::{Access, AccessKind, Place, Storages};

use crate::pages::{PAGE, Pages, by_page};
use crate::pattern::Pattern;

/// 8 GiB of memory, 512 bytes each.
const MOST: usize = 1 << 21;

/// 64 MiB, four times that for owners.
const MOST_GROUP: usize = 1 << 14;

struct Bits([u64; 64]);

impl Default for Bits {
    fn default() -> Bits {
        Bits([0; 64])
    }
}

impl Bits {
    fn set(&mut self, offset: usize, length: usize) {
        if (offset, length) == (0, PAGE as usize) {
            self.0 = [u64::MAX; 64];
            return;
        }
        for (word, mask) in masks(offset, length) {
            self.0[word] |= mask;
        }
    }

    fn has(&self, offset: usize, length: usize) -> bool {
        masks(offset, length).all(|(word, mask)| self.0[word] & mask == mask)
    }

    fn missing(&self, offset: usize, length: usize) -> impl Iterator<Item = usize> {
        (offset..offset + length).filter(|at| self.0[at / 64] >> (at % 64) & 1 == 0)
    }
}

#[inline]
fn masks(offset: usize, length: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + length;
    let (first, last) = (offset / 64, end.div_ceil(64));
    (first..last.min(64)).map(move |word| {
        let from = offset.saturating_sub(word * 64);
        let to = (end - word * 64).min(64);
        (word, u64::MAX >> (64 - (to - from)) << from)
    })
}

pub(crate) struct Written(Pages<Bits>);

impl Default for Written {
    fn default() -> Written {
        Written(Pages::new(MOST))
    }
}

impl Written {
    pub(crate) fn mark(&mut self, at: u64, bytes: u64) {
        for (page, offset, length) in by_page(at, bytes) {
            if let Some(bits) = self.0.page(page) {
                bits.set(offset, length);
            }
        }
    }

    fn has(&mut self, at: u64, bytes: u64) -> bool {
        by_page(at, bytes).all(|(page, offset, length)| {
            // Without room it counts as written; the analysis is incomplete.
            self.0
                .page(page)
                .is_none_or(|bits| bits.has(offset, length))
        })
    }

    fn missing(&mut self, at: u64, bytes: u64) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (page, offset, length) in by_page(at, bytes) {
            if let Some(bits) = self.0.page(page) {
                for missing in bits.missing(offset, length) {
                    count += 1;
                    first.get_or_insert(page * PAGE + missing as u64);
                }
            }
        }
        (count, first)
    }
}

/// Work group that wrote each byte of a page, from 1.
struct Owners([u32; PAGE as usize]);

impl Default for Owners {
    fn default() -> Owners {
        Owners([0; PAGE as usize])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    pub(crate) lanes: u64,
    pub(crate) bytes: u64,
    pub(crate) first: u64,
    pub(crate) thread: u64,
    pub(crate) group: bool,
}

pub(crate) struct Uninit {
    written: Written,
    owners: Pages<Owners>,
    storages: Storages,
    full: bool,
    /// By clause.
    pub(crate) reads: BTreeMap<u64, Reads>,
}

impl Uninit {
    pub(crate) fn new(written: Written, storages: Storages) -> Uninit {
        Uninit {
            written,
            owners: Pages::new(MOST_GROUP),
            storages,
            full: false,
            reads: BTreeMap::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn take_written(&mut self) -> Written {
        self.full = self.written.0.full || self.owners.full;
        std::mem::take(&mut self.written)
    }

    pub(crate) fn access(&mut self, access: &Access<'_>, pattern: Pattern) {
        let bytes = u64::from(access.bytes);
        let lanes = &access.visit.lanes;
        let all = bytes * u64::from(lanes.active.count_ones());
        let reads = access.kind != AccessKind::Store;
        let writes = access.kind != AccessKind::Load;
        // In group storage it holds only within a group.
        let range = match pattern {
            Pattern::Uniform(at) => Some((at, bytes)),
            Pattern::Consecutive(at) => Some((at, all)),
            Pattern::Scattered => None,
        };
        if let Some((at, bytes)) = range
            && self.storages.place(at) == Place::Global
        {
            if !reads {
                return self.written.mark(at, bytes);
            }
            if self.written.has(at, bytes) {
                return;
            }
        }
        for lane in lanes.iter() {
            let (at, thread) = (access.address(lane), lanes.thread(lane));
            if self.storages.place(at) == Place::Group {
                let group = lanes.workgroup(lane);
                let tag = u32::try_from(group + 1).unwrap_or(u32::MAX);
                let (mut missing, mut first) = (0, None);
                for (page, offset, length) in by_page(at, bytes) {
                    let Some(owners) = self.owners.page(page) else {
                        continue;
                    };
                    for (offset, owner) in (offset..).zip(&mut owners.0[offset..offset + length]) {
                        if reads && *owner != tag {
                            missing += 1;
                            first.get_or_insert(page * PAGE + offset as u64);
                        }
                        if writes {
                            *owner = tag;
                        }
                    }
                }
                if let Some(first) = first {
                    self.found(access, (missing, first), thread, true);
                }
                continue;
            }
            if reads && !self.written.has(at, bytes) {
                let (missing, first) = self.written.missing(at, bytes);
                if let Some(first) = first {
                    self.found(access, (missing, first), thread, false);
                }
            }
            if writes {
                self.written.mark(at, bytes);
            }
        }
    }

    #[cold]
    fn found(&mut self, access: &Access<'_>, (bytes, first): (u64, u64), thread: u64, group: bool) {
        let known = self.reads.entry(access.visit.site.clause).or_insert(Reads {
            lanes: 0,
            bytes: 0,
            first,
            thread,
            group,
        });
        known.lanes += 1;
        known.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_or_not() {
        let mut written = Written::default();
        written.mark(4090, 10);
        written.mark(64, 64);
        assert!(written.has(4090, 10) && written.has(65, 63));
        assert!(!written.has(4089, 2) && !written.has(64, 65));
        assert_eq!(written.missing(4088, 14), (4, Some(4088)));
        written.mark(8192, 4096);
        assert!(written.has(8192, 4096));
    }
}
