// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs a clause's tuples, header and constants into 16-byte words.
//!
//! Bits 0-7 of a word are its tag. The rest: `low` (bits 8-82), `high` (83-127), `middle` (83-112), `constant`
//! (8-67), `nibbles` (68-82) and `top` (113-127). A tuple's 78 bits are its low 75 and three upper bits, in the tag
//! or in `top`. The number of tuples gives the sequence of words:
//!
//! | tuples | words |
//! |---|---|
//! | 1 | 0 |
//! | 2 | 0, 1 |
//! | 3 | 0, 2, 3 |
//! | 4 | 0, 2, 4 |
//! | 5 | 0, 2, 5, 6 |
//! | 6 | 0, 2, 4, 7, 8 |
//! | 7 | 0, 2, 4, 7, 9 |
//! | 8 | 0, 2, 4, 7, 10, 11 |
//!
//! Formats 3, 6, 8 and 11 hold one constant; then each word of format 12 holds two (six tuples have room for seven;
//! the last cannot be selected).

use crate::error::DecodeError;

/// Words of a clause.
pub const MAX_WORDS: usize = 8;
/// Bytes of a word.
pub const WORD_BYTES: usize = 16;

/// (first constant, tuples) by position nibble of format 12.
const POSITIONS: [Option<(u8, u8)>; 16] = [
    Some((0, 1)),
    Some((0, 2)),
    Some((0, 4)),
    Some((1, 3)),
    Some((1, 5)),
    Some((2, 4)),
    Some((0, 7)),
    Some((1, 6)),
    Some((3, 5)),
    Some((1, 8)),
    Some((2, 7)),
    Some((3, 6)),
    Some((3, 8)),
    Some((4, 7)),
    Some((5, 6)),
    None,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Packed {
    /// 45 bits.
    pub(crate) header: u64,
    /// 78 bits each.
    pub(crate) tuples: [u128; 8],
    pub(crate) count: u8,
    /// 60 bits each.
    pub(crate) constants: [u64; 7],
    pub(crate) constant_count: u8,
    /// Modifiers of a lone constant 0, if its format has them.
    pub(crate) nibbles: Option<(u8, u8)>,
}

fn bits(word: u128, start: u32, size: u32) -> u128 {
    (word >> start) & ((1 << size) - 1)
}

pub(crate) fn unpack<E: From<DecodeError>>(
    mut word: impl FnMut(usize) -> Result<[u8; WORD_BYTES], E>,
) -> Result<(Packed, usize), E> {
    let mut packed = Packed::default();
    // Whole tuples; whether the next one's low 45 bits are there; low 15 bits of constant 0.
    let (mut whole, mut begun, mut constant_low) = (0usize, false, None);
    let mut complete = false;
    for index in 0..MAX_WORDS {
        let q = u128::from_le_bytes(word(index)?);
        let tag = q as u8;
        let error = || {
            E::from(DecodeError::Tag {
                offset: index * WORD_BYTES,
                tag,
            })
        };
        let (low, high, middle) = (bits(q, 8, 75), bits(q, 83, 45), bits(q, 83, 30));
        let (constant, nibbles, top) = (bits(q, 8, 60) as u64, bits(q, 68, 15), bits(q, 113, 15));
        let (z, upper2, upper3) = (tag >> 6 & 1 == 1, tag >> 3 & 7, tag & 7);
        let place = |tuple: &mut u128, value: u128, at: u32| *tuple |= value << at;
        let mut last = false;
        if complete {
            // Format 12: two constants.
            let position = POSITIONS[usize::from(tag & 15)];
            if tag & 0xb0 != 0x30 || position != Some((packed.constant_count, packed.count)) {
                return Err(error());
            }
            let first = usize::from(packed.constant_count);
            if let Some([one, two]) = packed.constants.get_mut(first..first + 2) {
                (*one, *two) = (constant, bits(q, 68, 60) as u64);
            }
            packed.constant_count += 2;
            last = z;
        } else if tag & 0x80 != 0 {
            // Formats 5 and 10: the rest of a tuple, a whole one and the low bits of constant 0.
            let k = if z { 5 } else { 2 };
            if whole != k || !begun {
                return Err(error());
            }
            place(&mut packed.tuples[k], middle, 45);
            place(&mut packed.tuples[k], upper3.into(), 75);
            packed.tuples[k + 1] = low | u128::from(upper2) << 75;
            constant_low = Some(top as u64);
            (whole, begun) = (k + 2, false);
        } else {
            match upper2 {
                // Format 0: the first tuple and the header.
                1 | 5 if index == 0 => {
                    packed.tuples[0] = low | u128::from(upper3) << 75;
                    packed.header = high as u64;
                    whole = 1;
                    (complete, last) = (upper2 == 1, upper2 == 1 && z);
                    if upper2 == 5 && z {
                        return Err(error());
                    }
                }
                // Formats 2 and 7: a tuple and the low part of the next.
                4 => {
                    let k = if z { 4 } else { 1 };
                    if whole != k || begun {
                        return Err(error());
                    }
                    packed.tuples[k] = low | u128::from(upper3) << 75;
                    packed.tuples[k + 1] = high;
                    (whole, begun) = (k + 1, true);
                }
                // Formats 6 and 11: the last tuple and the high bits of constant 0.
                2 | 3 => {
                    let k = if upper2 == 2 { 4 } else { 7 };
                    let Some(low_bits) = constant_low.filter(|_| whole == k && !begun) else {
                        return Err(error());
                    };
                    packed.tuples[k] = low | u128::from(upper3) << 75;
                    packed.constants[0] = low_bits | (high as u64) << 15;
                    packed.constant_count = 1;
                    (whole, complete, last) = (k + 1, true, z);
                }
                0 => match upper3 {
                    // Format 1: the last tuple of two.
                    3 if whole == 1 && !begun => {
                        packed.tuples[1] = low | bits(top, 12, 3) << 75;
                        (whole, complete, last) = (2, true, z);
                    }
                    // Formats 3 and 8: the rest of the last tuple and constant 0.
                    4 | 6 => {
                        let k = if upper3 == 4 { 2 } else { 5 };
                        if whole != k || !begun {
                            return Err(error());
                        }
                        place(&mut packed.tuples[k], middle, 45);
                        place(&mut packed.tuples[k], bits(top, 12, 3), 75);
                        packed.constants[0] = constant;
                        packed.constant_count = 1;
                        packed.nibbles = Some(((nibbles & 15) as u8, (nibbles >> 4 & 15) as u8));
                        (whole, begun, complete, last) = (k + 1, false, true, z);
                    }
                    // Formats 4 and 9: the rest of a tuple and a whole one.
                    1 | 5 | 7 => {
                        let k = if upper3 == 7 { 5 } else { 2 };
                        if whole != k || !begun || (upper3 == 1 && z) {
                            return Err(error());
                        }
                        place(&mut packed.tuples[k], middle, 45);
                        place(&mut packed.tuples[k], bits(top, 12, 3), 75);
                        packed.tuples[k + 1] = low | bits(top, 9, 3) << 75;
                        (whole, begun) = (k + 2, false);
                        (complete, last) = (upper3 != 1, upper3 != 1 && z);
                    }
                    _ => return Err(error()),
                },
                _ => return Err(error()),
            }
        }
        packed.count = whole as u8;
        if last {
            return Ok((packed, index + 1));
        }
    }
    Err(E::from(DecodeError::Tag {
        offset: MAX_WORDS * WORD_BYTES,
        tag: 0,
    }))
}

/// Clauses of 3, 5, 6 and 8 tuples always hold a first constant (maybe 0). `None`: too many constants.
pub(crate) fn pack(packed: &Packed, mut emit: impl FnMut([u8; WORD_BYTES])) -> Option<()> {
    let count = usize::from(packed.count);
    let constants = usize::from(packed.constant_count);
    let embedded = usize::from(matches!(count, 3 | 5 | 6 | 8));
    let pairs = constants.saturating_sub(embedded).div_ceil(2);
    let position = |pair: usize| {
        let wanted = Some(((embedded + 2 * pair) as u8, packed.count));
        POSITIONS.iter().position(|p| *p == wanted)
    };
    if pairs > 0 {
        position(pairs - 1)?;
    }
    let z = u128::from(pairs == 0) << 6;
    let (t, constant) = (&packed.tuples, u128::from(packed.constants[0]));
    let low = |k: usize| bits(t[k], 0, 75) << 8;
    let upper = |k: usize| t[k] >> 75;
    let rest = |k: usize| bits(t[k], 45, 30) << 83;
    let begin = |k: usize| bits(t[k], 0, 45) << 83;
    let top = |k: usize, at: u32| upper(k) << (113 + at);
    let mut put = |word: u128| emit(word.to_le_bytes());
    let first = low(0) | upper(0) | u128::from(packed.header) << 83;
    if count == 1 {
        put(first | 1 << 3 | z);
    } else {
        put(first | 5 << 3);
    }
    let format2 = |k: usize| low(k) | begin(k + 1) | upper(k) | 4 << 3 | u128::from(k == 4) << 6;
    let format3 = |k: usize| {
        let (a, b) = packed.nibbles.unwrap_or((0, 0));
        let nibbles = u128::from(a & 15) | u128::from(b & 15) << 4;
        constant << 8 | nibbles << 68 | rest(k) | top(k, 12) | if k == 2 { 4 } else { 6 } | z
    };
    let format4 = |k: usize, tag: u128| low(k + 1) | rest(k) | top(k, 12) | top(k + 1, 9) | tag;
    let format5 = |k: usize| {
        let tag = 0x80 | u128::from(k == 5) << 6 | upper(k + 1) << 3 | upper(k);
        low(k + 1) | rest(k) | bits(constant, 0, 15) << 113 | tag
    };
    let format6 = |k: usize| {
        low(k) | upper(k) | (constant >> 15) << 83 | if k == 4 { 2 << 3 } else { 3 << 3 } | z
    };
    match count {
        1 => {}
        2 => put(low(1) | top(1, 12) | 3 | z),
        3..=8 => {
            put(format2(1));
            match count {
                3 => put(format3(2)),
                4 => put(format4(2, 5 | z)),
                5 => {
                    put(format5(2));
                    put(format6(4));
                }
                _ => {
                    put(format4(2, 1));
                    put(format2(4));
                    match count {
                        6 => put(format3(5)),
                        7 => put(format4(5, 7 | z)),
                        _ => {
                            put(format5(5));
                            put(format6(7));
                        }
                    }
                }
            }
        }
        _ => return None,
    }
    for pair in 0..pairs {
        let at = embedded + 2 * pair;
        let value = |i: usize| u128::from(packed.constants.get(i).copied().unwrap_or(0));
        let tag = 0x30 | position(pair)? as u128 | u128::from(pair + 1 == pairs) << 6;
        put(value(at) << 8 | value(at + 1) << 68 | tag);
    }
    Some(())
}
