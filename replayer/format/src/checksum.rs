// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of a section.
//!
//! Four lanes take 64-bit words in turn. A step `(lane ^ word).rotate_left(29) * odd` is a bijection of either
//! argument, and so is the folding of lanes. A change within one word is always found; other accidental damage with
//! a probability of 1 - 2^-64. It does not protect against intent.

use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

const fn step(lane: u64, word: u64) -> u64 {
    (lane ^ word).rotate_left(29).wrapping_mul(MULTIPLIER)
}

/// Checksum of a section. Cuts do not matter if all calls but the last bring a multiple of 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    lanes: [u64; 4],
    length: u64,
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

impl Checksum {
    /// Starts a sum.
    pub const fn new() -> Self {
        Self {
            lanes: [1, 2, 3, 4],
            length: 0,
        }
    }

    /// Adds bytes; zeros fill them up to a multiple of 8.
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        let (blocks, tail) = bytes.as_chunks_of_32();
        for block in blocks {
            for (lane, word) in self.lanes.iter_mut().zip(block) {
                *lane = step(*lane, word.get());
            }
        }
        for (lane, piece) in self.lanes.iter_mut().zip(tail.chunks(8)) {
            let word = piece
                .iter()
                .rev()
                .fold(0u64, |word, &byte| word << 8 | u64::from(byte));
            *lane = step(*lane, word);
        }
        self
    }

    /// Sum so far.
    pub fn value(&self) -> u64 {
        self.lanes
            .iter()
            .fold(self.length, |sum, &lane| step(sum, lane))
    }
}

trait Blocks {
    fn as_chunks_of_32(&self) -> (&[[U64; 4]], &[u8]);
}

impl Blocks for [u8] {
    fn as_chunks_of_32(&self) -> (&[[U64; 4]], &[u8]) {
        <[[U64; 4]]>::ref_from_prefix_with_elems(self, self.len() / 32).unwrap_or((&[], self))
    }
}

/// Checksum of one byte string.
pub fn checksum(bytes: &[u8]) -> u64 {
    Checksum::new().update(bytes).value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_change_of_one_byte_is_seen() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 7 + 3) as u8).collect();
        let sum = checksum(&bytes);
        for at in 0..bytes.len() {
            for flip in 1..=255u8 {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert_ne!(checksum(&changed), sum, "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn length_and_order_count() {
        assert_ne!(checksum(&[0; 8]), checksum(&[0; 16]));
        assert_ne!(
            checksum(&[1, 0, 0, 0, 0, 0, 0, 0, 2]),
            checksum(&[2, 0, 0, 0, 0, 0, 0, 0, 1])
        );
    }
}
