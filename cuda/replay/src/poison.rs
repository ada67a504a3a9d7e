// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds words that a launch rewrites: changed, they must come back.

use std::collections::VecDeque;

const LAUNCHES: u32 = 24;
const WORD: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words(Vec<u64>);

impl Words {
    fn new(bytes: usize) -> Self {
        Self(vec![0; (bytes / WORD).div_ceil(64)])
    }

    fn insert(&mut self, word: usize) {
        if let Some(bits) = self.0.get_mut(word / 64) {
            *bits |= 1 << (word % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(index, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(index * 64 + bit as usize)
            })
        })
    }
}

pub(crate) struct Piece<'a> {
    pub(crate) before: &'a [u8],
    pub(crate) after: &'a [u8],
}

/// Words to change before a launch, which must write them.
#[derive(Clone, Debug, Default)]
pub struct Poison {
    words: Vec<Words>,
    written: u64,
}

impl Poison {
    /// Changed bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        count(&self.words) * WORD as u64
    }

    /// Bytes the recorded kernel writes.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written * WORD as u64
    }

    /// Nothing is changed: then nothing can be shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    pub(crate) fn apply(&self, pieces: &[Piece<'_>]) -> Vec<Vec<u8>> {
        scrambled(pieces, &self.words, Scramble::Word)
    }
}

#[derive(Clone, Copy)]
enum Scramble {
    /// The lowest: indices and counts stay near.
    Bit,
    Word,
}

impl Scramble {
    const fn mask(self) -> [u8; WORD] {
        match self {
            Self::Bit => [1, 0, 0, 0],
            Self::Word => [0xff; WORD],
        }
    }
}

fn count(words: &[Words]) -> u64 {
    words.iter().map(Words::count).sum()
}

fn scrambled(pieces: &[Piece<'_>], words: &[Words], how: Scramble) -> Vec<Vec<u8>> {
    let change = |(piece, words): (&Piece<'_>, &Words)| {
        let mut bytes = piece.before.to_vec();
        for word in words.iter() {
            let range = word * WORD..(word + 1) * WORD;
            let after = &piece.after[range.clone()];
            for ((byte, after), mask) in bytes[range].iter_mut().zip(after).zip(how.mask()) {
                *byte = after ^ mask;
            }
        }
        bytes
    };
    pieces.iter().zip(words).map(change).collect()
}

fn select(
    words: &[Words],
    one: &[Vec<u8>],
    other: &[&[u8]],
    condition: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<Words> {
    let pieces = words.iter().zip(one).zip(other);
    let filter = |((words, one), other): ((&Words, &Vec<u8>), &&[u8])| {
        let mut selected = Words::new(one.len());
        for word in words.iter() {
            let range = word * WORD..(word + 1) * WORD;
            if condition(&one[range.clone()], &other[range]) {
                selected.insert(word);
            }
        }
        selected
    };
    pieces.map(filter).collect()
}

fn halves(words: &[Words]) -> [Vec<Words>; 2] {
    let half = count(words) / 2;
    let mut passed = 0;
    let mut halves = [words.to_vec(), words.to_vec()];
    for (piece, words) in words.iter().enumerate() {
        for (index, bits) in words.0.iter().enumerate() {
            let (mut low, mut left) = (0, *bits);
            while left != 0 && passed < half {
                low |= left & left.wrapping_neg();
                left &= left.wrapping_sub(1);
                passed += 1;
            }
            halves[0][piece].0[index] = low;
            halves[1][piece].0[index] = left;
        }
    }
    halves
}

struct Probe {
    is_right: bool,
    written: Vec<Words>,
}

struct Search<'a, L, R> {
    pieces: &'a [Piece<'a>],
    launch: L,
    is_right: R,
    launches: u32,
}

