// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rewrites words that point at moved variables.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: u64,
    pub(crate) size: u64,
    pub(crate) to: u64,
}

/// Moved ranges by old addresses; without code addresses.
pub(crate) struct Moves(Vec<Move>);

impl Moves {
    pub(crate) fn new(mut moves: Vec<Move>) -> Self {
        moves.retain(|one| one.from != one.to);
        moves.sort_by_key(|one| one.from);
        Self(moves)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn moved(&self, address: u64) -> Option<u64> {
        let before = self.0.partition_point(|one| one.from <= address);
        let one = self.0.get(before.checked_sub(1)?)?;
        let offset = address - one.from;
        (offset < one.size).then(|| one.to + offset)
    }

    /// Aligned words; returns offsets and old values.
    pub(crate) fn apply(&self, bytes: &mut [u8]) -> Vec<(usize, u64)> {
        let mut changed = Vec::new();
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return changed;
        };
        let range = first.from..last.from + last.size;
        for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let old = u64::from_le_bytes(*word);
            if range.contains(&old)
                && let Some(new) = self.moved(old)
            {
                *word = new.to_le_bytes();
                changed.push((index * 8, old));
            }
        }
        changed
    }
}

/// Ranges that will move; where to is not known yet.
pub(crate) struct Leaving(Vec<(u64, u64)>);

impl Leaving {
    pub(crate) fn new(ranges: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        Self(ranges)
    }

    pub(crate) fn words(&self, bytes: &[u8]) -> Vec<(usize, u64)> {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return Vec::new();
        };
        let all = first.0..last.0 + last.1;
        let words = bytes.as_chunks::<8>().0.iter().enumerate();
        let words = words.map(|(index, word)| (index * 8, u64::from_le_bytes(*word)));
        let inside = |(_, word): &(usize, u64)| {
            all.contains(word) && {
                let before = self.0.partition_point(|range| range.0 <= *word);
                before > 0 && word - self.0[before - 1].0 < self.0[before - 1].1
            }
        };
        words.filter(inside).collect()
    }
}

pub(crate) fn undo(bytes: &mut [u8], changed: &[(usize, u64)]) {
    for (at, old) in changed {
        bytes[*at..*at + 8].copy_from_slice(&old.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{Leaving, Move, Moves, undo};

    #[test]
    fn only_words_into_moved_ranges_change_and_they_change_back() {
        let moves = Moves::new(vec![
            Move {
                from: 0x9000,
                size: 16,
                to: 0x100,
            },
            Move {
                from: 0x1000,
                size: 8,
                to: 0x5000,
            },
            Move {
                from: 0x7000,
                size: 8,
                to: 0x7000,
            },
        ]);
        let words = [0x1000u64, 0x1007, 0x1008, 0x900f, 0x9010, 0x7001, 0xfff];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let original = bytes.clone();
        let changed = moves.apply(&mut bytes);
        let after: Vec<u64> = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        assert_eq!(
            after,
            [0x5000, 0x5007, 0x1008, 0x10f, 0x9010, 0x7001, 0xfff]
        );
        assert_eq!(changed.len(), 3);
        undo(&mut bytes, &changed);
        assert_eq!(bytes, original);
        assert!(Moves::new(vec![]).is_empty());
        let leaving = Leaving::new([(0x9000, 16), (0x1000, 8)].into_iter());
        let found = [(0, 0x1000), (8, 0x1007), (24, 0x900f)];
        assert_eq!(leaving.words(&original), found);
        assert_eq!(Leaving::new([].into_iter()).words(&original), []);
    }
}
