// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exponents: splitting and scaling numbers.

use super::lanes::{each_half, each_half2};
use super::rounding::{add_odd, to_f16, to_f32, zero_sign};
use super::{Round, float, half};

/// Mantissas of `FREXPM` and `FREXPE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interval {
    /// `[0.5, 1)`.
    #[default]
    Half,
    /// `[0.25, 1)`, even exponent given halved (`.sqrt`).
    Sqrt,
    /// `[0.75, 1.5)` (`.log`).
    Log,
}

/// `special` modifier of scaled operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Special {
    /// As IEEE 754.
    #[default]
    None,
    /// Zero times infinity is zero (`n`).
    Zero,
    /// As [`Special::None`]: NaN is canonical here (`left`).
    Left,
    /// The scale is the source's signed low half (`scale16`).
    Scale16,
}

/// Power of two for `-1022 <= n <= 1023`.
#[inline(always)]
fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// `x * 2^n` for magnitudes from 2^-300 to 2^260; exact, or certainly out of single range.
#[inline(always)]
fn scaled(x: f64, n: i32) -> f64 {
    let n = n.clamp(-700, 700);
    let first = n >> 1;
    x * power(first) * power(n - first)
}

/// Sign, magnitude in `[1, 2)`, exponent; `x` is finite and not zero.
#[inline(always)]
fn split(x: u32) -> (u32, u32, i32) {
    let sign = x & 0x8000_0000;
    let a = x & 0x7fff_ffff;
    // A subnormal is scaled by 2^24.
    let normal = (f32::from_bits(a) * 16_777_216.0).to_bits();
    let small = a < 0x0080_0000;
    let bits = if small { normal } else { a };
    let exponent = (bits >> 23) as i32 - 127 - if small { 24 } else { 0 };
    (sign, bits & 0x007f_ffff | 0x3f80_0000, exponent)
}

#[inline(always)]
const fn exceptional(x: u32) -> bool {
    let a = x & 0x7fff_ffff;
    a == 0 || a >= 0x7f80_0000
}

/// Halvings that bring a mantissa in `[1, 2)` into `interval`.
#[inline(always)]
fn halvings(mantissa: u32, exponent: i32, interval: Interval) -> i32 {
    match interval {
        Interval::Half => 1,
        Interval::Sqrt => {
            if exponent & 1 == 0 {
                2
            } else {
                1
            }
        }
        Interval::Log => (mantissa >= 0x3fc0_0000) as i32,
    }
}

/// `FREXPM.f32`: signed mantissa.
///
/// Zero, infinity and NaN stay, but infinity gives `1.0` for [`Interval::Log`]: the G71 code multiplies it by a
/// table value, which is infinity.
#[inline(always)]
pub fn frexpm(x: u32, interval: Interval) -> u32 {
    let (sign, mantissa, exponent) = split(x);
    let down = halvings(mantissa, exponent, interval) as u32;
    let value = sign | (mantissa - (down << 23));
    let special = if interval == Interval::Log && x & 0x7fff_ffff == 0x7f80_0000 {
        sign | 0x3f80_0000
    } else {
        float::quiet(x)
    };
    if exceptional(x) { special } else { value }
}

/// `FREXPE.f32`: exponent to [`frexpm`]; 0 for zero, infinity and NaN.
#[inline(always)]
pub fn frexpe(x: u32, interval: Interval, neg: bool) -> u32 {
    let (_, mantissa, exponent) = split(x);
    let e = exponent + halvings(mantissa, exponent, interval);
    let e = if interval == Interval::Sqrt {
        e >> 1
    } else {
        e
    };
    let e = if exceptional(x) { 0 } else { e };
    (if neg { -e } else { e }) as u32
}

/// `FREXPM.v2f16`.
#[inline(always)]
pub fn frexpm_half(x: u32, interval: Interval) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| half::from_single(frexpm(half::to_single(h), interval)),
    )
}

/// `FREXPE.v2f16`: two 16-bit integers.
#[inline(always)]
pub fn frexpe_half(x: u32, interval: Interval, neg: bool) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| frexpe(half::to_single(h), interval, neg) as u16,
    )
}

/// `LDEXP.f32`: `x * 2^n` with one rounding.
#[inline(always)]
pub fn ldexp(x: u32, n: u32, round: Round) -> u32 {
    float::bits(to_f32(scaled(f32::from_bits(x) as f64, n as i32), round))
}

/// `LDEXP.v2f16`; exponents are signed 16-bit.
#[inline(always)]
pub fn ldexp_half(x: u32, n: u32, round: Round) -> u32 {
    each_half2(
        x,
        n,
        #[inline(always)]
        |h, n| {
            let v = f32::from_bits(half::to_single(h)) as f64;
            to_f16(scaled(v, n as i16 as i32), round)
        },
    )
}

