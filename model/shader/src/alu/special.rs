// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of hardware tables that are not public.
//!
//! Exact values rounded to nearest, from double precision with an error far below half a unit of single precision. No
//! mathematics library: results are the same on every host.

use super::float::{QUIET, quiet};
use super::scale::{Interval, frexpm};
use super::{Round, half, rounding};

const LN_2: f64 = core::f64::consts::LN_2;

/// `(ln 2)^n / n!`.
const EXP2_COEFFICIENTS: [f64; 18] = {
    let mut coefficients = [1.0; 18];
    let mut n = 1;
    while n < 18 {
        coefficients[n] = coefficients[n - 1] * LN_2 / n as f64;
        n += 1;
    }
    coefficients
};

/// `2^x` for `|x| <= 1`.
#[inline(always)]
fn exp2_small(x: f64) -> f64 {
    let mut sum = EXP2_COEFFICIENTS[17];
    let mut n = 17;
    while n > 0 {
        n -= 1;
        sum = sum * x + EXP2_COEFFICIENTS[n];
    }
    sum
}

/// `ln(m) / (m - 1)` for `0.6 <= m <= 1.6`.
#[inline(always)]
fn log_ratio(m: f64) -> f64 {
    // ln m = 2 atanh(s), s = (m - 1) / (m + 1).
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut sum = 0.0;
    let mut n = 33.0;
    while n > 0.0 {
        sum = sum * s2 + 1.0 / n;
        n -= 2.0;
    }
    2.0 * sum / (m + 1.0)
}

/// `FRCP.f32`: `1 / x`.
#[inline(always)]
pub fn frcp(x: u32) -> u32 {
    quiet((1.0 / f32::from_bits(x)).to_bits())
}

/// `FRSQ.f32`: `1 / sqrt(x)`; NaN for negative `x`, an infinity of its sign for zero.
#[inline(always)]
pub fn frsq(x: u32) -> u32 {
    let root = (f32::from_bits(x) as f64).sqrt();
    quiet(((1.0 / root) as f32).to_bits())
}

/// `FRCP.f16`, to the low half.
#[inline(always)]
pub fn frcp_half(h: u16) -> u32 {
    half::from_single(frcp(half::to_single(h))) as u32
}

/// `FRSQ.f16`, to the low half.
#[inline(always)]
pub fn frsq_half(h: u16) -> u32 {
    let root = (f32::from_bits(half::to_single(h)) as f64).sqrt();
    rounding::to_f16(1.0 / root, Round::Even) as u32
}

/// `FRCP_APPROX.f32` (G71): reciprocal of the mantissa in `[0.5, 1)`; infinity for zero, zero for infinity.
#[inline(always)]
pub fn frcp_approx(x: u32) -> u32 {
    frcp(frexpm(x, Interval::Half))
}

/// `FRSQ_APPROX.f32` (G71): reciprocal root of the mantissa in `[0.25, 1)`.
#[inline(always)]
pub fn frsq_approx(x: u32) -> u32 {
    frsq(frexpm(x, Interval::Sqrt))
}

/// `FEXP.f32`: `2^x`, `x` signed with 24 fraction bits, made from `number`, which decides if NaN or infinite.
#[inline(always)]
pub fn fexp(x: u32, number: u32) -> u32 {
    let whole = (x as i32) >> 24;
    let fraction = (x & 0x00ff_ffff) as f64 * (1.0 / 16_777_216.0);
    let scale = f64::from_bits(((1023 + whole) as u64) << 52);
    let value = (exp2_small(fraction) * scale) as f32;
    // The range's ends stand for all values beyond.
    let value = match x {
        0x7fff_ffff => f32::INFINITY,
        _ => value,
    };
    let value = if x == 0x8000_0000 && number > 0xc300_0000 {
        let below = f32::from_bits(number) as f64 + 128.0;
        (value as f64 * exp2_small(below.clamp(-1.0, 0.0))) as f32 * (below >= -1.0) as u32 as f32
    } else {
        value
    };
    match number & 0x7fff_ffff {
        a if a > 0x7f80_0000 => QUIET,
        0x7f80_0000 if number >> 31 == 1 => 0,
        0x7f80_0000 => 0x7f80_0000,
        _ => value.to_bits(),
    }
}

/// `FLOGD.f32`: `log2(m) / (m - 1)`, `m` the mantissa in `[0.75, 1.5)`; infinity for zero and infinity.
#[inline(always)]
pub fn flogd(x: u32) -> u32 {
    let a = x & 0x7fff_ffff;
    let m = f32::from_bits(frexpm(x, Interval::Log)) as f64;
    let value = (log_ratio(m) / LN_2) as f32;
    if a == 0 || x == 0x7f80_0000 {
        0x7f80_0000
    } else if a > 0x7f80_0000 || x >> 31 == 1 {
        QUIET
    } else {
        value.to_bits()
    }
}

/// What `FLOG_TABLE.f32` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogTable {
    /// The factor `r`, near the mantissa's reciprocal.
    Reduction,
    /// `-log2 r`.
    Base2,
    /// `-ln r`.
    Natural,
}

