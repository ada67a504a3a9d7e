// SPDX-License-Identifier: MIT OR Apache-2.0
//! Half-precision arithmetic on pairs (`v2f16`), rounded once.

use super::lanes::{each_half, each_half2, each_half3};
use super::rounding::{add_odd, to_f16, zero_sign};
use super::{Clamp, Compare, Nan, Round, Truth, float};

/// Every result's NaN.
pub const QUIET: u16 = 0x7e00;

/// True for NaN.
#[inline(always)]
pub const fn is_nan(h: u16) -> bool {
    h & 0x7fff > 0x7c00
}

/// Any NaN becomes [`QUIET`].
#[inline(always)]
pub const fn quiet(h: u16) -> u16 {
    if is_nan(h) { QUIET } else { h }
}

/// A NaN becomes quiet and keeps sign and payload.
#[inline(always)]
pub fn to_single(h: u16) -> u32 {
    let sign = ((h & 0x8000) as u32) << 16;
    let shifted = ((h & 0x7fff) as u32) << 13;
    // Exact: the bias changes from 15 to 127, and subnormals become normal.
    let scaled = (f32::from_bits(shifted) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = shifted | 0x7f80_0000 | (is_nan(h) as u32) << 22;
    sign | if h & 0x7c00 == 0x7c00 {
        special
    } else {
        scaled
    }
}

/// From single precision (exact or rounded to odd) to nearest even.
#[inline(always)]
pub fn from_single(x: u32) -> u16 {
    let sign = ((x >> 16) & 0x8000) as u16;
    let a = x & 0x7fff_ffff;
    // Subnormal results: let an addition align and round.
    let rebased = a
        .wrapping_sub(112 << 23)
        .wrapping_add(0xfff + (a >> 13 & 1))
        >> 13;
    let aligned = (f32::from_bits(a) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    let magnitude = if a < 113 << 23 { aligned } else { rebased };
    let finite = if a >= 0x477f_f000 { 0x7c00 } else { magnitude };
    sign | if a > 0x7f80_0000 {
        QUIET
    } else {
        finite as u16
    }
}

#[inline(always)]
fn value(h: u16) -> f32 {
    f32::from_bits(to_single(h))
}

#[inline(always)]
fn add_odd_single(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let from_b = sum - a;
    let from_a = sum - from_b;
    let error = (a - from_a) + (b - from_b);
    let bits = sum.to_bits();
    let same = ((bits ^ error.to_bits()) as i32) >= 0;
    let step = if same { 1u32 } else { u32::MAX };
    let inexact = error != 0.0 && error.is_finite() && bits & 1 == 0;
    f32::from_bits(if inexact {
        bits.wrapping_add(step)
    } else {
        bits
    })
}

/// Absolute value, then negation.
#[inline(always)]
pub const fn modify(x: u32, abs: bool, neg: bool) -> u32 {
    let keep = if abs { 0x7fff_7fff } else { u32::MAX };
    let flip = if neg { 0x8000_8000 } else { 0 };
    (x & keep) ^ flip
}

/// Subnormals become zeros of their sign.
#[inline(always)]
pub fn flush(x: u32) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| if h & 0x7c00 == 0 { h & 0x8000 } else { h },
    )
}

/// `QUIET.v2f16`.
#[inline(always)]
pub fn quiet2(x: u32) -> u32 {
    each_half(x, quiet)
}

/// Applies limits to one half.
#[inline(always)]
pub fn clamp_half(h: u16, limits: Clamp) -> u16 {
    match limits {
        Clamp::None => h,
        _ => from_single(float::clamp(to_single(h), limits)),
    }
}

/// Applies limits to both halves.
#[inline(always)]
pub fn clamp(x: u32, limits: Clamp) -> u32 {
    match limits {
        Clamp::None => x,
        _ => each_half(
            x,
            #[inline(always)]
            |h| clamp_half(h, limits),
        ),
    }
}

