// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversions between integers and floating-point numbers. Integers saturate; NaN becomes 0.

use super::lanes::{Halves, Part, each_half};
use super::rounding::{to_f16, to_f32};
use super::{Clamp, Round, float, half};

/// `F32_TO_S32`.
#[inline(always)]
pub fn f32_to_s32(x: u32, round: Round) -> u32 {
    f32::from_bits(float::fround(x, round)) as i32 as u32
}

/// `F32_TO_U32`.
#[inline(always)]
pub fn f32_to_u32(x: u32, round: Round) -> u32 {
    f32::from_bits(float::fround(x, round)) as u32
}

/// `S32_TO_F32`.
#[inline(always)]
pub fn s32_to_f32(x: u32, round: Round) -> u32 {
    match round {
        Round::Even => (x as i32 as f32).to_bits(),
        _ => to_f32(x as i32 as f64, round).to_bits(),
    }
}

/// `U32_TO_F32`.
#[inline(always)]
pub fn u32_to_f32(x: u32, round: Round) -> u32 {
    match round {
        Round::Even => (x as f32).to_bits(),
        _ => to_f32(x as f64, round).to_bits(),
    }
}

/// `S8_TO_F32` and `S16_TO_F32`, exact.
#[inline(always)]
pub fn signed_part_to_f32(x: u32, part: Part) -> u32 {
    (part.sign_extend(x) as i32 as f32).to_bits()
}

/// `U8_TO_F32` and `U16_TO_F32`, exact.
#[inline(always)]
pub fn unsigned_part_to_f32(x: u32, part: Part) -> u32 {
    (part.zero_extend(x) as f32).to_bits()
}

/// `F16_TO_F32` of one half.
#[inline(always)]
pub fn f16_to_f32(x: u32, high: bool) -> u32 {
    half::to_single((x >> (16 * high as u32)) as u16)
}

/// `F16_TO_S32` of one half.
#[inline(always)]
pub fn f16_to_s32(x: u32, high: bool, round: Round) -> u32 {
    f32_to_s32(f16_to_f32(x, high), round)
}

/// `F16_TO_U32` of one half.
#[inline(always)]
pub fn f16_to_u32(x: u32, high: bool, round: Round) -> u32 {
    f32_to_u32(f16_to_f32(x, high), round)
}

/// `V2F16_TO_V2S16`.
#[inline(always)]
pub fn v2f16_to_v2s16(x: u32, round: Round) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| f32::from_bits(float::fround(half::to_single(h), round)) as i16 as u16,
    )
}

/// `V2F16_TO_V2U16`.
#[inline(always)]
pub fn v2f16_to_v2u16(x: u32, round: Round) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| f32::from_bits(float::fround(half::to_single(h), round)) as u16,
    )
}

/// `V2S16_TO_V2F16`.
#[inline(always)]
pub fn v2s16_to_v2f16(x: u32, round: Round) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| to_f16(h as i16 as f64, round),
    )
}

/// `V2U16_TO_V2F16`. Above 65504 the rounding mode decides.
#[inline(always)]
pub fn v2u16_to_v2f16(x: u32, round: Round) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| to_f16(h as f64, round),
    )
}

/// `V2F32_TO_V2F16`: `low` becomes the low half.
#[inline(always)]
pub fn v2f32_to_v2f16(low: u32, high: u32, round: Round, clamp: Clamp) -> u32 {
    let (low, high) = (narrowed(low, round), narrowed(high, round));
    half::clamp(low as u32 | (high as u32) << 16, clamp)
}

#[inline(always)]
fn narrowed(x: u32, round: Round) -> u16 {
    match round {
        Round::Even => half::from_single(x),
        _ => to_f16(f32::from_bits(x) as f64, round),
    }
}

/// `V2S8_TO_V2F16` and `V2U8_TO_V2F16` of extended bytes.
#[inline(always)]
pub fn small_halves_to_v2f16(x: u32, signed: bool) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| {
            let v = if signed { h as i16 as f32 } else { h as f32 };
            half::from_single(v.to_bits())
        },
    )
}

