// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts with logic or addition; 64-bit addresses.

use super::lanes::Part;

/// Direction and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// Left.
    Left,
    /// Right, zeros come in.
    Right,
    /// Right, copies of the sign come in.
    Arithmetic,
}

/// The logic operation after a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// The arithmetic operation after a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sum {
    /// `shifted + other`.
    Add,
    /// `shifted - other`.
    Sub,
    /// `other - shifted`.
    ReverseSub,
}

/// Element size, and the third source's bytes with the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counts {
    /// One 32-bit element.
    Word(u8),
    /// Two 16-bit elements.
    Half([u8; 2]),
    /// Four 8-bit elements.
    Byte([u8; 4]),
}

/// Shifts each element; counts are modulo its size.
#[inline(always)]
pub fn shift(x: u32, count: u32, shift: Shift, counts: Counts) -> u32 {
    match counts {
        Counts::Word(lane) => {
            let n = (count >> (8 * (lane & 3))) & 31;
            match shift {
                Shift::Left => x << n,
                Shift::Right => x >> n,
                Shift::Arithmetic => ((x as i32) >> n) as u32,
            }
        }
        Counts::Half(lanes) => {
            let one = |i: u32| {
                let n = (count >> (8 * (lanes[i as usize] & 3))) & 15;
                let h = (x >> (16 * i)) as u16;
                let y = match shift {
                    Shift::Left => h << n,
                    Shift::Right => h >> n,
                    Shift::Arithmetic => ((h as i16) >> n) as u16,
                };
                (y as u32) << (16 * i)
            };
            one(0) | one(1)
        }
        Counts::Byte(lanes) => {
            let one = |i: u32| {
                let n = (count >> (8 * (lanes[i as usize] & 3))) & 7;
                let b = (x >> (8 * i)) as u8;
                let y = match shift {
                    Shift::Left => b << n,
                    Shift::Right => b >> n,
                    Shift::Arithmetic => ((b as i8) >> n) as u8,
                };
                (y as u32) << (8 * i)
            };
            one(0) | one(1) | one(2) | one(3)
        }
    }
}

/// `LSHIFT_AND` and its relatives; inverts `other` or the result.
#[inline(always)]
pub const fn logic(
    shifted: u32,
    other: u32,
    logic: Logic,
    not_other: bool,
    not_result: bool,
) -> u32 {
    let other = other ^ (not_other as u32).wrapping_neg();
    let result = match logic {
        Logic::And => shifted & other,
        Logic::Or => shifted | other,
        Logic::Xor => shifted ^ other,
    };
    result ^ (not_result as u32).wrapping_neg()
}

/// `LSHIFT_ADD` and its relatives.
#[inline(always)]
pub const fn sum(shifted: u32, other: u32, sum: Sum) -> u32 {
    match sum {
        Sum::Add => shifted.wrapping_add(other),
        Sum::Sub => shifted.wrapping_sub(other),
        Sum::ReverseSub => other.wrapping_sub(shifted),
    }
}

/// Kind of a 64-bit shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Double {
    /// Left.
    Left,
    /// Right, zeros come in.
    Right,
    /// Right, copies of the sign come in.
    Arithmetic,
    /// Rotation to the left.
    RotateLeft,
    /// Rotation to the right.
    RotateRight,
}

/// `*_DOUBLE.i32` of `{high, low}`; the count is modulo 64, or (`bytes`) in bytes modulo 8.
#[inline(always)]
pub const fn double(low: u32, high: u32, count: u32, kind: Double, bytes: bool) -> u64 {
    let x = (high as u64) << 32 | low as u64;
    let n = (if bytes { count << 3 } else { count }) & 63;
    match kind {
        Double::Left => x << n,
        Double::Right => x >> n,
        Double::Arithmetic => ((x as i64) >> n) as u64,
        Double::RotateLeft => x.rotate_left(n),
        Double::RotateRight => x.rotate_right(n),
    }
}

/// `FLSHIFT_DOUBLE.i32`: the high word; shifts less than 32.
#[inline(always)]
pub const fn funnel_left(low: u32, high: u32, count: u32, bytes: bool) -> u32 {
    let n = (if bytes { count << 3 } else { count }) & 31;
    ((((high as u64) << 32 | low as u64) << n) >> 32) as u32
}

/// `FRSHIFT_DOUBLE.i32`: the low word; shifts less than 32.
#[inline(always)]
pub const fn funnel_right(low: u32, high: u32, count: u32, bytes: bool) -> u32 {
    let n = (if bytes { count << 3 } else { count }) & 31;
    (((high as u64) << 32 | low as u64) >> n) as u32
}

