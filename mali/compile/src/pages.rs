// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page contents, each stored once, and their history.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use gpureplay_trace::PAGE_SIZE;

const PAGE: u64 = PAGE_SIZE as u64;

/// One page.
pub type PageBytes = [u8; PAGE_SIZE];

/// A page content in a [`Pool`]; equal contents have equal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content(u32);

impl Content {
    /// All zeros.
    pub const ZERO: Content = Content(0);
}

/// Distinct page contents.
#[derive(Debug)]
pub struct Pool {
    contents: Vec<Box<PageBytes>>,
    by_hash: HashMap<u64, Vec<Content>>,
    hasher: RandomState,
}

impl Default for Pool {
    fn default() -> Self {
        let mut pool = Pool {
            contents: Vec::new(),
            by_hash: HashMap::new(),
            hasher: RandomState::new(),
        };
        pool.intern(&[0; PAGE_SIZE]);
        pool
    }
}

impl Pool {
    /// Stores a content if new.
    pub fn intern(&mut self, bytes: &PageBytes) -> Content {
        let same_hash = self.by_hash.entry(self.hasher.hash_one(bytes)).or_default();
        for known in same_hash.iter() {
            if *self.contents[known.0 as usize] == *bytes {
                return *known;
            }
        }
        let new = Content(self.contents.len() as u32);
        self.contents.push(Box::new(*bytes));
        same_hash.push(new);
        new
    }

    /// A content's bytes.
    pub fn bytes(&self, content: Content) -> &PageBytes {
        &self.contents[content.0 as usize]
    }

    /// Number of contents, zeros included.
    pub fn len(&self) -> usize {
        self.contents.len()
    }

    /// Never true: zeros are always there.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }
}

/// Point before or after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u32);

impl Moment {
    /// Before a job, after the CPU's writes.
    pub const fn before(job: usize) -> Moment {
        Moment(2 * job as u32)
    }

    /// After a job.
    pub const fn after(job: usize) -> Moment {
        Moment(2 * job as u32 + 1)
    }

    /// Index of its job.
    pub const fn job(self) -> usize {
        self.0 as usize / 2
    }

    /// After its job: then the GPU made the changes since the previous moment.
    pub const fn is_after(self) -> bool {
        self.0 % 2 == 1
    }

    /// `None` at the start.
    pub fn previous(self) -> Option<Moment> {
        self.0.checked_sub(1).map(Moment)
    }
}

/// What every page held when.
#[derive(Debug, Default)]
pub struct Memory {
    /// Contents.
    pub pool: Pool,
    pages: BTreeMap<u64, Vec<(Moment, Content)>>,
    changed: BTreeMap<Moment, BTreeSet<u64>>,
}

impl Memory {
    /// Sets a page from this moment on. Moments must not decrease.
    pub fn set(&mut self, moment: Moment, va: u64, bytes: Option<&PageBytes>) {
        let content = bytes.map_or(Content::ZERO, |b| self.pool.intern(b));
        let history = self.pages.entry(va).or_default();
        match history.last_mut() {
            Some((last, old)) if *last == moment => *old = content,
            Some((_, old)) if *old == content => return,
            _ => history.push((moment, content)),
        }
        self.changed.entry(moment).or_default().insert(va);
    }

    /// Forgets later changes.
    pub fn forget_after(&mut self, moment: Moment) {
        self.changed.retain(|changed, _| *changed <= moment);
        for history in self.pages.values_mut() {
            history.retain(|(changed, _)| *changed <= moment);
        }
        self.pages.retain(|_, history| !history.is_empty());
    }

    /// A page's content; `None` if not known yet.
    pub fn at(&self, moment: Moment, va: u64) -> Option<Content> {
        let history = self.pages.get(&va)?;
        let later = history.partition_point(|(m, _)| *m <= moment);
        history
            .get(later.checked_sub(1)?)
            .map(|(_, content)| *content)
    }

    /// Last one up to this moment.
    pub fn last_change(&self, moment: Moment, va: u64) -> Option<Moment> {
        let history = self.pages.get(&va)?;
        let later = history.partition_point(|(m, _)| *m <= moment);
        history.get(later.checked_sub(1)?).map(|(m, _)| *m)
    }

    /// When a word changed last, after `since` and up to `until`.
    pub fn word_changed(&self, since: Option<Moment>, until: Moment, va: u64) -> Option<Moment> {
        let history = self.history(va - va % PAGE);
        let later = history.partition_point(|(m, _)| *m <= until);
        let first = since.map_or(0, |since| history.partition_point(|(m, _)| *m <= since));
        let at = (va % PAGE) as usize;
        let word = |index: usize| {
            let (_, content) = history[index];
            self.pool.bytes(content).get(at..at + 4)
        };
        let differs = |index: &usize| match index.checked_sub(1) {
            Some(before) => word(before) != word(*index),
            None => word(*index) != Some(&[0; 4]),
        };
        let last = (first..later).rev().find(differs)?;
        Some(history[last].0)
    }