impl<E, L, R> Search<'_, L, R>
where
    L: FnMut(&[Vec<u8>]) -> Result<Vec<Vec<u8>>, E>,
    R: Fn(&[Vec<u8>]) -> bool,
{
    fn run(&mut self, from: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, E> {
        self.launches += 1;
        (self.launch)(from)
    }

    fn probe(&mut self, words: &[Words], how: Scramble) -> Result<Probe, E> {
        let from = scrambled(self.pieces, words, how);
        let got = self.run(&from)?;
        let after: Vec<&[u8]> = self.pieces.iter().map(|piece| piece.after).collect();
        Ok(Probe {
            is_right: (self.is_right)(&got),
            written: select(words, &got, &after, |got, after| got == after),
        })
    }

    fn changed(&mut self, may: &[Words]) -> Result<Vec<Words>, E> {
        let from = scrambled(self.pieces, may, Scramble::Bit);
        let got = self.run(&from)?;
        let from: Vec<&[u8]> = from.iter().map(Vec::as_slice).collect();
        Ok(select(may, &got, &from, |got, from| got != from))
    }

    /// Parts that can each be changed by a bit without a trace.
    fn parts(&mut self, all: Vec<Words>) -> Result<Vec<Words>, E> {
        let empty = self
            .pieces
            .iter()
            .map(|piece| Words::new(piece.before.len()));
        let mut found: Vec<Words> = empty.collect();
        let mut queue = VecDeque::from([all]);
        // Six launches are left to confirm whole sets.
        while self.launches < LAUNCHES - 6
            && let Some(words) = queue.pop_front()
        {
            let size = count(&words);
            if size == 0 {
                continue;
            }
            let probe = self.probe(&words, Scramble::Bit)?;
            let written = count(&probe.written);
            if probe.is_right && written > 0 {
                for (found, written) in found.iter_mut().zip(&probe.written) {
                    for (found, written) in found.0.iter_mut().zip(&written.0) {
                        *found |= written;
                    }
                }
            } else if written > 0 && written < size {
                queue.push_front(probe.written);
            } else if size > 1 {
                queue.extend(halves(&words));
            }
        }
        Ok(found)
    }
}

/// Words that can be changed wholly while the kernel leaves all memory as recorded: it wrote them. `fixed` (piece,
/// word), such as pointers, stay.
///
/// A launch confirms each whole set. Words that are only added to never come back.
pub(crate) fn search<E>(
    pieces: &[Piece<'_>],
    fixed: impl Fn(usize, usize) -> bool,
    is_right: impl Fn(&[Vec<u8>]) -> bool,
    launch: impl FnMut(&[Vec<u8>]) -> Result<Vec<Vec<u8>>, E>,
) -> Result<Poison, E> {
    let may: Vec<Words> = pieces
        .iter()
        .enumerate()
        .map(|(number, piece)| {
            let mut words = Words::new(piece.before.len());
            for word in 0..piece.before.len() / WORD {
                if !fixed(number, word) {
                    words.insert(word);
                }
            }
            words
        })
        .collect();
    let mut search = Search {
        pieces,
        launch,
        is_right,
        launches: 0,
    };
    let changed = search.changed(&may)?;
    let written = count(&changed);
    let mut words = search.parts(changed)?;
    while search.launches < LAUNCHES && count(&words) > 0 {
        let probe = search.probe(&words, Scramble::Word)?;
        let same = count(&probe.written) == count(&words);
        if probe.is_right && same {
            return Ok(Poison { words, written });
        }
        // They change other results, so are no outputs: try half.
        words = if same {
            let [low, _] = halves(&probe.written);
            low
        } else {
            probe.written
        };
    }
    Ok(Poison {
        words: Vec::new(),
        written,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::{LAUNCHES, Piece, Poison, search};

    type Memory = Vec<Vec<u8>>;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn at(memory: &Memory, piece: usize, word: usize) -> u32 {
        let bytes = &memory[piece][word * 4..word * 4 + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn put(memory: &mut Memory, piece: usize, word: usize, value: u32) {
        memory[piece][word * 4..word * 4 + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn poison(memory: &Memory, kernel: impl Fn(&mut Memory)) -> (Poison, Memory) {
        let mut memory = memory.clone();
        kernel(&mut memory);
        let mut again = memory.clone();
        kernel(&mut again);
        assert_eq!(again, memory, "the null replay passes");
        let pieces: Vec<Piece<'_>> = memory
            .iter()
            .map(|bytes| Piece {
                before: bytes,
                after: bytes,
            })
            .collect();
        let launches = Cell::new(0);
        let found = search(
            &pieces,
            |_, _| false,
            |got| got == memory,
            |from| {
                launches.set(launches.get() + 1);
                let mut memory = from.to_vec();
                kernel(&mut memory);
                Ok::<_, Infallible>(memory)
            },
        );
        assert!(launches.get() <= LAUNCHES);
        let poison = found.unwrap_or_else(|never| match never {});
        let mut from = memory.clone();
        if !poison.is_empty() {
            from = poison.apply(&pieces);
            assert_ne!(from, memory, "the null replay fails");
            let mut got = from.clone();
            kernel(&mut got);
            assert_eq!(got, memory, "the plan holds");
        }
        (poison, from)
    }

    fn three() -> Memory {
        vec![
            words(&[3, 5, 7, 9]),
            words(&[0; 4]),
            words(&[100, 200, 300, 400]),
        ]
    }

    fn double(memory: &mut Memory, count: usize) {
        for word in 0..count {
            let value = at(memory, 0, word).wrapping_mul(2);
            put(memory, 1, word, value);
        }
    }

    #[test]
    fn what_is_written_again_is_proven_and_nothing_else_changes() {
        let (poison, from) = poison(&three(), |memory| double(memory, 4));
        assert_eq!((poison.bytes(), poison.written()), (16, 16));
        assert_eq!(from[0], three()[0]);
        assert_eq!(from[2], three()[2]);
        assert_eq!(from[1], words(&[!6, !10, !14, !18]));
    }

    #[test]
    fn a_kernel_that_writes_half_fails_where_the_whole_one_passes() {
        let (whole, from) = poison(&three(), |memory| double(memory, 4));
        assert_eq!(whole.bytes(), 16);
        let mut got = from;
        double(&mut got, 2);
        assert_eq!(got[1], words(&[6, 10, !14, !18]));
        let (half, _) = poison(&three(), |memory| double(memory, 2));
        assert_eq!((half.bytes(), half.written()), (8, 8));
    }

    #[test]
    fn a_kernel_that_does_nothing_proves_nothing() {
        let (poison, _) = poison(&three(), |_| ());
        assert!(poison.is_empty());
        assert_eq!(poison.written(), 0);
    }

    #[test]
    fn a_kernel_that_accumulates_proves_nothing() {
        // First it adds zeros; then less than a float can hold.
        let (nothing, _) = poison(&three(), |memory| {
            for word in 0..4 {
                let value = at(memory, 2, word).wrapping_add(at(memory, 1, word));
                put(memory, 2, word, value);
            }
        });
        assert!(nothing.is_empty());
        let floats = vec![words(&[16f32.to_bits(), 32f32.to_bits()])];
        let (absorbed, _) = poison(&floats, |memory| {
            for word in 0..2 {
                let value = f32::from_bits(at(memory, 0, word));
                let half = (value.abs() * f32::EPSILON) / 4.0;
                put(memory, 0, word, (value - half).to_bits());
            }
        });
        assert!(absorbed.is_empty());
    }

    #[test]
    fn outputs_are_told_from_state_that_they_depend_on() {
        // Piece 2 stays what it is if it is even, and is added to all of piece 1.
        let (poison, from) = poison(&three(), |memory| {
            double(memory, 4);
            for word in 0..4 {
                let state = at(memory, 2, word);
                let state = if state.is_multiple_of(2) {
                    state
                } else {
                    state.wrapping_add(3)
                };
                put(memory, 2, word, state);
                let value = at(memory, 1, word).wrapping_add(at(memory, 2, 0));
                put(memory, 1, word, value);
            }
        });
        assert_eq!(poison.bytes(), 16);
        assert_eq!(poison.written(), 32);
        assert_eq!(from[2], three()[2]);
    }

    #[test]
    fn fixed_words_stay() {
        let memory = vec![words(&[1, 2, 3, 4])];
        let pieces = [Piece {
            before: &memory[0],
            after: &memory[0],
        }];
        let found = search(
            &pieces,
            |piece, word| piece == 0 && word == 1,
            |got| got == memory,
            |_| Ok::<_, Infallible>(memory.clone()),
        );
        let poison = found.unwrap_or_else(|never| match never {});
        assert_eq!(poison.bytes(), 12);
        assert_eq!(poison.apply(&pieces)[0], words(&[!1, 2, !3, !4]));
    }
}
