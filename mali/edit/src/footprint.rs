// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mali_facts::job::WRITTEN_BACK;
use mali_model::probe::{
    Access as Probed, AccessKind, Analyser, Launch, Part, Place, Storages, Visit, Wanted,
};
use mali_model::{Access, Dispatch, JobReport, Observer};

pub(crate) const PAGE: u64 = 4096;
/// 1 GiB.
pub(crate) const MAX_PAGES: usize = 1 << 18;

/// Addresses, by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(BTreeMap<u64, Bits>);

#[derive(Clone, Debug)]
enum Bits {
    /// Takes no memory, as most pages of large jobs.
    All,
    Some(Box<[u64; 64]>),
}

const ALL: &[u64; 64] = &[u64::MAX; 64];

impl Bits {
    fn words(&self) -> &[u64; 64] {
        match self {
            Self::All => ALL,
            Self::Some(words) => words,
        }
    }

    fn add(&mut self, word: usize, bits: u64) {
        let Self::Some(words) = self else { return };
        let before = words[word];
        words[word] |= bits;
        if before != u64::MAX && words[word] == u64::MAX && **words == *ALL {
            *self = Self::All;
        }
    }
}

impl Default for Bits {
    fn default() -> Self {
        Self::Some(Box::new([0; 64]))
    }
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for Bits {}

impl Bytes {
    /// Adds a range. False: too many pages.
    pub fn add(&mut self, address: u64, bytes: u64) -> bool {
        self.add_within(address, bytes, MAX_PAGES)
    }

    pub(crate) fn add_within(&mut self, address: u64, bytes: u64, pages: usize) -> bool {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let page = at - at % PAGE;
            let stop = end.min(page.saturating_add(PAGE));
            if self.0.len() >= pages && !self.0.contains_key(&page) {
                return false;
            }
            let bits = self.0.entry(page).or_default();
            let (mut offset, last) = ((at - page) as usize, (stop - page) as usize);
            while offset < last {
                let next = last.min((offset / 64 + 1) * 64);
                let mask = u64::MAX >> (64 - (next - offset)) << (offset % 64);
                bits.add(offset / 64, mask);
                offset = next;
            }
            at = stop;
        }
        true
    }

    /// Adds another set.
    pub fn union(&mut self, other: &Self) {
        for (page, theirs) in &other.0 {
            match self.0.get_mut(page) {
                None => drop(self.0.insert(*page, theirs.clone())),
                Some(Bits::All) => {}
                Some(mine) => {
                    for (word, bits) in theirs.words().iter().enumerate() {
                        mine.add(word, *bits);
                    }
                }
            }
        }
    }

    /// Whether both share an address.
    pub fn meets(&self, other: &Self) -> bool {
        let (fewer, more) = match self.0.len() <= other.0.len() {
            true => (self, other),
            false => (other, self),
        };
        fewer.0.iter().any(|(page, bits)| {
            let theirs = more.0.get(page).map(Bits::words);
            theirs.is_some_and(|theirs| {
                let mut words = bits.words().iter().zip(theirs);
                words.any(|(ours, theirs)| ours & theirs != 0)
            })
        })
    }

    /// Whether an address is in the set.
    pub fn contains(&self, address: u64) -> bool {
        let bits = self.0.get(&(address - address % PAGE));
        let offset = (address % PAGE) as usize;
        bits.is_some_and(|bits| bits.words()[offset / 64] >> (offset % 64) & 1 == 1)
    }

    /// First address that `other` lacks.
    pub fn first_beyond(&self, other: &Self) -> Option<u64> {
        const NONE: &[u64; 64] = &[0; 64];
        self.0.iter().find_map(|(page, bits)| {
            let known = other.0.get(page).map_or(NONE, Bits::words);
            let mut words = bits.words().iter().zip(known).enumerate();
            words.find_map(|(at, (bits, known))| {
                let beyond = bits & !known;
                let bit = u64::from(beyond.trailing_zeros());
                (beyond != 0).then(|| page + 64 * at as u64 + bit)
            })
        })
    }

    /// Number of addresses.
    pub fn count(&self) -> u64 {
        let bits = self.0.values().flat_map(|bits| bits.words());
        bits.map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// First address and length, ascending.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (page, bits) in &self.0 {
            for (word, bits) in (0..).zip(bits.words()) {
                let mut left = *bits;
                while left != 0 {
                    let start = left.trailing_zeros();
                    let length = (left >> start).trailing_ones();
                    let at = page + 64 * word + u64::from(start);
                    match ranges.last_mut() {
                        Some((first, bytes)) if *first + *bytes == at => {
                            *bytes += u64::from(length)
                        }
                        _ => ranges.push((at, length.into())),
                    }
                    left &= u64::MAX.checked_shl(start + length).unwrap_or(0);
                }
            }
        }
        ranges
    }

    /// Pages with an address of the set.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.keys().copied()
    }
}

/// What a job reaches.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// By its shader, without storage of threads and work groups.
    pub read: Bytes,
    /// By its shader, without storage; and a write-value job's value.
    pub written: Bytes,
    /// Descriptors, code, uniforms, buffers.
    pub pages: BTreeSet<u64>,
    /// Coordinates reach textures or images: `read` and `written` are not all.
    pub unseen: bool,
    /// More memory was reached than is kept.
    pub full: bool,
    /// Reports of the jobs that ended.
    pub jobs: Vec<JobReport>,
}