/// Arranges halves for a `swz0` modifier.
#[inline(always)]
pub const fn arranged(x: u32, halves: Halves) -> u32 {
    halves.apply(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Round; 5] = [
        Round::Even,
        Round::Up,
        Round::Down,
        Round::Zero,
        Round::Away,
    ];

    fn rounded(x: f64, round: Round) -> f64 {
        match round {
            Round::Even => x.round_ties_even(),
            Round::Up => x.ceil(),
            Round::Down => x.floor(),
            Round::Away => x.round(),
            _ => x.trunc(),
        }
    }

    #[test]
    fn floats_to_integers() {
        let values = [
            0.0f32,
            -0.0,
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            0.49999997,
            2147483520.0,
            2147483648.0,
            -2147483648.0,
            -2147483904.0,
            4294967040.0,
            4294967296.0,
            1e20,
            -1e20,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            8388607.5,
            1e-45,
        ];
        for x in values {
            for round in MODES {
                let r = rounded(x as f64, round);
                let s = r.clamp(i32::MIN as f64, i32::MAX as f64);
                let s = if x.is_nan() { 0 } else { s as i64 as i32 };
                assert_eq!(f32_to_s32(x.to_bits(), round), s as u32, "{x} {round:?}");
                let u = if x.is_nan() {
                    0
                } else {
                    r.clamp(0.0, u32::MAX as f64) as u64 as u32
                };
                assert_eq!(f32_to_u32(x.to_bits(), round), u, "{x} {round:?}");
            }
        }
    }

    #[test]
    fn halves_to_integers_and_back() {
        for h in 0..=u16::MAX {
            let x = f32::from_bits(half::to_single(h)) as f64;
            for round in MODES {
                let r = if x.is_nan() { 0.0 } else { rounded(x, round) };
                let s = r.clamp(-32768.0, 32767.0) as i16 as u16 as u32;
                assert_eq!(v2f16_to_v2s16(h as u32, round), s);
                let u = r.clamp(0.0, 65535.0) as u16 as u32;
                assert_eq!(v2f16_to_v2u16((h as u32) << 16, round), u << 16);
                let full = r.clamp(-2147483648.0, 2147483647.0) as i32 as u32;
                assert_eq!(f16_to_s32(h as u32, false, round), full);
            }
        }
        for n in 0..=u16::MAX {
            let back = |x: u32| f32::from_bits(half::to_single(x as u16)) as f64;
            let (down, up) = (
                back(v2s16_to_v2f16(n as u32, Round::Down)),
                back(v2s16_to_v2f16(n as u32, Round::Up)),
            );
            let v = n as i16 as f64;
            assert!(down <= v && v <= up && up - down <= 16.0);
            let near = back(v2s16_to_v2f16(n as u32, Round::Even));
            assert!((near - v).abs() <= (up - v).min(v - down));
            assert_eq!(v2u16_to_v2f16(n as u32, Round::Even) as u16, {
                half::from_single((n as f32).to_bits())
            });
        }
        assert_eq!(v2u16_to_v2f16(0xffff, Round::Zero), 0x7bff);
        assert_eq!(v2u16_to_v2f16(0xffff, Round::Even), 0x7c00);
    }

    #[test]
    fn integers_to_singles() {
        for x in [
            0u32,
            1,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            u32::MAX,
            0x0100_0001,
        ] {
            let s = x as i32 as f64;
            let u = x as f64;
            assert_eq!(s32_to_f32(x, Round::Even), (x as i32 as f32).to_bits());
            assert_eq!(u32_to_f32(x, Round::Even), (x as f32).to_bits());
            assert!(f32::from_bits(s32_to_f32(x, Round::Down)) as f64 <= s);
            assert!(f32::from_bits(s32_to_f32(x, Round::Up)) as f64 >= s);
            assert!(f32::from_bits(u32_to_f32(x, Round::Zero)) as f64 <= u);
        }
        assert_eq!(
            signed_part_to_f32(0x80ff_0000, Part::B3),
            (-128f32).to_bits()
        );
        assert_eq!(
            unsigned_part_to_f32(0xffff_0000, Part::H1),
            65535f32.to_bits()
        );
    }

    #[test]
    fn packing_two_singles() {
        let (a, b) = (1.0f32.to_bits(), (-2.5f32).to_bits());
        assert_eq!(v2f32_to_v2f16(a, b, Round::Even, Clamp::None), 0xc100_3c00);
        assert_eq!(v2f32_to_v2f16(a, b, Round::Even, Clamp::ZeroInf), 0x3c00);
        let third = (1f32 / 3.0).to_bits();
        let down = v2f32_to_v2f16(third, third, Round::Down, Clamp::None);
        let up = v2f32_to_v2f16(third, third, Round::Up, Clamp::None);
        assert_eq!(up, down + 0x0001_0001);
        assert_eq!(small_halves_to_v2f16(0x00ff_ff80, true), 0x5bf8_d800);
    }
}
