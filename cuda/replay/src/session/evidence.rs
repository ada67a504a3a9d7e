// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches from changed memory.

use super::{Mask, Session};
use crate::poison::{Poison, search};
use crate::reaction::{self, Reaction, WINDOW};
use crate::{Comparison, Loaded, ReplayError, Sizes, Verdict};

impl Session {
    /// Words that stay when memory is changed: possible pointers, and masked ones.
    pub(super) fn fixed<'a>(
        &'a self,
        loaded: &Loaded,
        mask: &'a Mask,
    ) -> impl Fn(usize, usize) -> bool + 'a {
        let mut ranges: Vec<(u64, u64)> = self
            .contents
            .iter()
            .map(|contents| (self.address(loaded, contents), contents.before.len() as u64))
            .collect();
        ranges.sort_unstable();
        let is_pointer = move |value: u64| {
            let after = ranges.partition_point(|(start, _)| *start <= value);
            // One past the end counts.
            after > 0 && value - ranges[after - 1].0 <= ranges[after - 1].1
        };
        move |piece: usize, word: usize| {
            let bytes = &self.contents[piece].before;
            let start = word / 2 * 8;
            let pointer = bytes.get(start..start + 8).is_some_and(|bytes| {
                let mut value = [0; 8];
                value.copy_from_slice(bytes);
                is_pointer(u64::from_le_bytes(value))
            });
            let masked = mask.0.get(piece).is_some_and(|mask| {
                u32::try_from(word).is_ok_and(|word| mask.binary_search(&word).is_ok())
            });
            pointer || masked
        }
    }

    /// Bytes of pieces, up to the next parameter's target.
    fn windows(&self, loaded: &Loaded) -> Vec<(usize, std::ops::Range<usize>)> {
        let mut starts = Vec::new();
        for word in self.parameters.as_chunks::<8>().0 {
            let pointer = u64::from_le_bytes(*word);
            for (piece, contents) in self.contents.iter().enumerate() {
                let offset = pointer.checked_sub(self.address(loaded, contents));
                let offset = offset.and_then(|offset| usize::try_from(offset).ok());
                starts.extend(
                    offset
                        .filter(|offset| *offset < contents.before.len())
                        .map(|offset| (piece, offset)),
                );
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let window = |index: usize| {
            let (piece, start) = starts[index];
            let next = starts.get(index + 1).filter(|next| next.0 == piece);
            let end = next.map_or(self.contents[piece].before.len(), |next| next.1);
            (piece, start..end.min(start + WINDOW))
        };
        (0..starts.len()).map(window).collect()
    }

    pub(super) fn memory(&self) -> Vec<Vec<u8>> {
        let memory = self.contents.iter().map(|contents| contents.before.clone());
        memory.collect()
    }

    /// Words that the recorded launch rewrites with equal values, in at most 24 launches of the recorded image.
    /// Masked words and possible pointers stay.
    ///
    /// # Errors
    /// As [`Session::run`]. After a failed kernel no launch of this process succeeds.
    pub fn poison(
        &self,
        loaded: &Loaded,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Poison, ReplayError> {
        let sizes = self.sizes();
        loaded.limits().check(&sizes)?;
        let fixed = self.fixed(loaded, mask);
        search(
            &self.pieces(),
            fixed,
            |got| self.verdict(got, how, mask).is_right(),
            |from| self.launch_from(loaded, &sizes, from),
        )
    }

    /// Changes the poison's words, launches once, compares.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_poisoned(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        how: &Comparison,
        mask: &Mask,
        poison: &Poison,
    ) -> Result<Verdict, ReplayError> {
        if poison.is_empty() {
            return Ok(Verdict::Inconclusive);
        }
        loaded.limits().check(sizes)?;
        let from = poison.apply(&self.pieces());
        if self.verdict(&from, how, mask).is_right() {
            return Ok(Verdict::Inconclusive);
        }
        self.put_all(loaded, &from)?;
        self.launch_once(loaded, sizes)?;
        Ok(self.found(loaded, how, mask)?.verdict())
    }

    /// Changed inputs that make an idle launch write, in at most 24 launches of the recorded image.
    ///
    /// # Errors
    /// As [`Session::poison`].
    pub fn reaction(&self, loaded: &Loaded, mask: &Mask) -> Result<Option<Reaction>, ReplayError> {
        let sizes = self.sizes();
        loaded.limits().check(&sizes)?;
        let before: Vec<&[u8]> = self
            .contents
            .iter()
            .map(|contents| contents.before.as_slice())
            .collect();
        reaction::search(
            &before,
            &self.windows(loaded),
            self.fixed(loaded, mask),
            |from| self.launch_from(loaded, &sizes, from),
        )
    }

    /// Launches from changed inputs, compares.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_reacting(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        how: &Comparison,
        mask: &Mask,
        reaction: &Reaction,
    ) -> Result<Verdict, ReplayError> {
        loaded.limits().check(sizes)?;
        let from = reaction.before(self.memory());
        let want = reaction.after(from.clone());
        if self.sum_of(&from, &want, how, mask).is_right() {
            return Ok(Verdict::Inconclusive);
        }
        let got = self.launch_from(loaded, sizes, &from)?;
        Ok(self.sum_of(&got, &want, how, mask))
    }
}
