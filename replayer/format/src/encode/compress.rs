// SPDX-License-Identifier: MIT OR Apache-2.0
//! LZ4 encoder with optimal parsing.

use alloc::vec;
use alloc::vec::Vec;

use crate::lz4::WINDOW;

const SHORTEST: usize = 4;
const CHAIN_LIMIT: usize = 256;
const TABLE_BITS: u32 = 13;
/// Bytes. A match of this length ends the search, and a longer one is taken whole.
const GOOD: usize = 64;
const NONE: u32 = u32::MAX;

fn hash(bytes: &[u8]) -> usize {
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    (word.wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize
}

fn extension_bytes(length: usize) -> usize {
    if length < 15 {
        0
    } else {
        (length - 15) / 255 + 1
    }
}

#[derive(Clone, Debug)]
pub(super) struct Matcher {
    heads: Vec<u32>,
    previous: Vec<u32>,
    filled: usize,
}

impl Matcher {
    pub(super) fn new() -> Self {
        Self {
            heads: vec![NONE; 1 << TABLE_BITS],
            previous: vec![NONE; WINDOW],
            filled: 0,
        }
    }

    fn insert(&mut self, window: &[u8], at: usize) {
        let slot = hash(&window[at..]);
        self.previous[at] = self.heads[slot];
        self.heads[slot] = at as u32;
    }

    fn catch_up(&mut self, window: &[u8], start: usize) {
        let whole = (start + 1).saturating_sub(SHORTEST);
        if self.filled > whole {
            self.heads.fill(NONE);
            self.filled = 0;
        }
        for at in self.filled..whole {
            self.insert(window, at);
        }
        self.filled = whole;
    }

    /// Longest earlier match at `at`: (length, distance); (_, 0) if none.
    fn longest(&self, window: &[u8], at: usize) -> (usize, usize) {
        let limit = window.len() - at;
        let mut candidate = self.heads[hash(&window[at..])];
        let (mut length, mut distance) = (SHORTEST - 1, 0);
        for _ in 0..CHAIN_LIMIT {
            if candidate == NONE || length == limit || length >= GOOD {
                break;
            }
            let from = candidate as usize;
            if window[from + length] == window[at + length] {
                let pairs = window[from..].iter().zip(&window[at..]);
                let common = pairs.take_while(|(left, right)| left == right).count();
                if common > length {
                    (length, distance) = (common, at - from);
                }
            }
            candidate = self.previous[from];
        }
        (length, distance)
    }

    fn longest_matches(&mut self, window: &[u8], start: usize) -> Vec<(usize, usize)> {
        self.catch_up(window, start);
        let mut best = vec![(0, 0); window.len() - start];
        let end = (window.len() + 1).saturating_sub(SHORTEST).max(self.filled);
        for at in self.filled..end {
            if at >= start {
                // A match longer than `GOOD` goes on at the next position, one byte shorter.
                let before = if at > start {
                    best[at - start - 1]
                } else {
                    (0, 0)
                };
                if before.0 > GOOD {
                    best[at - start] = (before.0 - 1, before.1);
                } else {
                    let (length, distance) = self.longest(window, at);
                    if distance != 0 {
                        best[at - start] = (length, distance);
                    }
                }
            }
            self.insert(window, at);
        }
        // Forget the block: if stored as it is, the window does not have it.
        for at in (self.filled..end).rev() {
            self.heads[hash(&window[at..])] = self.previous[at];
        }
        best
    }
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    if length >= 15 {
        let mut rest = length - 15;
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
}

pub(super) fn compress(matcher: &mut Matcher, window: &[u8], start: usize) -> Vec<u8> {
    let matches = matcher.longest_matches(window, start);
    let count = matches.len();
    // Cheapest encoding to the end, in bytes; a match is (length, distance), a literal (1, 0). Extension bytes of
    // long literal runs are rare and neglected.
    let mut cost = vec![0usize; count + 1];
    let mut step = vec![(1usize, 0usize); count];
    cost[count] = 1;
    for at in (0..count).rev() {
        cost[at] = cost[at + 1] + 1;
        let (longest, distance) = matches[at];
        let shortest = if longest > GOOD { longest } else { SHORTEST };
        for length in shortest..=longest {
            let with_match = cost[at + length] + 3 + extension_bytes(length - SHORTEST);
            if with_match <= cost[at] {
                cost[at] = with_match;
                step[at] = (length, distance);
            }
        }
    }

    let block = &window[start..];
    let mut out = Vec::new();
    let (mut at, mut literals) = (0, 0);
    while at < count {
        let (length, distance) = step[at];
        if distance == 0 {
            at += 1;
            continue;
        }
        let run = at - literals;
        let coded = length - SHORTEST;
        out.push(((run.min(15) as u8) << 4) | coded.min(15) as u8);
        push_length(&mut out, run);
        out.extend_from_slice(&block[literals..at]);
        out.extend_from_slice(&(distance as u16).to_le_bytes());
        push_length(&mut out, coded);
        at += length;
        literals = at;
    }
    let run = count - literals;
    out.push((run.min(15) as u8) << 4);
    push_length(&mut out, run);
    out.extend_from_slice(&block[literals..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lz4::{History, Level, check};

    #[test]
    fn blocks_come_back_with_history_and_sliding() {
        let (mut writer, mut matcher) = (History::new(), Matcher::new());
        let mut reader = History::new();
        let mut level = Level::default();
        let mut state = 1u32;
        for round in 0..40usize {
            let block: Vec<u8> = (0..(1 + round * 577 % 4096))
                .map(|i| {
                    state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                    if round % 3 == 0 {
                        (state >> 30) as u8
                    } else {
                        ((i * round) >> 5) as u8
                    }
                })
                .collect();
            let (window, start) = writer.push(&block);
            let packed = compress(&mut matcher, window, start);
            level = check(&packed, level, block.len()).unwrap();
            assert_eq!(reader.decode(&packed, block.len()).unwrap(), block);
        }
    }

    #[test]
    fn damaged_blocks_are_refused_alike_by_check_and_decode() {
        let block: Vec<u8> = (0..600usize).map(|i| ((i * i) >> 4) as u8).collect();
        let (mut writer, mut matcher) = (History::new(), Matcher::new());
        let (window, start) = writer.push(&block);
        let packed = compress(&mut matcher, window, start);
        for at in 0..packed.len() {
            for flip in [1, 16, 128, 255] {
                let mut damaged = packed.clone();
                damaged[at] ^= flip;
                let checked = check(&damaged, Level::default(), block.len()).is_some();
                assert_eq!(
                    History::new().decode(&damaged, block.len()).is_some(),
                    checked
                );
            }
            assert!(check(&packed[..at], Level::default(), block.len()).is_none());
        }
    }
}