/// `a + b` per half.
#[inline(always)]
pub fn fadd(a: u32, b: u32, round: Round) -> u32 {
    match round {
        // With 24 bits of the sum of 11-bit numbers, rounding twice is right.
        Round::Even => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| from_single(float::bits(value(x) + value(y))),
        ),
        _ => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| {
                let (x, y) = (value(x) as f64, value(y) as f64);
                to_f16(zero_sign(x + y, x, y, round), round)
            },
        ),
    }
}

/// `x * y + z`, rounded once to nearest even; the product is exact in single precision.
#[inline(always)]
pub fn multiply_add(x: u16, y: u16, z: u16) -> u16 {
    from_single(float::bits(add_odd_single(value(x) * value(y), value(z))))
}

/// `a * b + c` per half, rounded once.
#[inline(always)]
pub fn fma(a: u32, b: u32, c: u32, round: Round) -> u32 {
    match round {
        Round::Even => each_half3(a, b, c, multiply_add),
        _ => each_half3(
            a,
            b,
            c,
            #[inline(always)]
            |x, y, z| {
                let product = value(x) as f64 * value(y) as f64;
                let z = value(z) as f64;
                to_f16(zero_sign(add_odd(product, z), product, z, round), round)
            },
        ),
    }
}

/// Maximum per half.
#[inline(always)]
pub fn fmax(a: u32, b: u32, nan: Nan) -> u32 {
    each_half2(
        a,
        b,
        #[inline(always)]
        |x, y| from_single(float::fmax(to_single(x), to_single(y), nan)),
    )
}

/// Minimum per half.
#[inline(always)]
pub fn fmin(a: u32, b: u32, nan: Nan) -> u32 {
    each_half2(
        a,
        b,
        #[inline(always)]
        |x, y| from_single(float::fmin(to_single(x), to_single(y), nan)),
    )
}

/// `FCMP.v2f16`.
#[inline(always)]
pub fn fcmp(a: u32, b: u32, compare: Compare, truth: Truth) -> u32 {
    each_half2(
        a,
        b,
        #[inline(always)]
        |x, y| truth.half(float::ordered(to_single(x), to_single(y), compare)),
    )
}

/// `CSEL.v2f16`: per half `c` if the comparison holds, else `d`.
#[inline(always)]
pub fn csel(a: u32, b: u32, c: u32, d: u32, compare: Compare) -> u32 {
    let mask = fcmp(a, b, compare, Truth::M1);
    (c & mask) | (d & !mask)
}