/// Part of the logarithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LogPart {
    /// All of it, rounded once.
    #[default]
    Whole,
    /// The leading part, a multiple of 2^-16: adding an exponent is exact.
    High,
    /// What the leading part leaves.
    Low,
}

/// `FLOG_TABLE.f32` (G71).
///
/// With `m` the mantissa in `[0.75, 1.5)`, `r` is `1/m` in 5 significant bits; `log2 x = exponent + base2(x) +
/// log2(m r)`. For zero, infinity and negative numbers the logarithm modes give `-inf`, `inf` and NaN.
#[inline(always)]
pub fn flog_table(x: u32, table: LogTable, part: LogPart) -> u32 {
    let a = x & 0x7fff_ffff;
    let m = f32::from_bits(frexpm(a, Interval::Log)) as f64;
    let ordinary = a != 0 && a < 0x7f80_0000;
    let inverse = if ordinary { 1.0 / m } else { 1.0 };
    // Steps of 1/16 from 1, of 1/32 below.
    let steps = if inverse >= 1.0 { 16.0 } else { 32.0 };
    let r = (inverse * steps).round_ties_even() / steps;
    let ln = -log_ratio(r) * (r - 1.0);
    let log = match table {
        LogTable::Reduction => return (r as f32).to_bits(),
        LogTable::Base2 => ln / LN_2,
        LogTable::Natural => ln,
    };
    let high = (log * 65536.0).round_ties_even() / 65536.0;
    let value = match part {
        LogPart::Whole => log,
        LogPart::High => high,
        LogPart::Low => log - high,
    };
    if ordinary && x >> 31 == 0 {
        return (value as f32).to_bits();
    }
    let special = if a == 0 {
        f32::NEG_INFINITY
    } else if x == 0x7f80_0000 {
        f32::INFINITY
    } else {
        return QUIET;
    };
    if part == LogPart::Low {
        0
    } else {
        special.to_bits()
    }
}

/// Adjustment of `FEXP_TABLE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExpPart {
    /// The power itself.
    #[default]
    Whole,
    /// The power less one (`small`).
    LessOne,
    /// What rounding to single precision leaves (`low`).
    Low,
}

/// `FEXP_TABLE.u4` (G71): `2^(n / 16)`, `n` the low four bits.
#[inline(always)]
pub fn fexp_table(x: u32, part: ExpPart) -> u32 {
    let power = exp2_small((x & 15) as f64 / 16.0);
    let value = match part {
        ExpPart::Whole => power,
        ExpPart::LessOne => power - 1.0,
        ExpPart::Low => power - (power as f32) as f64,
    };
    (value as f32).to_bits()
}

/// Sine of `n / 32` quarter turns, `0 <= n <= 32`.
#[inline(always)]
fn sine(n: u32) -> f64 {
    let y = n as f64 * (core::f64::consts::FRAC_PI_2 / 32.0);
    let y2 = y * y;
    let mut sum = 1.0;
    let mut k = 21.0;
    while k > 1.0 {
        sum = 1.0 - sum * y2 / (k * (k - 1.0));
        k -= 2.0;
    }
    y * sum
}

#[inline(always)]
fn sine_of_turns(n: u32) -> f32 {
    let n = n & 127;
    let (quadrant, rest) = (n >> 5, n & 31);
    let value = if quadrant & 1 == 1 {
        sine(32 - rest)
    } else {
        sine(rest)
    };
    let value = value as f32;
    if quadrant >= 2 { 0.0 - value } else { value }
}

/// `FSIN_TABLE.u6`: sine of `n * pi / 32`, `n` the low six bits; `offset` adds half a step.
#[inline(always)]
pub fn fsin_table(x: u32, offset: bool) -> u32 {
    sine_of_turns((x & 63) * 2 + offset as u32).to_bits()
}

