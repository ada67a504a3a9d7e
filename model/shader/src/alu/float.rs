// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single-precision arithmetic.

use super::rounding::{add_odd, to_f32, zero_sign};
use super::{Clamp, Compare, Nan, Round, Truth};

/// Every result's NaN.
pub const QUIET: u32 = 0x7fc0_0000;

/// True for NaN.
#[inline(always)]
pub const fn is_nan(x: u32) -> bool {
    x & 0x7fff_ffff > 0x7f80_0000
}

/// `QUIET.f32`: any NaN becomes [`QUIET`].
#[inline(always)]
pub const fn quiet(x: u32) -> u32 {
    if is_nan(x) { QUIET } else { x }
}

#[inline(always)]
pub(super) fn bits(x: f32) -> u32 {
    if x.is_nan() { QUIET } else { x.to_bits() }
}

/// Absolute value, then negation.
#[inline(always)]
pub const fn modify(x: u32, abs: bool, neg: bool) -> u32 {
    let keep = if abs { 0x7fff_ffff } else { u32::MAX };
    let flip = (neg as u32) << 31;
    (x & keep) ^ flip
}

/// Subnormals become zeros of their sign.
#[inline(always)]
pub const fn flush(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 {
        x & 0x8000_0000
    } else {
        x
    }
}

/// Applies limits; compares integers, because some processors' minima pass on a signalling NaN made quiet.
#[inline(always)]
pub fn clamp(x: u32, limits: Clamp) -> u32 {
    const INFINITY: u32 = 0x7f80_0000;
    const ONE: u32 = 0x3f80_0000;
    let not_negative = if x <= INFINITY { x } else { 0 };
    let magnitude = (x & 0x7fff_ffff).min(ONE);
    match limits {
        Clamp::None => x,
        Clamp::ZeroInf => not_negative,
        Clamp::ZeroOne => not_negative.min(ONE),
        Clamp::MinusOneOne if is_nan(x) => 0,
        Clamp::MinusOneOne => x & 0x8000_0000 | magnitude,
    }
}

/// `a + b`, to nearest even.
#[inline(always)]
pub fn fadd(a: u32, b: u32) -> u32 {
    bits(f32::from_bits(a) + f32::from_bits(b))
}

/// `a + b`.
#[inline(always)]
pub fn fadd_round(a: u32, b: u32, round: Round) -> u32 {
    let (x, y) = (f32::from_bits(a) as f64, f32::from_bits(b) as f64);
    bits(to_f32(zero_sign(add_odd(x, y), x, y, round), round))
}

/// `a * b + c` to nearest even, rounded once.
///
/// A slow library call where the caller is compiled without fused multiply-add; [`fma_portable`] is fast
/// everywhere.
#[inline(always)]
pub fn fma(a: u32, b: u32, c: u32) -> u32 {
    bits(f32::mul_add(
        f32::from_bits(a),
        f32::from_bits(b),
        f32::from_bits(c),
    ))
}

/// As [`fma`], without the host's fused multiply-add.
#[inline(always)]
pub fn fma_portable(a: u32, b: u32, c: u32) -> u32 {
    let product = f32::from_bits(a) as f64 * f32::from_bits(b) as f64;
    bits(add_odd(product, f32::from_bits(c) as f64) as f32)
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub fn fma_round(a: u32, b: u32, c: u32, round: Round) -> u32 {
    let product = f32::from_bits(a) as f64 * f32::from_bits(b) as f64;
    let c = f32::from_bits(c) as f64;
    bits(to_f32(
        zero_sign(add_odd(product, c), product, c, round),
        round,
    ))
}

/// Whether `a` is greater, with `-0 < +0`; neither may be NaN.
#[inline(always)]
const fn above(a: u32, b: u32) -> bool {
    let ka = (a ^ (((a as i32) >> 31) as u32 >> 1)) as i32;
    let kb = (b ^ (((b as i32) >> 31) as u32 >> 1)) as i32;
    ka > kb
}

/// Larger of `a` and `b`.
#[inline(always)]
pub fn fmax(a: u32, b: u32, nan: Nan) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match nan {
        Nan::Suppress => {
            let larger = if above(a, b) { a } else { b };
            let without_b = if is_nan(b) { a } else { larger };
            quiet(if is_nan(a) { b } else { without_b })
        }
        Nan::Propagate => {
            let larger = if above(a, b) { a } else { b };
            if is_nan(a) | is_nan(b) { QUIET } else { larger }
        }
        Nan::C => {
            if x > y {
                a
            } else {
                b
            }
        }
        Nan::InverseC => {
            if y > x {
                b
            } else {
                a
            }
        }
    }
}

/// Smaller of `a` and `b`.
#[inline(always)]
pub fn fmin(a: u32, b: u32, nan: Nan) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match nan {
        Nan::Suppress => {
            let smaller = if above(a, b) { b } else { a };
            let without_b = if is_nan(b) { a } else { smaller };
            quiet(if is_nan(a) { b } else { without_b })
        }
        Nan::Propagate => {
            let smaller = if above(a, b) { b } else { a };
            if is_nan(a) | is_nan(b) {
                QUIET
            } else {
                smaller
            }
        }
        Nan::C => {
            if x < y {
                a
            } else {
                b
            }
        }
        Nan::InverseC => {
            if y < x {
                b
            } else {
                a
            }
        }
    }
}