#[inline(always)]
fn product(a: u32, b: u32, special: Special) -> f64 {
    let (x, y) = (f32::from_bits(a) as f64, f32::from_bits(b) as f64);
    let p = x * y;
    let numbers = !(x.is_nan() | y.is_nan());
    if special == Special::Zero && p.is_nan() && numbers {
        0.0
    } else {
        p
    }
}

/// `FMA_RSCALE.f32`: `(a * b + c) * 2^d`, rounded once.
#[inline(always)]
pub fn fma_rscale(a: u32, b: u32, c: u32, d: u32, round: Round, special: Special) -> u32 {
    let d = match special {
        Special::Scale16 => d as i16 as i32,
        _ => d as i32,
    };
    let p = product(a, b, special);
    let c = f32::from_bits(c) as f64;
    let sum = zero_sign(add_odd(p, c), p, c, round);
    float::bits(to_f32(scaled(sum, d), round))
}

/// `FMA_RSCALE.v2f16`, with a signed 16-bit `d`.
#[inline(always)]
pub fn fma_rscale_half(a: u32, b: u32, c: u32, d: u32, round: Round, special: Special) -> u32 {
    let one = |i: u32| {
        let part = |x: u32| half::to_single((x >> (16 * i)) as u16);
        let p = product(part(a), part(b), special);
        let c = f32::from_bits(part(c)) as f64;
        let sum = zero_sign(add_odd(p, c), p, c, round);
        let d = (d >> (16 * i)) as i16 as i32;
        (to_f16(scaled(sum, d), round) as u32) << (16 * i)
    };
    one(0) | one(1)
}

/// `FADD_RSCALE.f32`: `(a + b) * 2^c`, rounded once.
#[inline(always)]
pub fn fadd_rscale(a: u32, b: u32, c: u32, round: Round) -> u32 {
    let (x, y) = (f32::from_bits(a) as f64, f32::from_bits(b) as f64);
    let sum = zero_sign(add_odd(x, y), x, y, round);
    float::bits(to_f32(scaled(sum, c as i32), round))
}

/// `FADD_LSCALE.f32`: `a` plus the mantissa of `b` for [`Interval::Log`] (infinity stays).
#[inline(always)]
pub fn fadd_lscale(a: u32, b: u32) -> u32 {
    let infinite = b & 0x7fff_ffff == 0x7f80_0000;
    let m = if infinite {
        b
    } else {
        frexpm(b, Interval::Log)
    };
    float::fadd(a, m)
}

/// `LOGB.f32`: exponent; `-inf` for zero, `inf` for infinity.
#[inline(always)]
pub fn logb(x: u32) -> u32 {
    let (_, _, e) = split(x);
    let a = x & 0x7fff_ffff;
    if a == 0 {
        0xff80_0000
    } else if a >= 0x7f80_0000 {
        float::quiet(a)
    } else {
        (e as f32).to_bits()
    }
}

/// `ILOGB.f32`: exponent; least for zero, greatest for infinity and NaN.
#[inline(always)]
pub fn ilogb(x: u32) -> u32 {
    let (_, _, e) = split(x);
    let a = x & 0x7fff_ffff;
    if a == 0 {
        0x8000_0000
    } else if a >= 0x7f80_0000 {
        0x7fff_ffff
    } else {
        e as u32
    }
}

/// `LOGB.v2f16`.
#[inline(always)]
pub fn logb_half(x: u32) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| half::from_single(logb(half::to_single(h))),
    )
}

