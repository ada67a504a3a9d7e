// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words that look like addresses of unrecorded memory.

use std::fmt;

use super::Session;

/// Upper halves seen: the driver's mappings, the kernels' heap.
const UPPER: [std::ops::RangeInclusive<u64>; 2] = [0x7000..=0x7fff, 2..=3];

/// Such words in parameters and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strays {
    /// How many.
    pub words: u64,
    /// The first.
    pub first: u64,
    /// Recorded address; none in parameters.
    pub at: Option<u64>,
}

impl fmt::Display for Strays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} words look like addresses of memory that the recording does not hold, such as the heap of kernels; the first is {:#x}, ",
            self.words, self.first
        )?;
        match self.at {
            Some(at) => write!(f, "at {at:#x}"),
            None => f.write_str("a parameter"),
        }
    }
}

impl Session {
    /// Words like addresses of unrecorded memory; numbers look so, too.
    #[must_use]
    pub fn strays(&self) -> Option<Strays> {
        let held = |contents: &super::Contents| {
            let start = contents.address;
            (start, start.saturating_add(contents.before.len() as u64))
        };
        let mut ranges: Vec<(u64, u64)> = self.contents.iter().map(held).collect();
        ranges.sort_unstable();
        let is_stray = |value: u64| {
            let after = ranges.partition_point(|(start, _)| *start <= value);
            // One past the end counts.
            let is_held = after > 0 && value <= ranges[after - 1].1;
            let looks = |range: &std::ops::RangeInclusive<u64>| range.contains(&(value >> 32));
            value.is_multiple_of(4) && UPPER.iter().any(looks) && !is_held
        };
        let mut found: Option<Strays> = None;
        let mut look = |bytes: &[u8], address: Option<u64>| {
            for (index, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
                let value = u64::from_le_bytes(*word);
                if is_stray(value) {
                    let at = address.map(|address| address + 8 * index as u64);
                    let first = Strays {
                        words: 0,
                        first: value,
                        at,
                    };
                    found.get_or_insert(first).words += 1;
                }
            }
        };
        look(&self.parameters, None);
        for contents in &self.contents {
            look(&contents.before, Some(contents.address));
        }
        found
    }
}
