// SPDX-License-Identifier: MIT OR Apache-2.0
//! Embedded constants, and what an FAU index selects.
//!
//! Two constants of a word hide two modifier nibbles: the differences (modulo 16) of bits 60-63 and of bits 28-31.
//! A constant alone has its nibbles beside it, or none.

use crate::clause::Constant;
use crate::error::{DecodeError, EncodeError};
use crate::fau::{Fau, Relative};

fn relatives(first: u8, second: u8) -> Option<[Relative; 2]> {
    use Relative::{Both, High, None as Plain, Whole};
    Some(match (first, second) {
        (0 | 8..=15, _) => [Plain, Plain],
        (1 | 6, _) => [Whole, Plain],
        (2, _) => [Whole, Whole],
        (4, _) => [High, Plain],
        (5, _) => [High, High],
        (7, 0) => [Both, Plain],
        (7, 1 | 3) => [Both, High],
        (7, 2) => [Both, Both],
        _ => return None,
    })
}

fn nibbles(first: u64, second: u64) -> (u8, u8) {
    let difference = |shift: u32| ((first >> shift).wrapping_sub(second >> shift) & 15) as u8;
    (difference(60), difference(28))
}

/// `values` have bits 0-3 clear; `single` are nibbles of a lone constant 0.
pub(crate) fn decode(
    values: &[u64],
    alone: bool,
    single: Option<(u8, u8)>,
) -> Result<[Constant; 7], DecodeError> {
    let mut constants = [Constant::default(); 7];
    let mut at = 0;
    if alone {
        let (a, b) = single.unwrap_or((0, 0));
        let relative = relatives(a, b).ok_or(DecodeError::Constants {
            index: 0,
            nibbles: a | b << 4,
        })?;
        constants[0] = Constant {
            value: values.first().copied().unwrap_or(0),
            relative: relative[0],
        };
        at = 1;
    }
    while let Some(&[first, second]) = values.get(at..at + 2) {
        let (a, b) = nibbles(first, second);
        let relative = relatives(a, b).ok_or(DecodeError::Constants {
            index: at as u8,
            nibbles: a | b << 4,
        })?;
        if let Some([one, two]) = constants.get_mut(at..at + 2) {
            *one = Constant {
                value: first,
                relative: relative[0],
            };
            *two = Constant {
                value: second,
                relative: relative[1],
            };
        }
        at += 2;
    }
    Ok(constants)
}

pub(crate) fn single(relative: Relative) -> (u8, u8) {
    match relative {
        Relative::None => (0, 0),
        Relative::Whole => (1, 0),
        Relative::High => (4, 0),
        Relative::Both => (7, 0),
    }
}

pub(crate) fn pair(
    index: u8,
    first: Constant,
    second: Constant,
) -> Result<(u64, u64), EncodeError> {
    let wanted = [first.relative, second.relative];
    let fits = |a: u64, b: u64| {
        let (upper, lower) = nibbles(a, b);
        relatives(upper, lower) == Some(wanted)
    };
    if fits(first.value, second.value) {
        return Ok((first.value, second.value));
    }
    // Free in a relative constant: bits 60-63, and 28-31 if its low word is relative too.
    let add = |value: u64, base: u64, shift: u32, n: u64| {
        (value & !(15 << shift)) | (((base >> shift) + n) & 15) << shift
    };
    for upper in 0..8 {
        for lower in 0..4 {
            let mut a = first.value;
            if first.relative != Relative::None {
                a = add(a, second.value, 60, upper);
            }
            if first.relative == Relative::Both {
                a = add(a, second.value, 28, lower);
            }
            if fits(a, second.value) {
                return Ok((a, second.value));
            }
        }
    }
    Err(EncodeError::ConstantOrder { index })
}

pub(crate) fn select(index: u8, constants: &[Constant]) -> Fau {
    let number = match index >> 4 {
        0 => {
            return match index {
                0 => Fau::Zero,
                1 => Fau::LaneId,
                2 => Fau::WarpId,
                3 => Fau::CoreId,
                4 => Fau::FramebufferSize,
                5 => Fau::AtestDatum,
                6 => Fau::SamplePositions,
                7 => Fau::Reserved(index),
                _ => Fau::Blend(index - 8),
            };
        }
        1 => return Fau::Reserved(index),
        2 => 4,
        3 => 5,
        n @ 4..=7 => n - 4,
        _ => return Fau::Uniform(index & 0x7f),
    };
    match constants.get(usize::from(number)) {
        Some(c) => Fau::Constant {
            value: c.value | u64::from(index & 15),
            relative: c.relative,
            index: number,
        },
        None => Fau::Missing(number),
    }
}

/// Inverse of decoding.
pub fn fau_index(fau: Fau) -> u8 {
    const CONSTANTS: [u8; 6] = [0x40, 0x50, 0x60, 0x70, 0x20, 0x30];
    match fau {
        Fau::Zero => 0,
        Fau::LaneId => 1,
        Fau::WarpId => 2,
        Fau::CoreId => 3,
        Fau::FramebufferSize => 4,
        Fau::AtestDatum => 5,
        Fau::SamplePositions => 6,
        Fau::Blend(n) => 8 | (n & 7),
        Fau::Uniform(n) => 0x80 | n,
        Fau::Constant { value, index, .. } => {
            CONSTANTS[usize::from(index) % 6] | (value & 15) as u8
        }
        Fau::Missing(index) => CONSTANTS[usize::from(index) % 6],
        Fau::Reserved(index) => index,
    }
}
