// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of byte ranges of GPU memory.

use std::collections::BTreeMap;

/// Disjoint ranges; touching ones are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    by_start: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `start..end`.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut low, mut high) = (start, end);
        let touching: Vec<(u64, u64)> = self
            .by_start
            .range(..=end)
            .rev()
            .take_while(|(_, e)| **e >= start)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (s, e) in touching {
            low = low.min(s);
            high = high.max(e);
            self.by_start.remove(&s);
        }
        self.by_start.insert(low, high);
    }

    /// Parts of `start..end` in the set.
    pub fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let before = self.by_start.range(..start).next_back();
        before
            .into_iter()
            .chain(self.by_start.range(start..end))
            .map(|(s, e)| ((*s).max(start), (*e).min(end)))
            .filter(|(s, e)| s < e)
            .collect()
    }

    /// Parts of `start..end` not in the set.
    pub fn outside(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let mut at = start;
        for (s, e) in self.within(start, end) {
            if at < s {
                out.push((at, s));
            }
            at = e;
        }
        if at < end {
            out.push((at, end));
        }
        out
    }

    /// Whether any byte is in it.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        !self.within(start, end).is_empty()
    }

    /// Ranges, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(s, e)| (*s, *e))
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|(s, e)| e - s).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_split() {
        let mut r = Ranges::default();
        r.add(10, 20);
        r.add(30, 40);
        r.add(20, 25);
        r.add(5, 5);
        assert_eq!(r.iter().collect::<Vec<_>>(), [(10, 25), (30, 40)]);
        assert_eq!(r.within(0, 100), [(10, 25), (30, 40)]);
        assert_eq!(r.within(12, 33), [(12, 25), (30, 33)]);
        assert_eq!(r.outside(12, 45), [(25, 30), (40, 45)]);
        assert!(!r.touches(25, 30));
        r.add(0, 100);
        assert_eq!(
            (r.iter().collect::<Vec<_>>(), r.bytes()),
            (vec![(0, 100)], 100)
        );
    }
}
