// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches from a second input, against the recorded kernel.

use super::{Mask, Session};
use crate::sum::Sum;
use crate::{Comparison, Loaded, ReplayError, Sizes, Variation, Verdict};

/// Memory, and what the recorded kernel makes of it.
pub struct Second {
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
}

/// Why a second input shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// No word changes.
    Same,
    /// Two recorded launches differ.
    Differs,
    /// The recorded kernel writes nothing.
    Idle,
    /// Results are the recorded ones.
    NoEffect,
}

impl Useless {
    /// Reason in words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Same => "memory holds nothing that could be changed so",
            Self::Differs => "the recorded kernel differs from run to run on it",
            Self::Idle => "the recorded kernel writes nothing on it",
            Self::NoEffect => "the recorded kernel writes the recorded results on it, too",
        }
    }
}

impl Session {
    /// Launches the loaded, recorded kernel twice.
    ///
    /// # Errors
    /// As [`Session::poison`].
    pub fn second(
        &self,
        loaded: &Loaded,
        variation: Variation,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Result<Second, Useless>, ReplayError> {
        let sizes = self.sizes();
        loaded.limits().check(&sizes)?;
        let fixed = self.fixed(loaded, mask);
        let mut before = self.memory();
        for (piece, bytes) in before.iter_mut().enumerate() {
            if !self.ignored[piece] {
                variation.apply(piece, bytes, |word| fixed(piece, word));
            }
        }
        let pieces = self.contents.iter().zip(&before);
        if pieces
            .clone()
            .all(|(contents, bytes)| contents.before == *bytes)
        {
            return Ok(Err(Useless::Same));
        }
        let after = self.launch_from(loaded, &sizes, &before)?;
        let again = self.launch_from(loaded, &sizes, &before)?;
        if !self.sum_of(&again, &after, how, mask).is_right() {
            return Ok(Err(Useless::Differs));
        }
        if self.sum_of(&before, &after, how, mask).is_right() {
            return Ok(Err(Useless::Idle));
        }
        let results = pieces.zip(&after).enumerate();
        let has_effect = results
            .into_iter()
            .any(|(piece, ((contents, before), after))| {
                let recorded = contents.after.as_ref().unwrap_or(&contents.before);
                let words = before
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .zip(after.as_chunks::<4>().0);
                let mut words = words.zip(recorded.as_chunks::<4>().0);
                !self.ignored[piece]
                    && words.any(|((before, after), recorded)| before != after && after != recorded)
            });
        if !has_effect {
            return Ok(Err(Useless::NoEffect));
        }
        Ok(Ok(Second { before, after }))
    }

    /// Launches and compares.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_second(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        how: &Comparison,
        mask: &Mask,
        second: &Second,
    ) -> Result<Verdict, ReplayError> {
        loaded.limits().check(sizes)?;
        let got = self.launch_from(loaded, sizes, &second.before)?;
        Ok(self.sum_of(&got, &second.after, how, mask))
    }

    pub(super) fn sum_of(
        &self,
        got: &[Vec<u8>],
        want: &[Vec<u8>],
        how: &Comparison,
        mask: &Mask,
    ) -> Verdict {
        let mut sum = Sum::default();
        let pieces = self.contents.iter().zip(got).zip(want);
        for (index, ((contents, got), want)) in pieces.enumerate() {
            if !self.ignored[index] {
                sum.add(how, contents.address, got, want, mask.piece(index));
            }
        }
        sum.verdict()
    }
}