/// `FROUND.v2f16`.
#[inline(always)]
pub fn fround(x: u32, round: Round) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| from_single(float::fround(to_single(h), round)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interesting() -> Vec<u16> {
        let mut v = Vec::new();
        for e in 0..32u16 {
            for m in [0, 1, 2, 0x155, 0x1ff, 0x200, 0x201, 0x3fe, 0x3ff] {
                v.push(e << 10 | m);
                v.push(0x8000 | e << 10 | m);
            }
        }
        v
    }

    fn exact(h: u16) -> f64 {
        let sign = if h >> 15 == 1 { -1.0 } else { 1.0 };
        let (e, m) = ((h >> 10 & 31) as i32, (h & 1023) as f64);
        sign * match e {
            31 if m == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            0 => m * f64::powi(2.0, -24),
            _ => (m + 1024.0) * f64::powi(2.0, e - 25),
        }
    }

    #[test]
    fn conversion_is_exact_and_inverse() {
        for h in 0..=u16::MAX {
            let s = f32::from_bits(to_single(h));
            if is_nan(h) {
                assert!(s.is_nan() && s.to_bits() >> 22 & 1 == 1);
                assert_eq!(from_single(s.to_bits()) & 0x7fff, QUIET);
            } else {
                assert_eq!(s as f64, exact(h));
                assert_eq!(s.is_sign_negative(), h >> 15 == 1);
                assert_eq!(from_single(s.to_bits()), h);
            }
        }
    }

    #[test]
    fn narrowing_rounds_to_nearest_even() {
        for h in 0..0x7c00u16 {
            let low = exact(h);
            let high = if h == 0x7bff { 65536.0 } else { exact(h + 1) };
            let tie = ((low + high) / 2.0) as f32;
            let even = h + (h & 1);
            assert_eq!(from_single(tie.to_bits()), even);
            assert_eq!(from_single(tie.to_bits() - 1), h);
            assert_eq!(from_single(tie.to_bits() + 1), h + 1);
            assert_eq!(from_single((-tie).to_bits() + 1), 0x8000 | (h + 1));
            assert_eq!(to_f16(tie as f64, Round::Even), even);
        }
        assert_eq!(from_single(f32::MAX.to_bits()), 0x7c00);
        assert_eq!(from_single(1), 0);
    }

    #[test]
    fn sums_round_once_in_every_mode() {
        let v = interesting();
        for &a in &v {
            for &b in &v {
                let sum = exact(a) + exact(b);
                for round in [Round::Even, Round::Up, Round::Down, Round::Zero] {
                    let want = to_f16(zero_sign(sum, exact(a), exact(b), round), round);
                    let got = fadd(a as u32, b as u32, round) as u16;
                    assert_eq!(got & 0x7fff, want & 0x7fff, "{a:04x} {b:04x} {round:?}");
                    assert!(got == want || sum.is_nan());
                }
            }
        }
    }

    #[test]
    fn fused_multiply_add_rounds_once() {
        let v = interesting();
        for (i, &a) in v.iter().enumerate().step_by(3) {
            for &b in v.iter().skip(i % 5).step_by(7) {
                for &c in v.iter().skip(i % 3).step_by(2) {
                    if is_nan(a) | is_nan(b) | is_nan(c) {
                        continue;
                    }
                    let product = exact(a) * exact(b);
                    let want = add_odd(product, exact(c));
                    let got = fma(a as u32, b as u32, c as u32, Round::Even) as u16;
                    if want.is_nan() {
                        assert_eq!(got & 0x7fff, QUIET);
                        continue;
                    }
                    assert_eq!(got, to_f16(want, Round::Even), "{a:04x} {b:04x} {c:04x}");
                    if product.is_finite() && exact(c).is_finite() {
                        let scale = f64::powi(2.0, 48);
                        let whole = (product * scale) as i128 + (exact(c) * scale) as i128;
                        let low = fma(a as u32, b as u32, c as u32, Round::Down) as u16;
                        let high = fma(a as u32, b as u32, c as u32, Round::Up) as u16;
                        let back = |h: u16| (exact(h) * scale) as i128;
                        assert!(low == 0xfc00 || back(low) <= whole);
                        assert!(high == 0x7c00 || back(high) >= whole);
                        assert!(got == low || got == high);
                    }
                }
            }
        }
    }

    #[test]
    fn two_halves_are_independent() {
        let a = 0x3c00_4000; // 1, 2
        let b = 0xbc00_4200; // -1, 3
        assert_eq!(fadd(a, b, Round::Even), 0x0000_4500);
        assert_eq!(fmax(a, b, Nan::Suppress), 0x3c00_4200);
        assert_eq!(fmin(a, b, Nan::Suppress), 0xbc00_4000);
        assert_eq!(fcmp(a, b, Compare::Lt, Truth::M1), 0x0000_ffff);
        assert_eq!(fcmp(a, b, Compare::Gt, Truth::F1), 0x3c00_0000);
        assert_eq!(
            csel(a, b, 0x1111_2222, 0x3333_4444, Compare::Gt),
            0x1111_4444
        );
        assert_eq!(modify(b, true, true), 0xbc00_c200);
        assert_eq!(flush(0x8001_0400), 0x8000_0400);
        assert_eq!(clamp(b, Clamp::ZeroOne), 0x0000_3c00);
        assert_eq!(fround(0x3e00_4100, Round::Even), 0x4000_4000);
        assert_eq!(quiet2(0xfc01_3c00), 0x7e00_3c00);
    }
}
