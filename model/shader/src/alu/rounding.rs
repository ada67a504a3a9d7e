// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single rounding of exact sums and products, kept in `f64`.
//!
//! An inexact sum rounded to odd (last bit set) keeps all that a second rounding to at most 51 bits depends on.
//! Products of two `f32` are exact in `f64`.

use super::Round;

/// `x + y`, rounded to odd.
#[inline(always)]
pub fn add_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let from_y = sum - x;
    let from_x = sum - from_y;
    let error = (x - from_x) + (y - from_y);
    let bits = sum.to_bits();
    // Away from zero if the error has the sum's sign.
    let same = ((bits ^ error.to_bits()) as i64) >= 0;
    let step = if same { 1u64 } else { u64::MAX };
    let inexact = error != 0.0 && error.is_finite() && bits & 1 == 0;
    f64::from_bits(if inexact {
        bits.wrapping_add(step)
    } else {
        bits
    })
}

/// `x` is exact or rounded to odd.
#[inline(always)]
pub fn to_f32(x: f64, round: Round) -> f32 {
    let near = x as f32;
    if matches!(round, Round::Even) {
        return near;
    }
    let back = near as f64;
    let bits = near.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = bits & 0x8000_0000;
    let beyond = back.abs() > x.abs();
    let short = back.abs() < x.abs();
    let truncated = magnitude - beyond as u32;
    let outward = magnitude + short as u32;
    let negative = sign != 0;
    let rounded = match round {
        Round::Even => magnitude,
        Round::Zero => truncated,
        Round::Up => {
            if negative {
                truncated
            } else {
                outward
            }
        }
        Round::Down => {
            if negative {
                outward
            } else {
                truncated
            }
        }
        Round::Odd => truncated | (beyond | short) as u32,
        Round::Away => nearest_away(x, truncated, truncated + (beyond | short) as u32),
    };
    f32::from_bits(if x.is_nan() { bits } else { sign | rounded })
}

#[inline(always)]
fn nearest_away(x: f64, low: u32, high: u32) -> u32 {
    if low == high {
        return low;
    }
    // Above the largest number the next step would be 2^128.
    let above = if high == 0x7f80_0000 {
        f64::from_bits(0x47f0_0000_0000_0000)
    } else {
        f32::from_bits(high) as f64
    };
    let below = f32::from_bits(low) as f64;
    if x.abs() - below < above - x.abs() {
        low
    } else {
        high
    }
}

/// `x` is exact or rounded to odd. NaN becomes `0x7e00`.
#[inline(always)]
pub fn to_f16(x: f64, round: Round) -> u16 {
    let sign = (x.is_sign_negative() as u16) << 15;
    let a = x.abs();
    // Unit in the last place: 2^(e - 10), at least 2^-24.
    let exponent = ((a.to_bits() >> 52) as i32 - 1023).clamp(-14, 16);
    let ulp_inverse = f64::from_bits(((1023 - (exponent - 10)) as u64) << 52);
    let scaled = if a.is_finite() {
        (a * ulp_inverse).min(4096.0)
    } else {
        0.0
    };
    let floor = scaled as u32;
    let rest = scaled - floor as f64;
    let inexact = rest != 0.0;
    let up = match round {
        Round::Even => rest > 0.5 || (rest == 0.5 && floor & 1 == 1),
        Round::Away => rest >= 0.5,
        Round::Zero => false,
        Round::Up => inexact && sign == 0,
        Round::Down => inexact && sign != 0,
        Round::Odd => inexact && floor & 1 == 0,
    };
    let units = floor + up as u32;
    // 1024 to 2048 units of 2^(e-10) for a normal number; a carry moves into the exponent.
    let biased = ((exponent + 14) as u32) << 10;
    let finite = units + biased;
    let most = match round {
        Round::Zero => 0x7bff,
        Round::Up if sign != 0 => 0x7bff,
        Round::Down if sign == 0 => 0x7bff,
        Round::Odd => 0x7bff,
        _ => 0x7c00,
    };
    let magnitude = if a == f64::INFINITY {
        0x7c00
    } else if finite >= 0x7c00 {
        most
    } else {
        finite as u16
    };
    if x.is_nan() { 0x7e00 } else { sign | magnitude }
}