/// Whether the comparison holds.
#[inline(always)]
pub fn ordered(a: u32, b: u32, compare: Compare) -> bool {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match compare {
        Compare::Eq => x == y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::GtLt => (x < y) | (x > y),
        Compare::Total => !(is_nan(a) | is_nan(b)),
    }
}

/// `FCMP.f32`.
#[inline(always)]
pub fn fcmp(a: u32, b: u32, compare: Compare, truth: Truth) -> u32 {
    truth.word(ordered(a, b, compare))
}

/// `CSEL.f32`: `c` if the comparison holds, else `d`.
#[inline(always)]
pub fn csel(a: u32, b: u32, c: u32, d: u32, compare: Compare) -> u32 {
    if ordered(a, b, compare) { c } else { d }
}

/// `FROUND.f32`. [`Round::Odd`] is not in hardware and acts as [`Round::Zero`].
#[inline(always)]
pub fn fround(x: u32, round: Round) -> u32 {
    const INTEGRAL: f32 = 8_388_608.0;
    let sign = x & 0x8000_0000;
    let a = f32::from_bits(x & 0x7fff_ffff);
    let negative = sign != 0;
    let near = (a + INTEGRAL) - INTEGRAL;
    let floor = if near > a { near - 1.0 } else { near };
    let ceil = if near < a { near + 1.0 } else { near };
    let rounded = match round {
        Round::Even => near,
        Round::Zero | Round::Odd => floor,
        Round::Up => {
            if negative {
                floor
            } else {
                ceil
            }
        }
        Round::Down => {
            if negative {
                ceil
            } else {
                floor
            }
        }
        Round::Away => {
            if a - floor >= 0.5 {
                floor + 1.0
            } else {
                floor
            }
        }
    };
    let kept = if a < INTEGRAL {
        rounded.to_bits()
    } else {
        x & 0x7fff_ffff
    };
    quiet(sign | kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_every_kind_of_number() {
        for exponent in 0..=255u32 {
            for mantissa in [0, 1, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_ffff] {
                for sign in [0, 1 << 31] {
                    let x = sign | exponent << 23 | mantissa;
                    let v = f32::from_bits(x);
                    let limited = |least: f32, most: f32| match () {
                        () if is_nan(x) => 0,
                        () if v < least => least.to_bits(),
                        () if v > most => most.to_bits(),
                        () if v == 0.0 && least == 0.0 => 0,
                        () => x,
                    };
                    assert_eq!(clamp(x, Clamp::None), x);
                    assert_eq!(
                        clamp(x, Clamp::ZeroInf),
                        limited(0.0, f32::INFINITY),
                        "{x:x}"
                    );
                    assert_eq!(clamp(x, Clamp::ZeroOne), limited(0.0, 1.0), "{x:x}");
                    assert_eq!(clamp(x, Clamp::MinusOneOne), limited(-1.0, 1.0), "{x:x}");
                }
            }
        }
    }

    const VALUES: [f32; 25] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999997,
        8388607.5,
        8388609.0,
        16777216.0,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        3.4e20,
        1.0000001,
        -0.99999994,
        1e-30,
    ];

    #[test]
    fn fma_rounds_once() {
        let mut random = fastrand::Rng::with_seed(7);
        let check = |a: u32, b: u32, c: u32| {
            let want = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            let want = if want.is_nan() { QUIET } else { want.to_bits() };
            assert_eq!(fma(a, b, c), want);
            assert_eq!(fma_portable(a, b, c), want, "{a:08x} {b:08x} {c:08x}");
            assert_eq!(fma_round(a, b, c, Round::Even), want);
        };
        for a in VALUES {
            for b in VALUES {
                for c in VALUES {
                    check(a.to_bits(), b.to_bits(), c.to_bits());
                }
            }
        }
        for i in 0..400_000 {
            let (a, b) = (random.u32(..), random.u32(..));
            let mut c = random.u32(..);
            if i % 2 == 0 {
                let p = -(f32::from_bits(a) * f32::from_bits(b));
                c = p.to_bits().wrapping_add(c & 3);
            }
            check(a, b, c);
        }
    }

    #[test]
    fn directed_modes_bracket() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let (a, b, c) = (random.u32(..), random.u32(..), random.u32(..));
            let near = f32::from_bits(fma(a, b, c));
            if near.is_nan() {
                continue;
            }
            let low = f32::from_bits(fma_round(a, b, c, Round::Down));
            let high = f32::from_bits(fma_round(a, b, c, Round::Up));
            let zero = f32::from_bits(fma_round(a, b, c, Round::Zero));
            assert!(low <= near && near <= high && (near == low || near == high));
            assert!(low == high || low.next_up() == high);
            assert_eq!(zero, if near > 0.0 { low } else { high });
        }
        let one = 1f32.to_bits();
        assert_eq!(fadd_round(one, one ^ 1 << 31, Round::Down), 1 << 31);
        assert_eq!(fadd_round(one, one ^ 1 << 31, Round::Even), 0);
        assert_eq!(fadd_round(one, 1, Round::Up), one + 1);
        assert_eq!(fadd_round(one, 1, Round::Odd), one + 1);
        assert_eq!(fadd_round(one, 1 << 31 | 1, Round::Odd), one - 1);
    }

    #[test]
    fn integral() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut check = |x: f32| {
            let got = |r| fround(x.to_bits(), r);
            let want = |v: f32| if v.is_nan() { QUIET } else { v.to_bits() };
            assert_eq!(got(Round::Even), want(x.round_ties_even()), "{x}");
            assert_eq!(got(Round::Up), want(x.ceil()), "{x}");
            assert_eq!(got(Round::Down), want(x.floor()), "{x}");
            assert_eq!(got(Round::Zero), want(x.trunc()), "{x}");
            assert_eq!(got(Round::Away), want(x.round()), "{x}");
        };
        VALUES.into_iter().for_each(&mut check);
        for _ in 0..100_000 {
            check(f32::from_bits(random.u32(..)));
            check((random.u32(..) as i32 >> 8) as f32 / 4.0);
        }
    }

    #[test]
    fn minimum_and_maximum() {
        let n = f32::NAN.to_bits();
        let (one, two) = (1f32.to_bits(), 2f32.to_bits());
        let (plus, minus) = (0u32, 1u32 << 31);
        for nan in [Nan::Suppress, Nan::Propagate, Nan::C, Nan::InverseC] {
            assert_eq!(fmax(one, two, nan), two);
            assert_eq!(fmin(one, two, nan), one);
            assert_eq!(fmax(two ^ minus, one, nan), one);
            assert_eq!(fmin(two ^ minus, one, nan), two ^ minus);
        }
        assert_eq!(fmax(n, one, Nan::Suppress), one);
        assert_eq!(fmax(one, n, Nan::Suppress), one);
        assert_eq!(fmin(n, n, Nan::Suppress), QUIET);
        assert_eq!(fmax(n, one, Nan::Propagate), QUIET);
        assert_eq!(fmin(one, n, Nan::Propagate), QUIET);
        assert_eq!(fmin(one, n, Nan::C), n);
        assert_eq!(fmin(n, one, Nan::C), one);
        assert_eq!(fmax(one, n, Nan::InverseC), one);
        assert_eq!(fmax(minus, plus, Nan::Suppress), plus);
        assert_eq!(fmax(plus, minus, Nan::Suppress), plus);
        assert_eq!(fmin(plus, minus, Nan::Suppress), minus);
    }

    #[test]
    fn comparisons() {
        let n = f32::NAN.to_bits();
        let (one, two) = (1f32.to_bits(), 2f32.to_bits());
        assert_eq!(fcmp(0, 1 << 31, Compare::Eq, Truth::I1), 1);
        assert_eq!(fcmp(one, two, Compare::Lt, Truth::F1), one);
        assert_eq!(fcmp(one, two, Compare::Gt, Truth::M1), 0);
        assert_eq!(fcmp(one, two, Compare::GtLt, Truth::M1), u32::MAX);
        assert_eq!(fcmp(one, n, Compare::Ne, Truth::I1), 1);
        assert_eq!(fcmp(one, n, Compare::GtLt, Truth::I1), 0);
        assert_eq!(fcmp(one, n, Compare::Total, Truth::I1), 0);
        assert_eq!(fcmp(one, one, Compare::Total, Truth::I1), 1);
        assert_eq!(csel(one, two, 5, 6, Compare::Le), 5);
        assert_eq!(csel(n, two, 5, 6, Compare::Le), 6);
    }

    #[test]
    fn clamps_and_flushing() {
        let n = f32::NAN.to_bits();
        assert_eq!(modify(0x8000_0001, true, true), 0x8000_0001);
        assert_eq!(flush(0x8000_0001), 0x8000_0000);
        assert_eq!(flush(0x0080_0000), 0x0080_0000);
        for limits in [Clamp::ZeroInf, Clamp::ZeroOne, Clamp::MinusOneOne] {
            assert_eq!(clamp(n, limits), 0);
        }
        assert_eq!(clamp((-3f32).to_bits(), Clamp::ZeroInf), 0);
        assert_eq!(clamp(1 << 31, Clamp::ZeroInf), 0);
        assert_eq!(clamp(3f32.to_bits(), Clamp::ZeroOne), 1f32.to_bits());
        assert_eq!(
            clamp((-3f32).to_bits(), Clamp::MinusOneOne),
            (-1f32).to_bits()
        );
        assert_eq!(
            clamp(0.25f32.to_bits(), Clamp::MinusOneOne),
            0.25f32.to_bits()
        );
    }
}
