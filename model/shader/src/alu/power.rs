// SPDX-License-Identifier: MIT OR Apache-2.0
//! Special cases of powers, in codes of our own: hardware's are not public.

use super::float::{QUIET, is_nan, quiet};

/// OpenCL's power functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Power {
    /// `pow(x, y)`.
    Pow,
    /// `powr(x, y)`, `x >= 0`.
    Powr,
    /// `pown(x, n)`, `n` an integer.
    Pown,
    /// `rootn(x, n)`, `n` an integer.
    Rootn,
}

const ORDINARY: u32 = 0;
const NEGATE: u32 = 1;
const ZERO: u32 = 2;
const MINUS_ZERO: u32 = 3;
const ONE: u32 = 4;
const INFINITY: u32 = 5;
const MINUS_INFINITY: u32 = 6;
const NOT_A_NUMBER: u32 = 7;

fn odd(y: f32) -> bool {
    let a = y.abs();
    a < 16_777_216.0 && a == a.trunc() && a % 2.0 == 1.0
}

fn integral(y: f32) -> bool {
    y == y.trunc()
}

/// `FPOW_SC_DET.f32`: special case's code, 0 for none.
pub fn detect(x: u32, y: u32, power: Power) -> u32 {
    let v = f32::from_bits(x);
    match power {
        Power::Pow => general(v, f32::from_bits(y)),
        Power::Powr => {
            let e = f32::from_bits(y);
            let undefined = v < 0.0
                || v.is_nan()
                || e.is_nan()
                || (v == 0.0 && e == 0.0)
                || (v.is_infinite() && e == 0.0)
                || (v == 1.0 && e.is_infinite());
            if undefined {
                NOT_A_NUMBER
            } else {
                general(v.abs(), e)
            }
        }
        Power::Pown => {
            // Sign, parity and size of the exponent survive the conversion.
            let n = y as i32;
            let e = if n & 1 == 0 {
                (n as f32 / 2.0).trunc() * 2.0
            } else if n.unsigned_abs() < 1 << 24 {
                n as f32
            } else {
                (n.signum() as f32) * 16_777_215.0
            };
            general(v, e)
        }
        Power::Rootn => root(v, y as i32),
    }
}

fn general(x: f32, y: f32) -> u32 {
    if y == 0.0 || x == 1.0 {
        return ONE;
    }
    if x.is_nan() || y.is_nan() {
        return NOT_A_NUMBER;
    }
    if y.is_infinite() {
        let large = x.abs() > 1.0;
        return match (x.abs() == 1.0, large == (y > 0.0)) {
            (true, _) => ONE,
            (_, true) => INFINITY,
            _ => ZERO,
        };
    }
    let minus = x.is_sign_negative() && odd(y);
    if x == 0.0 || x.is_infinite() {
        let grows = (x == 0.0) == (y < 0.0);
        return match (grows, minus) {
            (true, false) => INFINITY,
            (true, true) => MINUS_INFINITY,
            (false, false) => ZERO,
            (false, true) => MINUS_ZERO,
        };
    }
    match (x < 0.0, integral(y)) {
        (true, false) => NOT_A_NUMBER,
        (true, true) if minus => NEGATE,
        _ => ORDINARY,
    }
}

fn root(x: f32, n: i32) -> u32 {
    let odd = n & 1 == 1;
    if n == 0 || x.is_nan() || (x < 0.0 && !odd) {
        return NOT_A_NUMBER;
    }
    let minus = x.is_sign_negative() && odd;
    if x == 0.0 || x.is_infinite() {
        let grows = (x == 0.0) == (n < 0);
        return match (grows, minus) {
            (true, false) => INFINITY,
            (true, true) => MINUS_INFINITY,
            (false, false) => ZERO,
            (false, true) => MINUS_ZERO,
        };
    }
    if minus { NEGATE } else { ORDINARY }
}

/// `FPOW_SC_APPLY`: `result`, or what the special case `code` makes of it.
#[inline(always)]
pub const fn apply(result: u32, code: u32) -> u32 {
    match code {
        ORDINARY => result,
        NEGATE if is_nan(result) => quiet(result),
        NEGATE => result ^ 0x8000_0000,
        ZERO => 0,
        MINUS_ZERO => 0x8000_0000,
        ONE => 0x3f80_0000,
        INFINITY => 0x7f80_0000,
        MINUS_INFINITY => 0xff80_0000,
        _ => QUIET,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pow_agrees_with_the_library() {
        let values = [
            0.0f32,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            2.0,
            -2.0,
            3.0,
            -3.0,
            2.5,
            1e30,
            -1e30,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        for x in values {
            for y in values {
                let code = detect(x.to_bits(), y.to_bits(), Power::Pow);
                let plain = x.abs().powf(y);
                let got = f32::from_bits(apply(plain.to_bits(), code));
                let want = x.powf(y);
                assert!(
                    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                    "{x} {y}: {got} {want}"
                );
            }
            for n in [0, 1, 2, 3, -1, -2, -3, i32::MAX, i32::MIN] {
                let code = detect(x.to_bits(), n as u32, Power::Pown);
                let plain = (x.abs() as f64).powf(n as f64) as f32;
                let got = f32::from_bits(apply(plain.to_bits(), code));
                let want = (x as f64).powf(n as f64) as f32;
                assert!(
                    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                    "{x} {n}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn roots_and_powr() {
        let d = |x: f32, n: i32| detect(x.to_bits(), n as u32, Power::Rootn);
        assert_eq!(d(-8.0, 3), NEGATE);
        assert_eq!(d(-8.0, 2), NOT_A_NUMBER);
        assert_eq!(d(8.0, 0), NOT_A_NUMBER);
        assert_eq!(d(-0.0, 3), MINUS_ZERO);
        assert_eq!(d(-0.0, -2), INFINITY);
        assert_eq!(d(f32::INFINITY, -2), ZERO);
        let p = |x: f32, y: f32| detect(x.to_bits(), y.to_bits(), Power::Powr);
        assert_eq!(p(-1.0, 2.0), NOT_A_NUMBER);
        assert_eq!(p(0.0, 0.0), NOT_A_NUMBER);
        assert_eq!(p(0.0, -1.0), INFINITY);
        assert_eq!(p(2.0, 0.0), ONE);
        assert_eq!(p(2.0, 1.5), ORDINARY);
    }
}
