// SPDX-License-Identifier: MIT OR Apache-2.0
//! A buffer object, and which of its pages differ from the trace.

use std::sync::atomic::AtomicU64;

use gpureplay_trace::PAGE_SIZE;

use crate::memory::{self, Page, View, WORDS};
use mali_uapi::panfrost::request as uapi;

pub(crate) struct Object {
    pub(crate) handle: u32,
    /// `PANFROST_BO_*`
    pub(crate) flags: u32,
    pub(crate) va: u64,
    /// Bytes, whole pages.
    pub(crate) size: u64,
    pub(crate) offset: u64,
    /// The recorder's own mapping; none of a heap.
    pub(crate) view: Option<Box<dyn View>>,
    /// What the trace has of each page, as a [`memory::hash`]; 0 if nothing.
    hashes: Vec<u64>,
    /// Pages may go; reading them is then a fault.
    pub(crate) purgeable: bool,
    /// Another process, device or file may change it.
    pub(crate) shared: bool,
    /// The app has mapped it, or may have.
    pub(crate) mapped: bool,
    /// The current or last job may use it.
    pub(crate) listed: bool,
    /// All of it has been in the trace.
    pub(crate) seen: bool,
    pub(crate) read_only: bool,
    /// Present pages, if their number may change; others cannot be read.
    pub(crate) pages: Option<u64>,
}

impl Object {
    pub(crate) fn new(handle: u32, flags: u32, va: u64, size: u64) -> Self {
        Self {
            handle,
            flags,
            va,
            size: size.next_multiple_of(PAGE_SIZE as u64),
            offset: u64::MAX,
            view: None,
            hashes: Vec::new(),
            purgeable: false,
            shared: false,
            mapped: false,
            listed: false,
            seen: false,
            read_only: false,
            pages: None,
        }
    }

    /// It gets memory when a job needs it.
    pub(crate) fn is_heap(&self) -> bool {
        self.flags & uapi::HEAP != 0
    }

    fn words(&self) -> &[AtomicU64] {
        let words = match &self.view {
            Some(view) if !self.purgeable => view.words(),
            _ => &[],
        };
        let there = self.pages.unwrap_or(u64::MAX).saturating_mul(WORDS as u64);
        let there = usize::try_from(there).unwrap_or(usize::MAX);
        words.get(..there).unwrap_or(words)
    }

    pub(crate) fn there(&self) -> u64 {
        let all = self.size / PAGE_SIZE as u64;
        self.pages.unwrap_or(all).min(all) * PAGE_SIZE as u64
    }

    /// Pages that differ from the trace, with GPU addresses; the trace holds them afterwards.
    pub(crate) fn changes(&mut self) -> impl Iterator<Item = (u64, Page)> + '_ {
        self.seen = true;
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.resize(self.words().len() / WORDS, 0);
        self.hashes = hashes;
        let words = match &self.view {
            Some(view) => view.words(),
            None => &[],
        };
        let pages = words.as_chunks::<WORDS>().0;
        let held = self.hashes.iter_mut();
        let va = self.va;
        let page = move |(index, (words, held)): (usize, (&[AtomicU64; WORDS], &mut u64))| {
            if *held != 0 && memory::hash(words) == *held {
                return None;
            }
            let copy = memory::copy(words);
            *held = memory::hash(&copy);
            Some((va + (index * PAGE_SIZE) as u64, copy))
        };
        pages.iter().zip(held).enumerate().filter_map(page)
    }

    pub(crate) fn first_change(&self) -> Option<u64> {
        self.first_change_since(&self.hashes)
    }

    pub(crate) fn pages_now(&self) -> Vec<u64> {
        let pages = self.words().as_chunks::<WORDS>().0.iter();
        pages.map(memory::hash).collect()
    }

    pub(crate) fn first_change_since(&self, held: &[u64]) -> Option<u64> {
        let pages = self.words().as_chunks::<WORDS>().0.iter();
        let mut pages = pages.zip(held).enumerate();
        let (index, _) = pages.find(|(_, (words, held))| memory::hash(words) != **held)?;
        Some(self.va + (index * PAGE_SIZE) as u64)
    }

    pub(crate) fn word(&self, va: u64) -> Option<u64> {
        let index = usize::try_from(va.checked_sub(self.va)? / 8).ok()?;
        let word = self.words().get(index)?;
        Some(word.load(std::sync::atomic::Ordering::Relaxed))
    }
}