/// The zero for `sum == 0`: `-0` when rounding down unless both terms are `+0`.
#[inline(always)]
pub fn zero_sign(sum: f64, x: f64, y: f64, round: Round) -> f64 {
    let both_positive = x.is_sign_positive() && y.is_sign_positive();
    if matches!(round, Round::Down) && sum == 0.0 && !both_positive {
        -0.0
    } else {
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Round; 6] = [
        Round::Even,
        Round::Up,
        Round::Down,
        Round::Zero,
        Round::Away,
        Round::Odd,
    ];

    /// A finite half in units of 2^-24.
    fn units(h: u16) -> i64 {
        let e = (h >> 10 & 31) as i64;
        let m = (h & 1023) as i64;
        let v = if e == 0 { m } else { (m + 1024) << (e - 1) };
        if h >> 15 == 1 { -v } else { v }
    }

    /// Rounds `x`, in units of 2^-40; searches all halves.
    fn reference(x: i64, round: Round) -> u16 {
        let sign = if x < 0 { 0x8000 } else { 0 };
        let a = x.unsigned_abs() as i128;
        let mut low = 0u16;
        let (mut first, mut last) = (0u32, 0x7c00);
        while first < last {
            let mid = (first + last) / 2;
            let v = if mid == 0x7c00 {
                65536i128 << 40
            } else {
                (units(mid as u16) as i128) << 16
            };
            if v <= a {
                low = mid as u16;
                first = mid + 1;
            } else {
                last = mid;
            }
        }
        let value = |h: u16| {
            if h == 0x7c00 {
                65536i128 << 40
            } else {
                (units(h) as i128) << 16
            }
        };
        let exact = value(low) == a;
        let high = low + 1;
        let m = if exact {
            low
        } else {
            let (d0, d1) = (a - value(low), value(high) - a);
            match round {
                Round::Even if d0 == d1 => low + (low & 1),
                Round::Even => {
                    if d0 < d1 {
                        low
                    } else {
                        high
                    }
                }
                Round::Away => {
                    if d0 < d1 {
                        low
                    } else {
                        high
                    }
                }
                Round::Zero => low,
                Round::Odd => low | 1,
                Round::Up => {
                    if x > 0 {
                        high
                    } else {
                        low
                    }
                }
                Round::Down => {
                    if x < 0 {
                        high
                    } else {
                        low
                    }
                }
            }
        };
        sign | m
    }

    #[test]
    fn halves_round_once_in_every_mode() {
        let mut random = fastrand::Rng::with_seed(1);
        for i in 0..200_000u64 {
            let state = random.u64(..);
            let bits = i % 56 + 1;
            let mut x = (state >> 8) as i64 & ((1i64 << bits) - 1);
            if i % 3 == 0 {
                x = (x >> 12 << 12) | 0x800;
            }
            if i % 7 == 0 {
                x += 1;
            }
            if state >> 63 == 1 {
                x = -x;
            }
            if x == 0 || x.unsigned_abs() >= 65504 << 40 {
                continue;
            }
            let value = x as f64 * f64::powi(2.0, -40);
            if value * f64::powi(2.0, 40) != x as f64 || (x as f64) as i64 != x {
                continue;
            }
            for round in MODES {
                assert_eq!(to_f16(value, round), reference(x, round), "{x} {round:?}");
            }
        }
    }

    #[test]
    fn halves_at_the_ends() {
        assert_eq!(to_f16(65519.99, Round::Even), 0x7bff);
        assert_eq!(to_f16(65520.0, Round::Even), 0x7c00);
        assert_eq!(to_f16(1e300, Round::Zero), 0x7bff);
        assert_eq!(to_f16(-1e300, Round::Up), 0xfbff);
        assert_eq!(to_f16(-1e300, Round::Down), 0xfc00);
        assert_eq!(to_f16(f64::NEG_INFINITY, Round::Zero), 0xfc00);
        assert_eq!(to_f16(f64::NAN, Round::Zero), 0x7e00);
        assert_eq!(to_f16(-0.0, Round::Even), 0x8000);
        assert_eq!(to_f16(1e-300, Round::Up), 1);
        assert_eq!(to_f16(1e-300, Round::Even), 0);
        assert_eq!(to_f16(f64::powi(2.0, -25), Round::Away), 1);
    }

    #[test]
    fn singles_round_directed() {
        let third = 1.0f64 / 3.0;
        let near = third as f32;
        assert_eq!(to_f32(third, Round::Even), near);
        let (down, up) = (to_f32(third, Round::Down), to_f32(third, Round::Up));
        assert!((down as f64) < third && (up as f64) > third);
        assert_eq!(up.to_bits() - down.to_bits(), 1);
        assert_eq!(to_f32(-third, Round::Down), -up);
        assert_eq!(to_f32(-third, Round::Zero), -down);
        assert_eq!(to_f32(third, Round::Odd).to_bits() & 1, 1);
        assert_eq!(to_f32(1e300, Round::Zero), f32::MAX);
        assert_eq!(to_f32(1e300, Round::Even), f32::INFINITY);
        assert_eq!(to_f32(-1e300, Round::Up), f32::MIN);
        assert_eq!(to_f32(1e-300, Round::Up).to_bits(), 1);
        assert_eq!(to_f32(1e-300, Round::Down).to_bits(), 0);
        assert_eq!(to_f32(16777217.0, Round::Away), 16777218.0);
        assert_eq!(to_f32(16777217.0, Round::Even), 16777216.0);
        assert_eq!(to_f32(f64::INFINITY, Round::Zero), f32::INFINITY);
    }

    #[test]
    fn odd_sums_keep_what_a_second_rounding_needs() {
        // 1 + 2^-24 is a tie; the bit beyond it decides.
        let tie = 1.0 + f64::powi(2.0, -24);
        let tiny = f64::powi(2.0, -90);
        assert_eq!(to_f32(add_odd(tie, tiny), Round::Even), 1.0 + f32::EPSILON);
        assert_eq!(to_f32(add_odd(tie, -tiny), Round::Even), 1.0);
        assert_eq!(add_odd(f64::INFINITY, 1.0), f64::INFINITY);
        assert!(add_odd(f64::INFINITY, f64::NEG_INFINITY).is_nan());
    }
}
