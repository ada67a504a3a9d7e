// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that differ by run or process, such as addresses of code, shared memory or heap.

use std::collections::BTreeMap;

use super::Session;
use crate::compare::noisy;
use crate::{Loaded, ReplayError};

/// Words left out by piece, ascending.
#[derive(Clone, Debug, Default)]
pub struct Mask(pub(super) Vec<Vec<u32>>);

impl Mask {
    /// Words of four bytes left out.
    #[must_use]
    pub fn words(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub(super) fn piece(&self, index: usize) -> &[u32] {
        self.0.get(index).map_or(&[], Vec::as_slice)
    }

    /// Adds another mask of the same launch.
    pub fn add(&mut self, other: Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), Vec::new());
        }
        for (own, other) in self.0.iter_mut().zip(other.0) {
            own.extend(other);
            own.sort_unstable();
            own.dedup();
        }
    }
}

const MOST_DIFFERENCES: usize = 1 << 24;

/// Piece, word and value, where not as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences(Vec<[u32; 3]>);

impl Differences {
    /// Three little-endian words each.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let words = self.0.as_flattened().iter();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// `None` if malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (all, []) = bytes.as_chunks::<12>() else {
            return None;
        };
        let word = |bytes: &[u8; 12], at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let all = all.iter().map(|b| [word(b, 0), word(b, 4), word(b, 8)]);
        Some(Self(all.collect()))
    }
}

impl Session {
    /// Words that differ between runs of the recorded launch.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn mask(&self, loaded: &Loaded, runs: u32) -> Result<Mask, ReplayError> {
        let sizes = self.sizes();
        loaded.limits().check(&sizes)?;
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut mask = Mask(vec![Vec::new(); self.contents.len()]);
        for run in 0..=runs {
            self.restore(loaded)?;
            self.launch_once(loaded, &sizes)?;
            for (index, contents) in self.contents.iter().enumerate() {
                let bytes = self.read(loaded, contents)?;
                if run == 0 {
                    first.push(bytes);
                } else {
                    noisy(&first[index], &bytes, &mut mask.0[index]);
                }
            }
        }
        Ok(mask)
    }

    /// Words that the recorded launch leaves otherwise.
    ///
    /// # Errors
    /// As [`Session::run`], and if too many differ.
    pub fn differences(&self, loaded: &Loaded) -> Result<Differences, ReplayError> {
        let sizes = self.sizes();
        loaded.limits().check(&sizes)?;
        self.restore(loaded)?;
        self.launch_once(loaded, &sizes)?;
        let mut found = Vec::new();
        let too_many = || ReplayError::Impossible("more words differ than a mask may hold");
        for (piece, contents) in (0u32..).zip(&self.contents) {
            let got = self.read(loaded, contents)?;
            let want = contents.after.as_ref().unwrap_or(&contents.before);
            let mut words = Vec::new();
            noisy(want, &got, &mut words);
            if found.len() + words.len() > MOST_DIFFERENCES {
                return Err(too_many());
            }
            found.extend(words.into_iter().map(|word| {
                let mut value = [0; 4];
                let rest = &got[word as usize * 4..];
                let size = rest.len().min(4);
                value[..size].copy_from_slice(&rest[..size]);
                [piece, word, u32::from_le_bytes(value)]
            }));
        }
        Ok(Differences(found))
    }

    /// Words that differ between processes; equally wrong ones stay in.
    ///
    /// # Errors
    /// A process names unknown memory.
    pub fn mask_of_processes(&self, processes: &[Differences]) -> Result<Mask, ReplayError> {
        unequal(processes, self.contents.len())
            .ok_or(ReplayError::Impossible("a process told of other memory"))
    }
}

fn unequal(processes: &[Differences], pieces: usize) -> Option<Mask> {
    // By piece and word: processes that name it, first value, whether all are equal.
    let mut words: BTreeMap<(u32, u32), (usize, u32, bool)> = BTreeMap::new();
    for differences in processes {
        for [piece, word, value] in &differences.0 {
            let entry = words.entry((*piece, *word)).or_insert((0, *value, true));
            entry.0 += 1;
            entry.2 &= entry.1 == *value;
        }
    }
    let mut mask = Mask(vec![Vec::new(); pieces]);
    for ((piece, word), (count, _, same)) in words {
        let list = mask.0.get_mut(usize::try_from(piece).ok()?)?;
        // A word that a process omits is as recorded there.
        if count < processes.len() || !same {
            list.push(word);
        }
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::{Differences, Mask, unequal};

    #[test]
    fn only_what_is_not_the_same_everywhere_is_left_out() {
        let one = Differences(vec![[0, 3, 7], [0, 4, 1], [1, 0, 9]]);
        let other = Differences(vec![[0, 3, 7], [0, 4, 2]]);
        // 0:3 is wrong in both alike; 0:4 differs; 1:0 is as recorded in one.
        let mask = unequal(&[one.clone(), other], 2).unwrap();
        assert_eq!(mask.0, [vec![4], vec![0]]);
        assert_eq!(mask.words(), 2);
        assert!(unequal(std::slice::from_ref(&one), 1).is_none());
        assert_eq!(unequal(&[one.clone(), one], 2).unwrap().words(), 0);
    }

    #[test]
    fn differences_read_back_and_other_bytes_do_not() {
        let all = Differences(vec![[0, 3, 7], [1, u32::MAX, 0]]);
        assert_eq!(Differences::from_bytes(&all.bytes()), Some(all));
        assert_eq!(Differences::from_bytes(&[0; 13]), None);
    }

    #[test]
    fn masks_add_up() {
        let mut mask = Mask(vec![vec![1, 5]]);
        mask.add(Mask(vec![vec![0, 5], vec![2]]));
        assert_eq!(mask.0, [vec![0, 1, 5], vec![2]]);
    }
}