#[derive(Debug)]
pub(crate) struct Watcher {
    /// Address of the job's header: the status there is no result.
    header: u64,
    found: Arc<Mutex<Footprint>>,
}

pub(crate) fn lock(footprint: &Mutex<Footprint>) -> MutexGuard<'_, Footprint> {
    footprint.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    pub(crate) fn new(header: u64) -> Self {
        Self {
            header,
            found: Arc::default(),
        }
    }

    pub(crate) fn take(&self) -> Footprint {
        std::mem::take(&mut *lock(&self.found))
    }
}

impl Observer for Watcher {
    fn job(&self, report: &JobReport) {
        lock(&self.found).jobs.push(report.clone());
    }

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: Access) {
        if access != Access::Write {
            lock(&self.found).pages.insert(va - va % PAGE);
        }
    }

    fn wrote(&self, va: u64, bytes: u64) {
        if va.wrapping_sub(self.header) >= WRITTEN_BACK {
            let mut found = lock(&self.found);
            found.full |= !found.written.add(va, bytes);
        }
    }

    fn analyser(&self, _: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        Some(Box::new(Looker::new(
            self.found.clone(),
            dispatch,
            MAX_PAGES,
        )))
    }
}

pub(crate) struct Looker {
    all: Arc<Mutex<Footprint>>,
    storages: Storages,
    pages: usize,
}

impl Looker {
    pub(crate) fn new(all: Arc<Mutex<Footprint>>, dispatch: &Dispatch, pages: usize) -> Self {
        Self {
            all,
            storages: Storages::of(&dispatch.grid),
            pages,
        }
    }
}

impl Analyser for Looker {
    fn wanted(&self) -> Wanted {
        Wanted {
            accesses: true,
            ..Wanted::default()
        }
    }

    fn part(&self, _: &Launch<'_>) -> Box<dyn Part> {
        Box::new(Share {
            all: self.all.clone(),
            storages: self.storages,
            pages: self.pages,
            own: Footprint::default(),
        })
    }
}

struct Share {
    all: Arc<Mutex<Footprint>>,
    storages: Storages,
    pages: usize,
    own: Footprint,
}

impl Part for Share {
    fn access(&mut self, access: &Probed<'_>) {
        let bytes = u64::from(access.bytes);
        for lane in access.visit.lanes.iter() {
            let address = access.address(lane);
            if self.storages.place(address) != Place::Global {
                continue;
            }
            let (reads, writes) = match access.kind {
                AccessKind::Load => (true, false),
                AccessKind::Store => (false, true),
                AccessKind::Atomic => (true, true),
            };
            let mut kept = true;
            if reads {
                kept &= self.own.read.add_within(address, bytes, self.pages);
            }
            if writes {
                kept &= self.own.written.add_within(address, bytes, self.pages);
            }
            self.own.full |= !kept;
        }
    }

    fn unseen(&mut self, _: &Visit<'_>) {
        self.own.unseen = true;
    }

    fn finish(self: Box<Self>) {
        let mut all = lock(&self.all);
        all.read.union(&self.own.read);
        all.written.union(&self.own.written);
        all.unseen |= self.own.unseen;
        all.full |= self.own.full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_over_pages() {
        let mut bytes = Bytes::default();
        assert!(bytes.add(0xff8, 16) && bytes.add(0x1008, 1) && bytes.add(0x3000, 2));
        assert_eq!(bytes.ranges(), [(0xff8, 17), (0x3000, 2)]);
        assert_eq!(bytes.count(), 19);
        assert!(bytes.contains(0x1008) && !bytes.contains(0x1009));
        let mut more = bytes.clone();
        assert_eq!(more.first_beyond(&bytes), None);
        assert!(more.add(0x3002, 1));
        assert_eq!(more.first_beyond(&bytes), Some(0x3002));
        assert_eq!(bytes.first_beyond(&more), None);
        assert!(bytes.meets(&more) && more.meets(&bytes));
        let mut beside = Bytes::default();
        assert!(beside.add(0x1009, 0x1ff7) && beside.add(0x3002, 1));
        assert!(!bytes.meets(&beside) && !beside.meets(&bytes) && beside.meets(&more));
    }

    #[test]
    fn a_page_that_is_full_holds_no_bits() {
        let mut bytes = Bytes::default();
        for at in (0x1000..0x3000).step_by(12) {
            bytes.add(at, 12);
        }
        assert_eq!(bytes.ranges(), [(0x1000, 0x2004)]);
        assert!(matches!(bytes.0[&0x1000], Bits::All) && matches!(bytes.0[&0x2000], Bits::All));
        let mut halves = [0x5000, 0x5800].map(|at| {
            let mut half = Bytes::default();
            half.add(at, 0x800);
            half
        });
        let [low, high] = &mut halves;
        assert_eq!(low.first_beyond(high), Some(0x5000));
        low.union(high);
        assert!(matches!(low.0[&0x5000], Bits::All));
        assert_eq!((low.count(), low.contains(0x5fff)), (0x1000, true));
    }
}
