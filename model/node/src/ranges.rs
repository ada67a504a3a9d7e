// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address ranges, placed as by the kernel's `drm_mm`.

use std::collections::{BTreeMap, BTreeSet};

/// In `drm_mm`'s order: the smallest, then the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hole {
    size: u64,
    age: std::cmp::Reverse<u64>,
    start: u64,
}

/// In any unit.
#[derive(Debug)]
pub(crate) struct Ranges {
    by_size: BTreeSet<Hole>,
    by_start: BTreeMap<u64, Hole>,
    taken: BTreeMap<u64, u64>,
    age: u64,
}

impl Ranges {
    pub(crate) fn new(start: u64, end: u64) -> Self {
        let mut ranges = Self {
            by_size: BTreeSet::new(),
            by_start: BTreeMap::new(),
            taken: BTreeMap::new(),
            age: 0,
        };
        ranges.open(start, end);
        ranges
    }

    /// At a multiple of `align`, in the hole's part by `narrow`.
    pub(crate) fn take(
        &mut self,
        size: u64,
        align: u64,
        narrow: impl Fn(u64, u64) -> (u64, u64),
    ) -> Option<u64> {
        let smallest = Hole {
            size,
            age: std::cmp::Reverse(u64::MAX),
            start: 0,
        };
        let fits = |hole: &Hole| {
            let (start, end) = narrow(hole.start, hole.start + hole.size);
            let start = start.checked_next_multiple_of(align.max(1))?;
            (start.checked_add(size)? <= end).then_some((*hole, start))
        };
        let (hole, start) = self.by_size.range(smallest..).find_map(fits)?;
        self.shut(hole);
        self.open(hole.start, start);
        self.open(start + size, hole.start + hole.size);
        self.taken.insert(start, size);
        Some(start)
    }

    pub(crate) fn give_back(&mut self, start: u64) {
        let Some(size) = self.taken.remove(&start) else {
            return;
        };
        let (mut low, mut high) = (start, start + size);
        let before = self.by_start.range(..low).next_back();
        if let Some(hole) = before.map(|(_, hole)| *hole)
            && hole.start + hole.size == low
        {
            self.shut(hole);
            low = hole.start;
        }
        if let Some(hole) = self.by_start.get(&high).copied() {
            self.shut(hole);
            high += hole.size;
        }
        self.open(low, high);
    }

    fn open(&mut self, start: u64, end: u64) {
        if start < end {
            self.age += 1;
            let hole = Hole {
                size: end - start,
                age: std::cmp::Reverse(self.age),
                start,
            };
            self.by_size.insert(hole);
            self.by_start.insert(start, hole);
        }
    }

    fn shut(&mut self, hole: Hole) {
        self.by_size.remove(&hole);
        self.by_start.remove(&hole.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(start: u64, end: u64) -> (u64, u64) {
        (start, end)
    }

    #[test]
    fn the_smallest_hole_that_fits_is_taken() {
        let mut ranges = Ranges::new(32, 1000);
        let places: Vec<_> = (0..4).filter_map(|_| ranges.take(10, 1, all)).collect();
        assert_eq!(places, [32, 42, 52, 62]);
        ranges.give_back(32);
        ranges.give_back(42);
        ranges.give_back(62);
        // Free: 32..52, and from 62 on.
        assert_eq!(ranges.take(21, 1, all), Some(62));
        assert_eq!(ranges.take(20, 1, all), Some(32));
        assert_eq!(ranges.take(900, 1, all), Some(83));
        assert_eq!(ranges.take(900, 1, all), None);
    }

    #[test]
    fn alignment_leaves_a_hole_before() {
        let mut ranges = Ranges::new(0, 4096);
        assert_eq!(ranges.take(1, 1, all), Some(0));
        assert_eq!(ranges.take(512, 512, all), Some(512));
        assert_eq!(ranges.take(3, 3, all), Some(3));
        assert_eq!(ranges.take(2, 1, all), Some(1));
        assert_eq!(ranges.take(1, 0, all), Some(6));
        assert_eq!(ranges.take(4096, 1, all), None);
    }

    #[test]
    fn of_equal_holes_the_last_is_taken() {
        let mut ranges = Ranges::new(0, 100);
        for _ in 0..10 {
            ranges.take(10, 1, all);
        }
        ranges.give_back(70);
        ranges.give_back(30);
        assert_eq!(ranges.take(10, 1, all), Some(30));
        assert_eq!(ranges.take(10, 1, all), Some(70));
    }

    #[test]
    fn all_comes_back() {
        let mut ranges = Ranges::new(5, 5000);
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut held: Vec<(u64, u64)> = Vec::new();
        for _ in 0..2000 {
            if random(3) > 0 {
                let (size, align) = (1 + random(60), 1 + random(16));
                if let Some(start) = ranges.take(size, align, all) {
                    assert_eq!(start % align, 0);
                    assert!(start >= 5 && start + size <= 5000);
                    let free = |(s, n): &(u64, u64)| start + size <= *s || s + n <= start;
                    assert!(held.iter().all(free), "{start}+{size} {held:?}");
                    held.push((start, size));
                }
            } else if !held.is_empty() {
                let (start, _) = held.swap_remove(random(held.len() as u64) as usize);
                ranges.give_back(start);
            }
        }
        held.drain(..)
            .for_each(|(start, _)| ranges.give_back(start));
        assert_eq!(ranges.take(4995, 1, all), Some(5));
    }
}