/// `ILOGB.v2f16`: two 16-bit integers, saturated as in [`ilogb`].
#[inline(always)]
pub fn ilogb_half(x: u32) -> u32 {
    each_half(
        x,
        #[inline(always)]
        |h| (ilogb(half::to_single(h)) as i32).clamp(-0x8000, 0x7fff) as u16,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> impl Iterator<Item = f32> {
        let mut random = fastrand::Rng::with_seed(9);
        (0..50_000).map(move |i| {
            let x = random.u32(..);
            f32::from_bits(match i % 3 {
                0 => x,
                1 => x & 0x807f_ffff,
                _ => x & 0xff80_0000 | 0x0040_0000,
            })
        })
    }

    #[test]
    fn mantissa_and_exponent_make_the_number() {
        for x in numbers().filter(|x| x.is_finite() && *x != 0.0) {
            for interval in [Interval::Half, Interval::Sqrt, Interval::Log] {
                let m = f32::from_bits(frexpm(x.to_bits(), interval));
                let e = frexpe(x.to_bits(), interval, false) as i32;
                let (low, high) = match interval {
                    Interval::Half => (0.5, 1.0),
                    Interval::Sqrt => (0.25, 1.0),
                    Interval::Log => (0.75, 1.5),
                };
                assert!((low..high).contains(&m.abs()), "{x} {m} {interval:?}");
                let full = if interval == Interval::Sqrt { 2 * e } else { e };
                assert_eq!(m as f64 * f64::powi(2.0, full), x as f64);
                assert_eq!(frexpe(x.to_bits(), interval, true) as i32, -e);
            }
            let e = (x.abs() as f64).log2().floor();
            assert_eq!(f32::from_bits(logb(x.to_bits())) as f64, e);
            assert_eq!(ilogb(x.to_bits()) as i32 as f64, e);
        }
    }

    #[test]
    fn exceptional_numbers() {
        let (inf, nan) = (0x7f80_0000, 0x7fc0_0000);
        for x in [0, 1 << 31, inf, nan] {
            assert_eq!(frexpm(x, Interval::Half), x);
            assert_eq!(frexpe(x, Interval::Sqrt, true), 0);
        }
        assert_eq!(frexpm(inf | 1 << 31, Interval::Log), (-1f32).to_bits());
        assert_eq!(logb(0), 0xff80_0000);
        assert_eq!(logb(inf | 1 << 31), inf);
        assert_eq!(ilogb(nan), 0x7fff_ffff);
        assert_eq!(ilogb_half(0x7c00_0000), 0x7fff_8000);
        assert_eq!(fadd_lscale((-1f32).to_bits(), inf), inf);
        assert_eq!(
            fadd_lscale((-1f32).to_bits(), 6f32.to_bits()),
            (-0.25f32).to_bits()
        );
    }

    #[test]
    fn scaling_rounds_once() {
        let x = 0x3f80_0001;
        assert_eq!(ldexp(x, (-126i32) as u32, Round::Even), 0x0080_0001);
        assert_eq!(ldexp(x, (-127i32) as u32, Round::Even), 0x0040_0000);
        assert_eq!(ldexp(x, (-127i32) as u32, Round::Up), 0x0040_0001);
        assert_eq!(ldexp(x, (-150i32) as u32, Round::Even), 1);
        assert_eq!(ldexp(0x3f80_0000, (-150i32) as u32, Round::Even), 0);
        assert_eq!(ldexp(x, i32::MIN as u32, Round::Even), 0);
        assert_eq!(ldexp(1, i32::MAX as u32, Round::Even), 0x7f80_0000);
        assert_eq!(ldexp(1, 149 + 127, Round::Even), 0x7f00_0000);
        assert_eq!(
            ldexp_half(0x3c00_0001, 0xffff_0018, Round::Even),
            0x3800_3c00
        );
        // 1 + 2^-24 + 2^-60 at a subnormal tie would round twice.
        let tiny = ((127 - 60) << 23) as u32;
        let a = fma_rscale(
            0x3f80_0001,
            0x3f80_0000,
            tiny,
            (-127i32) as u32,
            Round::Even,
            Special::None,
        );
        assert_eq!(a, 0x0040_0001);
        assert_eq!(
            fadd_rscale(0x3f80_0001, tiny, (-127i32) as u32, Round::Even),
            0x0040_0001
        );
    }

    #[test]
    fn special_treatment_of_zero_times_infinity() {
        let (inf, one) = (0x7f80_0000, 0x3f80_0000);
        let f = |s| fma_rscale(inf, 0, one, 1, Round::Even, s);
        assert_eq!(f(Special::None), 0x7fc0_0000);
        assert_eq!(f(Special::Zero), 2f32.to_bits());
        let n = fma_rscale(0x7fc0_0000, 0, one, 0, Round::Even, Special::Zero);
        assert_eq!(n, 0x7fc0_0000);
        let s = fma_rscale(one, one, 0, 0x7fff_0001, Round::Even, Special::Scale16);
        assert_eq!(s, 2f32.to_bits());
        let h = fma_rscale_half(0x3c00_7c00, 0x4000_0000, 0, 1, Round::Even, Special::Zero);
        assert_eq!(h, 0x4000_0000);
    }

    #[test]
    fn halves() {
        assert_eq!(frexpm_half(0x4200_0001, Interval::Half), 0x3a00_3800);
        assert_eq!(frexpe_half(0x4200_0001, Interval::Half, false), 0x0002_ffe9);
        assert_eq!(logb_half(0x4200_0001), 0x3c00_ce00);
    }
}
