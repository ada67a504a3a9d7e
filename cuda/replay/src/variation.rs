// SPDX-License-Identifier: MIT OR Apache-2.0
//! Second inputs: recorded memory with other order or numbers.
//!
//! Kernels that repeat earlier results are right only on recorded memory. The recorded kernel gives the reference.

/// In bytes: a double, a pointer, or two neighbours.
const WORD: usize = 8;
/// So that caches hold it.
const WINDOW: usize = 1 << 14;
/// The flipped bit of a single: half of its size.
const NUDGE: u32 = 0x0040_0000;

/// How recorded memory is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// Words change places, so values stay in range.
    Permuted {
        /// Decides the order.
        seed: u64,
    },
    /// Floats get another size; integers and what they index stay.
    Nudged,
}

impl Variation {
    /// One word for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Permuted { .. } => "permuted",
            Self::Nudged => "nudged",
        }
    }

    /// `fixed` takes numbers of words of four bytes.
    pub(crate) fn apply(self, piece: usize, bytes: &mut [u8], fixed: impl Fn(usize) -> bool) {
        match self {
            Self::Permuted { seed } => {
                let mut random = fastrand::Rng::with_seed(seed ^ piece as u64);
                let free = |word: usize| !fixed(word * 2) && !fixed(word * 2 + 1);
                let words = bytes.as_chunks_mut::<WORD>().0;
                for (number, window) in words.chunks_mut(WINDOW).enumerate() {
                    let start = number * WINDOW;
                    for at in (1..window.len()).rev() {
                        let other = random.usize(0..=at);
                        if free(start + at) && free(start + other) {
                            window.swap(at, other);
                        }
                    }
                }
            }
            Self::Nudged => {
                for (word, bytes) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let bits = u32::from_le_bytes(*bytes);
                    if looks_like_a_number(bits) && !fixed(word) {
                        *bytes = (bits ^ NUDGE).to_le_bytes();
                    }
                }
            }
        }
    }
}

/// A single, or a double's upper half, between 2^-60 and 2^60.
fn looks_like_a_number(bits: u32) -> bool {
    (67..=187).contains(&(bits >> 23 & 0xff))
}

#[cfg(test)]
mod tests {
    use super::{Variation, WORD};

    fn words(bytes: &[u8]) -> Vec<u64> {
        let words = bytes.as_chunks::<WORD>().0.iter();
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }

    #[test]
    fn words_change_places_and_fixed_ones_stay() {
        let before: Vec<u8> = (0..100_000u64).flat_map(u64::to_le_bytes).collect();
        let mut after = before.clone();
        let fixed = |word: usize| (2000..2400).contains(&word);
        Variation::Permuted { seed: 7 }.apply(0, &mut after, fixed);
        assert_eq!(before[8000..9600], after[8000..9600]);
        let (before, after) = (words(&before), words(&after));
        let stayed = before.iter().zip(&after).filter(|(a, b)| a == b).count();
        assert!((200..600).contains(&stayed), "{stayed}");
        let mut sorted = after.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, before, "each word is still there");
        let mut again: Vec<u8> = before.iter().copied().flat_map(u64::to_le_bytes).collect();
        Variation::Permuted { seed: 8 }.apply(0, &mut again, fixed);
        assert_ne!(words(&again), after, "another seed is another order");
    }

    #[test]
    fn numbers_are_nudged_and_indices_stay() {
        let numbers = [1.5f32, -3.0, 1e-3].map(f32::to_bits);
        let mut bytes: Vec<u8> = [numbers[0], 7, numbers[1], u32::MAX, 0, numbers[2]]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        Variation::Nudged.apply(0, &mut bytes, |word| word == 5);
        let after: Vec<u32> = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        assert_eq!(f32::from_bits(after[0]), 1.0);
        assert_eq!(f32::from_bits(after[2]), -2.0);
        assert_eq!([after[1], after[3], after[4]], [7, u32::MAX, 0]);
        assert_eq!(after[5], numbers[2], "a fixed word stays");
    }

    #[test]
    fn a_double_looks_like_a_number_too() {
        let mut bytes = 2.5f64.to_le_bytes();
        Variation::Nudged.apply(0, &mut bytes, |_| false);
        let nudged = f64::from_le_bytes(bytes);
        assert!(nudged.is_finite() && nudged != 2.5, "{nudged}");
    }
}