    /// When a page is first seen; `None` if never.
    pub fn first_seen(&self, va: u64) -> Option<Moment> {
        self.pages.get(&va)?.first().map(|(m, _)| *m)
    }

    /// All changes of a page.
    pub fn history(&self, va: u64) -> &[(Moment, Content)] {
        self.pages.get(&va).map_or(&[], Vec::as_slice)
    }

    /// All pages, ascending.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    /// Number of known pages.
    pub fn known(&self) -> usize {
        self.pages.len()
    }

    /// Pages changed at this moment.
    pub fn changed(&self, moment: Moment) -> &BTreeSet<u64> {
        static NONE: BTreeSet<u64> = BTreeSet::new();
        self.changed.get(&moment).unwrap_or(&NONE)
    }

    /// A page's bytes; zeros if unknown.
    pub fn page(&self, moment: Moment, va: u64) -> &PageBytes {
        self.pool
            .bytes(self.at(moment, va).unwrap_or(Content::ZERO))
    }

    /// `false` if a page is unknown.
    pub fn read(&self, moment: Moment, va: u64, buffer: &mut [u8]) -> bool {
        let mut at = va;
        let mut rest = buffer;
        while !rest.is_empty() {
            let offset = (at % PAGE) as usize;
            let length = rest.len().min(PAGE_SIZE - offset);
            let Some(content) = self.at(moment, at - offset as u64) else {
                return false;
            };
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&self.pool.bytes(content)[offset..offset + length]);
            rest = later;
            at = at.wrapping_add(length as u64);
        }
        true
    }

    /// Byte ranges changed at this moment.
    pub fn difference(&self, moment: Moment, va: u64) -> Vec<(usize, usize)> {
        let old = moment
            .previous()
            .and_then(|m| self.at(m, va))
            .unwrap_or(Content::ZERO);
        let new = self.at(moment, va).unwrap_or(Content::ZERO);
        if old == new {
            return Vec::new();
        }
        differing(self.pool.bytes(old), self.pool.bytes(new))
    }
}

/// Byte ranges that differ.
pub fn differing(old: &PageBytes, new: &PageBytes) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (i, (a, b)) in old.iter().zip(new).enumerate() {
        if a == b {
            continue;
        }
        match out.last_mut() {
            Some((_, end)) if i == *end => *end = i + 1,
            _ => out.push((i, i + 1)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_stored_once() {
        let mut memory = Memory::default();
        let page = [5; PAGE_SIZE];
        for (moment, va) in [(Moment::before(0), 0x1000), (Moment::before(0), 0x2000)] {
            memory.set(moment, va, Some(&page));
        }
        memory.set(Moment::before(0), 0x3000, Some(&[0; PAGE_SIZE]));
        assert_eq!(memory.pool.len(), 2);
        assert_eq!(memory.at(Moment::before(0), 0x3000), Some(Content::ZERO));
        assert_eq!(memory.at(Moment::before(0), 0x4000), None);
    }

    #[test]
    fn pages_that_changed_are_listed_once_and_ascending() {
        let mut memory = Memory::default();
        let now = Moment::before(0);
        for va in [0x3000, 0x1000, 0x2000, 0x1000] {
            memory.set(now, va, None);
        }
        let changed: Vec<u64> = memory.changed(now).iter().copied().collect();
        assert_eq!(changed, [0x1000, 0x2000, 0x3000]);
        assert!(memory.changed(Moment::after(0)).is_empty());
    }

    #[test]
    fn history_is_kept() {
        let mut memory = Memory::default();
        let mut page = [0; PAGE_SIZE];
        memory.set(Moment::before(0), 0x1000, None);
        page[100] = 1;
        memory.set(Moment::after(0), 0x1000, Some(&page));
        memory.set(Moment::before(1), 0x1000, Some(&page));
        page[104] = 1;
        page[200] = 2;
        memory.set(Moment::before(1), 0x1000, Some(&page));
        assert_eq!(memory.page(Moment::before(0), 0x1000)[100], 0);
        assert_eq!(memory.page(Moment::after(0), 0x1000)[104], 0);
        assert_eq!(memory.page(Moment::after(7), 0x1000)[104], 1);
        assert_eq!(memory.difference(Moment::after(0), 0x1000), [(100, 101)]);
        assert_eq!(
            memory.difference(Moment::before(1), 0x1000),
            [(104, 105), (200, 201)]
        );
        assert_eq!(*memory.changed(Moment::after(0)), BTreeSet::from([0x1000]));
        let mut bytes = [9; 8];
        assert!(memory.read(Moment::before(1), 0x1000 + 100, &mut bytes));
        assert_eq!(bytes, [1, 0, 0, 0, 1, 0, 0, 0]);
        assert!(!memory.read(Moment::before(1), 0x1ffc, &mut bytes));
    }
}
