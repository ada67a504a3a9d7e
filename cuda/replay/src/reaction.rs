// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed inputs for kernels that write nothing.
//!
//! A kernel that only checks leaves memory alone, as no launch does. So words behind a parameter are changed until
//! the recorded kernel writes; what it leaves, twice the same, is the reference.

use std::ops::Range;

const LAUNCHES: u32 = 24;
const WORD: usize = 4;
/// Bytes from a parameter's target, at most.
pub(crate) const WINDOW: usize = 4096;

/// A bit (indices stay near), a number's size, all bits.
const CHANGES: [u32; 3] = [1, 0x0040_0000, u32::MAX];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    piece: usize,
    words: Vec<usize>,
    bits: u32,
}

/// Changed inputs, and what is then written.
#[derive(Clone, Debug)]
pub struct Reaction {
    change: Change,
    /// Piece, word and value.
    written: Vec<(usize, usize, [u8; WORD])>,
}

impl Change {
    fn apply(&self, memory: &mut [Vec<u8>]) {
        for word in &self.words {
            let bytes = &mut memory[self.piece][word * WORD..(word + 1) * WORD];
            for (byte, bits) in bytes.iter_mut().zip(self.bits.to_le_bytes()) {
                *byte ^= bits;
            }
        }
    }
}

impl Reaction {
    /// Changed bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.change.words.len() * WORD) as u64
    }

    /// Bytes then written.
    #[must_use]
    pub fn written(&self) -> u64 {
        (self.written.len() * WORD) as u64
    }

    pub(crate) fn before(&self, mut memory: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.change.apply(&mut memory);
        memory
    }

    pub(crate) fn after(&self, mut changed: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        for (piece, word, value) in &self.written {
            changed[*piece][word * WORD..(word + 1) * WORD].copy_from_slice(value);
        }
        changed
    }
}

/// Windows are bytes of pieces; `fixed` words stay.
pub(crate) fn search<E>(
    memory: &[&[u8]],
    windows: &[(usize, Range<usize>)],
    fixed: impl Fn(usize, usize) -> bool,
    mut launch: impl FnMut(&[Vec<u8>]) -> Result<Vec<Vec<u8>>, E>,
) -> Result<Option<Reaction>, E> {
    let mut launches = 0;
    for bits in CHANGES {
        for (piece, window) in windows {
            let words = window.start / WORD..window.end / WORD;
            let words: Vec<usize> = words.filter(|word| !fixed(*piece, *word)).collect();
            // A second launch confirms the first.
            if words.is_empty() || launches + 2 > LAUNCHES {
                continue;
            }
            let change = Change {
                piece: *piece,
                words,
                bits,
            };
            let mut from: Vec<Vec<u8>> = memory.iter().map(|bytes| bytes.to_vec()).collect();
            change.apply(&mut from);
            let got = launch(&from)?;
            launches += 1;
            let written = differences(&from, &got);
            if written.is_empty() {
                continue;
            }
            launches += 1;
            if launch(&from)? == got {
                return Ok(Some(Reaction { change, written }));
            }
        }
    }
    Ok(None)
}

fn differences(from: &[Vec<u8>], got: &[Vec<u8>]) -> Vec<(usize, usize, [u8; WORD])> {
    let mut differences = Vec::new();
    for (piece, (from, got)) in from.iter().zip(got).enumerate() {
        let words = from
            .as_chunks::<WORD>()
            .0
            .iter()
            .zip(got.as_chunks::<WORD>().0);
        let changed = words.enumerate().filter(|(_, (from, got))| from != got);
        differences.extend(changed.map(|(word, (_, got))| (piece, word, *got)));
    }
    differences
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::{LAUNCHES, Reaction, search};

    type Memory = Vec<Vec<u8>>;

    fn floats(values: [f32; 4]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    fn found(memory: &Memory, kernel: impl Fn(&mut Memory)) -> Option<Reaction> {
        let pieces: Vec<&[u8]> = memory.iter().map(Vec::as_slice).collect();
        let launches = Cell::new(0);
        let windows = [(0, 0..16), (1, 0..16)];
        let found = search(
            &pieces,
            &windows,
            |_, word| word == 0,
            |from| {
                launches.set(launches.get() + 1);
                let mut memory = from.to_vec();
                kernel(&mut memory);
                Ok::<_, Infallible>(memory)
            },
        );
        assert!(launches.get() <= LAUNCHES);
        found.unwrap_or_else(|never| match never {})
    }

    fn check(memory: &mut Memory) {
        let value = |memory: &Memory, piece: usize, word: usize| {
            let bytes = &memory[piece][word * 4..word * 4 + 4];
            f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let far = |word: &usize| (value(memory, 0, *word) - value(memory, 1, *word)).abs() > 0.5;
        let count = (0..4).filter(far).count() as u32;
        if count > 0 {
            memory[2][..4].copy_from_slice(&count.to_le_bytes());
        }
    }

    fn memory() -> Memory {
        let values = floats([1.0, 2.0, 3.0, 4.0]);
        vec![values.clone(), values, floats([0.0; 4])]
    }

    #[test]
    fn a_kernel_that_checks_reacts_to_what_is_wrong() {
        let reaction = found(&memory(), check).unwrap();
        // A bit of three words is too little, the first of a mantissa is not.
        assert_eq!((reaction.bytes(), reaction.written()), (12, 4));
        let from = reaction.before(memory());
        assert_eq!(from[0][..4], memory()[0][..4]);
        let mut got = from.clone();
        check(&mut got);
        assert_eq!(got, reaction.after(from.clone()));
        assert_ne!(got, from, "a replay of nothing fails");
    }

    #[test]
    fn a_kernel_that_does_nothing_or_differs_from_run_to_run_shows_nothing() {
        assert!(found(&memory(), |_| ()).is_none());
        let run = Cell::new(0u8);
        let noise = |memory: &mut Memory| {
            run.set(run.get() + 1);
            memory[2][0] = run.get();
        };
        assert!(found(&memory(), noise).is_none());
    }
}