/// Extension of `SHADDXL`'s second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extend {
    /// The low word; `SHADDXH` gets the high one.
    I64,
    /// Zero-extended.
    U32,
    /// Sign-extended.
    S32,
}

/// Carry from a `SHADDXL` to the `SHADDXH`, load or store in its tuple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// Carry, shifted-out bits and extension.
    pub high: u32,
}

/// `SHADDXL`: low word of `a + (extended part of b << shift)`.
#[inline(always)]
pub const fn shaddxl(a: u32, b: u32, shift: u32, extend: Extend, part: Part) -> (u32, Carry) {
    let wide = match extend {
        Extend::I64 => b as u64,
        Extend::U32 => part.zero_extend(b) as u64,
        Extend::S32 => part.sign_extend(b) as i32 as i64 as u64,
    };
    let sum = (a as u64).wrapping_add(wide << (shift & 7));
    let high = (sum >> 32) as u32;
    (sum as u32, Carry { high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_halves_bytes() {
        let x = 0x8123_4567;
        assert_eq!(shift(x, 0x2404, Shift::Left, Counts::Word(0)), x << 4);
        assert_eq!(shift(x, 0x2404, Shift::Right, Counts::Word(1)), x >> 4);
        assert_eq!(
            shift(x, 33, Shift::Arithmetic, Counts::Word(0)),
            ((x as i32) >> 1) as u32
        );
        let c = |lanes| Counts::Half(lanes);
        assert_eq!(shift(x, 4, Shift::Left, c([0, 0])), 0x1230_5670);
        assert_eq!(shift(x, 0x0008_0004, Shift::Right, c([0, 2])), 0x0081_0456);
        assert_eq!(shift(x, 0x0804, Shift::Arithmetic, c([0, 1])), 0xff81_0456);
        let c = |lanes| Counts::Byte(lanes);
        assert_eq!(shift(x, 4, Shift::Left, c([0; 4])), 0x1030_5070);
        let each = c([0, 1, 2, 3]);
        assert_eq!(shift(x, 0x0403_0201, Shift::Arithmetic, each), 0xf804_1133);
        assert_eq!(shift(x, 0x0800_0000, Shift::Left, c([3; 4])), x);
    }

    #[test]
    fn followed_by_logic_or_sum() {
        assert_eq!(logic(0xf0, 0x3c, Logic::And, false, false), 0x30);
        assert_eq!(logic(0xf0, 0x3c, Logic::And, true, false), 0xc0);
        assert_eq!(logic(0xf0, 0x3c, Logic::Or, false, true), !0xfc);
        assert_eq!(logic(0xf0, 0x3c, Logic::Xor, true, true), 0xcc);
        assert_eq!(sum(10, 3, Sum::Add), 13);
        assert_eq!(sum(10, 3, Sum::Sub), 7);
        assert_eq!(sum(10, 3, Sum::ReverseSub), (-7i32) as u32);
    }

    #[test]
    fn sixty_four_bits() {
        let x = 0x8123_4567_89ab_cdefu64;
        let (l, h) = (x as u32, (x >> 32) as u32);
        for n in 0..128 {
            assert_eq!(double(l, h, n, Double::Left, false), x << (n & 63));
            assert_eq!(double(l, h, n, Double::Right, false), x >> (n & 63));
            assert_eq!(
                double(l, h, n, Double::Arithmetic, false),
                ((x as i64) >> (n & 63)) as u64
            );
            assert_eq!(
                double(l, h, n, Double::RotateLeft, false),
                x.rotate_left(n & 63)
            );
            assert_eq!(
                double(l, h, n, Double::RotateRight, true),
                x.rotate_right((n * 8) & 63)
            );
            assert_eq!(funnel_right(l, h, n, false), (x >> (n & 31)) as u32);
            assert_eq!(
                funnel_left(l, h, n, false),
                (((x as u128) << (n & 31)) >> 32) as u32
            );
        }
    }

    #[test]
    fn addresses() {
        let words = [0u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX];
        for a in words {
            for b in words {
                for s in 0..8 {
                    for (extend, part, wide) in [
                        (Extend::I64, Part::Word, u64::from(b)),
                        (Extend::U32, Part::Word, u64::from(b)),
                        (Extend::S32, Part::Word, b as i32 as u64),
                        (Extend::U32, Part::H1, u64::from(b >> 16)),
                        (Extend::S32, Part::H0, b as i16 as u64),
                    ] {
                        let (low, carry) = shaddxl(a, b, s, extend, part);
                        let sum = u64::from(a).wrapping_add(wide << s);
                        assert_eq!((low, carry.high), (sum as u32, (sum >> 32) as u32));
                    }
                }
            }
        }
    }
}