/// `FCOS_TABLE.u6`: cosine, as [`fsin_table`].
#[inline(always)]
pub fn fcos_table(x: u32, offset: bool) -> u32 {
    sine_of_turns((x & 63) * 2 + offset as u32 + 32).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> impl Iterator<Item = u32> {
        let mut random = fastrand::Rng::with_seed(21);
        (0..100_000).map(move |_| random.u32(..1 << 31))
    }

    #[test]
    fn reciprocals_and_roots() {
        let (inf, minus) = (0x7f80_0000u32, 1u32 << 31);
        assert_eq!(frcp(0), inf);
        assert_eq!(frcp(minus), inf | minus);
        assert_eq!(frcp(inf | minus), minus);
        assert_eq!(frcp(4f32.to_bits()), 0.25f32.to_bits());
        assert_eq!(frsq(0), inf);
        assert_eq!(frsq(inf), 0);
        assert_eq!(frsq((-1f32).to_bits()), QUIET);
        for x in numbers().filter(|&x| x != 0 && x < 0x7f80_0000) {
            let r = frsq(x);
            let v = f32::from_bits(x) as f64;
            let (below, above) = (f32::from_bits(r - 1) as f64, f32::from_bits(r + 1) as f64);
            let r = f32::from_bits(r) as f64;
            let (low, high) = ((r + below) / 2.0, (r + above) / 2.0);
            // 25 bits: squares are exact.
            assert!(low * low < 1.0 / v * (1.0 + 1e-15));
            assert!(high * high > 1.0 / v * (1.0 - 1e-15));
            let m = f32::from_bits(frexpm(x, Interval::Sqrt));
            assert_eq!(frsq_approx(x), frsq(m.to_bits()));
        }
        for h in 0..=u16::MAX {
            let x = f32::from_bits(half::to_single(h)) as f64;
            let want = |v: f64| rounding::to_f16(v, Round::Even) as u32;
            assert_eq!(frcp_half(h), want(1.0 / x), "{h:04x}");
            assert_eq!(frsq_half(h), want(1.0 / x.sqrt()), "{h:04x}");
        }
        assert_eq!(frcp_approx(0), inf);
        assert_eq!(frcp_approx(inf), 0);
        assert_eq!(frcp_approx(3e-40f32.to_bits()), {
            let m = f32::from_bits(frexpm(3e-40f32.to_bits(), Interval::Half));
            (1.0 / m).to_bits()
        });
    }

    #[test]
    fn exponential() {
        for i in -2000..2000 {
            let x = i as f64 / 15.7;
            let fixed = (x * 16_777_216.0).clamp(i32::MIN as f64, i32::MAX as f64) as i32;
            let want = (fixed as f64 / 16_777_216.0).exp2() as f32;
            let got = fexp(fixed as u32, (x as f32).to_bits());
            if fixed != i32::MIN && fixed != i32::MAX {
                assert_eq!(got, want.to_bits(), "{x}");
            }
        }
        let f = |x: f32| {
            let fixed = (x as f64 * 16_777_216.0).clamp(i32::MIN as f64, i32::MAX as f64);
            f32::from_bits(fexp(fixed as i32 as u32, x.to_bits()))
        };
        assert!(f32::from_bits(fexp(0, QUIET)).is_nan());
        assert_eq!(f(f32::INFINITY), f32::INFINITY);
        assert_eq!(f(f32::NEG_INFINITY), 0.0);
        assert_eq!(f(200.0), f32::INFINITY);
        assert_eq!(f(-200.0), 0.0);
        assert_eq!(f(-128.0), 2f32.powi(-128));
        for n in 0..16 {
            let got = f32::from_bits(fexp_table(0x4940_0000 | n, ExpPart::Whole));
            assert_eq!(got, (n as f64 / 16.0).exp2() as f32);
        }
    }

    #[test]
    fn logarithm() {
        for x in numbers().filter(|&x| x != 0 && x < 0x7f80_0000) {
            let m = f32::from_bits(frexpm(x, Interval::Log)) as f64;
            let want = if m == 1.0 {
                1.0 / LN_2
            } else {
                (m - 1.0).ln_1p() / (m - 1.0) / LN_2
            };
            assert_eq!(flogd(x), (want as f32).to_bits());
            let r = f32::from_bits(flog_table(x, LogTable::Reduction, LogPart::Whole)) as f64;
            assert!((m * r - 1.0).abs() < 0.032, "{m} {r}");
            let part = |p| f32::from_bits(flog_table(x, LogTable::Base2, p)) as f64;
            assert_eq!(part(LogPart::Whole), (-r.log2()) as f32 as f64);
            assert!((part(LogPart::High) + part(LogPart::Low) + r.log2()).abs() < 1e-12);
            let natural = f32::from_bits(flog_table(x, LogTable::Natural, LogPart::Whole));
            assert!((natural as f64 + r.ln()).abs() < 3e-8);
        }
        let (inf, minus) = (0x7f80_0000u32, 1u32 << 31);
        let f = |x, p| flog_table(x, LogTable::Base2, p);
        assert_eq!(f(0, LogPart::Whole), inf | minus);
        assert_eq!(f(inf, LogPart::High), inf);
        assert_eq!(f(inf, LogPart::Low), 0);
        assert_eq!(f(1f32.to_bits() | minus, LogPart::Whole), QUIET);
        assert_eq!(flogd(0), inf);
        assert_eq!(flogd(1f32.to_bits() | minus), QUIET);
        assert_eq!(flogd(QUIET), QUIET);
    }

    #[test]
    fn sine_and_cosine() {
        for n in 0..64 {
            for offset in [false, true] {
                let angle =
                    (n as f64 + if offset { 0.5 } else { 0.0 }) * core::f64::consts::PI / 32.0;
                let s = f32::from_bits(fsin_table(n, offset)) as f64;
                let c = f32::from_bits(fcos_table(n | 0xffc0, offset)) as f64;
                assert!((s - angle.sin()).abs() < 3e-8 && (c - angle.cos()).abs() < 3e-8);
            }
        }
        assert_eq!(fsin_table(16, false), 1f32.to_bits());
        assert_eq!(fcos_table(16, false), 0);
    }
}
