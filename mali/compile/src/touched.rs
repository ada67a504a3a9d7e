// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which bytes of memory jobs read and write.

use std::collections::BTreeMap;

use gpureplay_trace::PAGE_SIZE;

const PAGE: u64 = PAGE_SIZE as u64;
/// A bit for each byte of a page.
const WORDS: usize = PAGE_SIZE / 64;

/// Bytes by GPU address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(BTreeMap<u64, [u64; WORDS]>);

impl Bytes {
    /// Ignores bytes beyond the last address.
    pub fn insert(&mut self, at: u64, length: u64) {
        for (page, from, to) in pages(at, at.saturating_add(length)) {
            let words = self.0.entry(page).or_insert([0; WORDS]);
            for (word, mask) in masks(from, to) {
                words[word] |= mask;
            }
        }
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Bytes) {
        for (page, theirs) in &other.0 {
            let words = self.0.entry(*page).or_insert([0; WORDS]);
            for (word, other) in words.iter_mut().zip(theirs) {
                *word |= other;
            }
        }
    }

    /// Removes another set.
    pub fn remove(&mut self, other: &Bytes) {
        for (page, words) in &mut self.0 {
            let theirs = other.0.get(page).into_iter().flatten();
            for (word, other) in words.iter_mut().zip(theirs) {
                *word &= !other;
            }
        }
    }

    /// Bytes in both sets.
    pub fn common(&self, other: &Bytes) -> Bytes {
        let mut out = self.clone();
        out.0.retain(|page, words| {
            let Some(theirs) = other.0.get(page) else {
                return false;
            };
            let pairs = words.iter_mut().zip(theirs);
            pairs.for_each(|(word, other)| *word &= other);
            words.iter().any(|word| *word != 0)
        });
        out
    }

    /// Whether it has any of `start..end`.
    pub fn any_in(&self, start: u64, end: u64) -> bool {
        // A range may be long.
        let first = start - start % PAGE;
        let known = self.0.range(first..end.max(first));
        known.into_iter().any(|(page, words)| {
            let from = start.saturating_sub(*page) as usize;
            let to = (end - page).min(PAGE) as usize;
            masks(from, to).any(|(word, mask)| words[word] & mask != 0)
        })
    }
}

/// A submission's memory accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Bytes read that none of its earlier jobs wrote.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
}

impl Touched {
    /// Adds the submission's next job.
    pub fn then(&mut self, mut job: Touched) {
        job.read.remove(&self.written);
        self.read.add(&job.read);
        self.written.add(&job.written);
    }
}

/// Each page, with offsets of its first byte and after its last.
fn pages(start: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = at - at % PAGE;
        let stop = end.min(page.saturating_add(PAGE));
        let found = (page, (at - page) as usize, (stop - page) as usize);
        at = stop;
        Some(found)
    })
}

fn masks(from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> {
    let words = if from < to {
        from / 64..to.div_ceil(64)
    } else {
        0..0
    };
    words.map(move |word| {
        let low = from.saturating_sub(word * 64);
        let high = (to - word * 64).min(64);
        (word, u64::MAX >> (64 - (high - low)) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(ranges: &[(u64, u64)]) -> Bytes {
        let mut out = Bytes::default();
        for (at, length) in ranges {
            out.insert(*at, *length);
        }
        out
    }

    #[test]
    fn bytes_go_in_and_out() {
        let mut set = bytes(&[(0x1ffe, 4), (0x3040, 64), (u64::MAX - 1, 9)]);
        assert!(set.any_in(0x1fff, 0x2000) && set.any_in(0x2001, 0x2002));
        assert!(!set.any_in(0x1000, 0x1ffe) && !set.any_in(0x2002, 0x3040));
        assert!(set.any_in(0, u64::MAX) && !set.any_in(0x3080, 0x8000));
        assert!(!set.any_in(0x2001, 0x2001));
        set.remove(&bytes(&[(0x1fff, 2), (0x3041, 62)]));
        assert!(set.any_in(0x1ffe, 0x1fff) && !set.any_in(0x1fff, 0x2001));
        assert!(set.any_in(0x3040, 0x3041) && !set.any_in(0x3041, 0x307f));
        let both = set.common(&bytes(&[(0x2001, 1), (0x3000, 64)]));
        assert_eq!(both, bytes(&[(0x2001, 1)]));
    }

    #[test]
    fn what_a_job_before_wrote_is_not_read_from_outside() {
        let job = |read: &[(u64, u64)], written: &[(u64, u64)]| Touched {
            read: bytes(read),
            written: bytes(written),
        };
        let mut all = Touched::default();
        all.then(job(&[(0x1000, 8)], &[(0x1004, 8)]));
        all.then(job(&[(0x1008, 8)], &[(0x1000, 4)]));
        assert!(all.read.any_in(0x1000, 0x1004) && all.read.any_in(0x100c, 0x1010));
        assert!(!all.read.any_in(0x1008, 0x100c));
        assert!(all.written.any_in(0x1000, 0x1001));
    }
}
