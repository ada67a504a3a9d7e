// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads' own words that do not depend on memory: spilled registers.

use std::collections::HashSet;

use crate::Grid;
use crate::ir::special;
use crate::operations::memory::address;
use crate::operations::planned::Wanted;
use crate::rows::{Rows, lanes};

const WORD: usize = 4;

/// Addresses of words that are the same each time.
#[derive(Debug, Default)]
pub(super) struct Private {
    words: HashSet<u64>,
}

impl Private {
    pub(super) fn knows(&self, wanted: &Wanted<'_>) -> bool {
        !self.words.is_empty()
            && wanted.bytes.is_multiple_of(WORD)
            && lanes(wanted.mask)
                .flat_map(|lane| words(wanted.addresses[lane], wanted.bytes))
                .all(|word| self.words.contains(&word))
    }

    pub(super) fn store(&mut self, wanted: &Wanted<'_>, is_known: bool, rows: &Rows, grid: &Grid) {
        let (low, high) = (
            rows.get(special::THREAD_LOW),
            rows.get(special::THREAD_HIGH),
        );
        let storage = &grid.thread_storage;
        let each = u64::from(storage.bytes_per_thread);
        let bytes = wanted.bytes as u64;
        // No other thread stores there.
        let is_own = |lane: usize, va: u64| {
            let offset = va.wrapping_sub(address(low, high, lane));
            storage.base != 0 && offset < each && bytes <= each - offset
        };
        for lane in lanes(wanted.mask) {
            let va = wanted.addresses[lane];
            let whole = va.is_multiple_of(WORD as u64) && wanted.bytes.is_multiple_of(WORD);
            if is_known && whole && is_own(lane, va) {
                self.words.extend(words(va, wanted.bytes));
            } else if !self.words.is_empty() {
                for word in words(va, wanted.bytes) {
                    self.words.remove(&word);
                }
            }
        }
    }
}

fn words(va: u64, bytes: usize) -> impl Iterator<Item = u64> {
    let first = va / WORD as u64;
    let last = va.saturating_add(bytes as u64 - 1) / WORD as u64;
    (first..=last).map(|word| word.wrapping_mul(WORD as u64))
}
