// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integer arithmetic.

use super::lanes::{each_byte, each_byte2, each_half, each_half2};
use super::{Compare, Truth};

/// Width and signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Signed word.
    S32,
    /// Unsigned word.
    U32,
    /// Signed halves.
    S16,
    /// Unsigned halves.
    U16,
    /// Signed bytes.
    S8,
    /// Unsigned bytes.
    U8,
}

impl Element {
    /// All, by number.
    pub const ALL: [Element; 6] = [
        Element::S32,
        Element::U32,
        Element::S16,
        Element::U16,
        Element::S8,
        Element::U8,
    ];

    /// By `element as u32`, modulo their count.
    #[inline(always)]
    pub const fn numbered(number: u32) -> Element {
        Element::ALL[number as usize % Element::ALL.len()]
    }

    /// Whether they are signed.
    pub const fn is_signed(self) -> bool {
        matches!(self, Element::S32 | Element::S16 | Element::S8)
    }

    /// The unsigned elements of this width.
    pub const fn unsigned(self) -> Element {
        match self {
            Element::S32 | Element::U32 => Element::U32,
            Element::S16 | Element::U16 => Element::U16,
            Element::S8 | Element::U8 => Element::U8,
        }
    }
}

/// `a + b`, wraps or saturates.
#[inline(always)]
pub fn iadd(a: u32, b: u32, element: Element, saturate: bool) -> u32 {
    match (element, saturate) {
        (Element::S32 | Element::U32, false) => a.wrapping_add(b),
        (Element::S32, true) => (a as i32).saturating_add(b as i32) as u32,
        (Element::U32, true) => a.saturating_add(b),
        (Element::S16 | Element::U16, false) => each_half2(a, b, u16::wrapping_add),
        (Element::S16, true) => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| (x as i16).saturating_add(y as i16) as u16,
        ),
        (Element::U16, true) => each_half2(a, b, u16::saturating_add),
        (Element::S8 | Element::U8, false) => each_byte2(a, b, u8::wrapping_add),
        (Element::S8, true) => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| (x as i8).saturating_add(y as i8) as u8,
        ),
        (Element::U8, true) => each_byte2(a, b, u8::saturating_add),
    }
}

/// `a - b`, wraps or saturates.
#[inline(always)]
pub fn isub(a: u32, b: u32, element: Element, saturate: bool) -> u32 {
    match (element, saturate) {
        (Element::S32 | Element::U32, false) => a.wrapping_sub(b),
        (Element::S32, true) => (a as i32).saturating_sub(b as i32) as u32,
        (Element::U32, true) => a.saturating_sub(b),
        (Element::S16 | Element::U16, false) => each_half2(a, b, u16::wrapping_sub),
        (Element::S16, true) => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| (x as i16).saturating_sub(y as i16) as u16,
        ),
        (Element::U16, true) => each_half2(a, b, u16::saturating_sub),
        (Element::S8 | Element::U8, false) => each_byte2(a, b, u8::wrapping_sub),
        (Element::S8, true) => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| (x as i8).saturating_sub(y as i8) as u8,
        ),
        (Element::U8, true) => each_byte2(a, b, u8::saturating_sub),
    }
}

/// `IADDC.i32`, with the carry in bit 0 of `c`.
#[inline(always)]
pub const fn iaddc(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_add(b).wrapping_add(c & 1)
}

/// `ISUBB.i32`, with the borrow in bit 0 of `c`.
#[inline(always)]
pub const fn isubb(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_sub(b).wrapping_sub(c & 1)
}

/// Half the sum without overflow; `up` rounds up.
#[inline(always)]
pub fn hadd(a: u32, b: u32, element: Element, up: bool) -> u32 {
    let one = up as i64;
    match element {
        Element::S32 => ((a as i32 as i64 + b as i32 as i64 + one) >> 1) as u32,
        Element::U32 => ((a as i64 + b as i64 + one) >> 1) as u32,
        Element::S16 => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| ((x as i16 as i32 + y as i16 as i32 + up as i32) >> 1) as u16,
        ),
        Element::U16 => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| ((x as u32 + y as u32 + up as u32) >> 1) as u16,
        ),
        Element::S8 => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| ((x as i8 as i32 + y as i8 as i32 + up as i32) >> 1) as u8,
        ),
        Element::U8 => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| ((x as u32 + y as u32 + up as u32) >> 1) as u8,
        ),
    }
}

/// `a * b`, low bits.
#[inline(always)]
pub fn imul(a: u32, b: u32, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => a.wrapping_mul(b),
        Element::S16 | Element::U16 => each_half2(a, b, u16::wrapping_mul),
        Element::S8 | Element::U8 => each_byte2(a, b, u8::wrapping_mul),
    }
}

/// `IMAD.i32`: `a * b + c`.
#[inline(always)]
pub const fn imad(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_mul(b).wrapping_add(c)
}

/// `IMULSUB.i32`: `a * b - c`.
#[inline(always)]
pub const fn imulsub(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_mul(b).wrapping_sub(c)
}

/// `IMSUB.i32`: `c - a * b`.
#[inline(always)]
pub const fn imsub(a: u32, b: u32, c: u32) -> u32 {
    c.wrapping_sub(a.wrapping_mul(b))
}

/// `IDP.v4i8`: dot product of bytes.
#[inline(always)]
pub fn idp(a: u32, b: u32, signed_a: bool, signed_b: bool) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    let wide = |x: u8, signed: bool| {
        if signed { x as i8 as i32 } else { x as i32 }
    };
    let mut sum = 0i32;
    for i in 0..4 {
        sum = sum.wrapping_add(wide(a[i], signed_a) * wide(b[i], signed_b));
    }
    sum as u32
}

/// `IABS`. The least number keeps its bits.
#[inline(always)]
pub fn iabs(a: u32, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => (a as i32).wrapping_abs() as u32,
        Element::S16 | Element::U16 => each_half(
            a,
            #[inline(always)]
            |x| (x as i16).wrapping_abs() as u16,
        ),
        Element::S8 | Element::U8 => each_byte(
            a,
            #[inline(always)]
            |x| (x as i8).wrapping_abs() as u8,
        ),
    }
}

/// `IMAX3`: the largest.
#[inline(always)]
pub fn imax3(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    if signed {
        (a as i32).max(b as i32).max(c as i32) as u32
    } else {
        a.max(b).max(c)
    }
}

/// `IMIN3`: the smallest.
#[inline(always)]
pub fn imin3(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    if signed {
        (a as i32).min(b as i32).min(c as i32) as u32
    } else {
        a.min(b).min(c)
    }
}

/// `ICLAMP`: at least `low`, then at most `high`.
#[inline(always)]
pub fn iclamp(x: u32, low: u32, high: u32, signed: bool) -> u32 {
    if signed {
        (x as i32).max(low as i32).min(high as i32) as u32
    } else {
        x.max(low).min(high)
    }
}

/// Integers have no NaN: [`Compare::GtLt`] is [`Compare::Ne`], and [`Compare::Total`] is always true.
#[inline(always)]
fn holds<T: Ord>(x: T, y: T, compare: Compare) -> bool {
    match compare {
        Compare::Eq => x == y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
        Compare::Ne | Compare::GtLt => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Total => true,
    }
}

/// `ICMP`.
#[inline(always)]
pub fn icmp(a: u32, b: u32, element: Element, compare: Compare, truth: Truth) -> u32 {
    match element {
        Element::S32 => truth.word(holds(a as i32, b as i32, compare)),
        Element::U32 => truth.word(holds(a, b, compare)),
        Element::S16 => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| truth.half(holds(x as i16, y as i16, compare)),
        ),
        Element::U16 => each_half2(
            a,
            b,
            #[inline(always)]
            |x, y| truth.half(holds(x, y, compare)),
        ),
        Element::S8 => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| truth.byte(holds(x as i8, y as i8, compare)),
        ),
        Element::U8 => each_byte2(
            a,
            b,
            #[inline(always)]
            |x, y| truth.byte(holds(x, y, compare)),
        ),
    }
}

/// `CSEL` of integers: `c` if the comparison holds, else `d`.
#[inline(always)]
pub fn csel(a: u32, b: u32, c: u32, d: u32, element: Element, compare: Compare) -> u32 {
    let mask = icmp(a, b, element, compare, Truth::M1);
    (c & mask) | (d & !mask)
}

/// State between steps of a multi-word comparison in one tuple.
///
/// Our own form: hardware's is not known, and only the next step reads it. Bits 1:0 order so far (0 equal, 1 less,
/// 2 greater, unsigned), bits 6:4 the comparison, bit 7 signedness of the top word, bits 9:8 form of "true".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial(pub u32);

#[inline(always)]
fn order(a: u32, b: u32) -> u32 {
    (a < b) as u32 | ((a > b) as u32) << 1
}

/// `ICMPI`: compares the low words.
#[inline(always)]
pub fn icmpi(a: u32, b: u32, signed: bool, compare: Compare, truth: Truth) -> Partial {
    let compare = match compare {
        Compare::Eq => 0,
        Compare::Ne | Compare::GtLt | Compare::Total => 1,
        Compare::Gt => 2,
        Compare::Ge => 3,
        Compare::Lt => 4,
        Compare::Le => 5,
    };
    Partial(order(a, b) | compare << 4 | (signed as u32) << 7 | (truth as u32) << 8)
}

/// `ICMPM`: takes in middle words.
#[inline(always)]
pub fn icmpm(a: u32, b: u32, partial: Partial) -> Partial {
    let here = order(a, b);
    let rest = partial.0 & !3;
    Partial(if here == 0 { partial.0 } else { rest | here })
}

/// `ICMPF`: takes in the top words and ends.
#[inline(always)]
pub fn icmpf(a: u32, b: u32, partial: Partial) -> u32 {
    let flip = (partial.0 >> 7 & 1) << 31;
    let here = order(a ^ flip, b ^ flip);
    let all = if here == 0 { partial.0 & 3 } else { here };
    let yes = match partial.0 >> 4 & 7 {
        0 => all == 0,
        1 => all != 0,
        2 => all == 2,
        3 => all != 1,
        4 => all == 1,
        _ => all != 2,
    };
    let truth = match partial.0 >> 8 & 3 {
        0 => Truth::I1,
        1 => Truth::F1,
        _ => Truth::M1,
    };
    truth.word(yes)
}

/// `MUX` takes the first source if the third is:
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mux {
    /// Negative.
    Neg,
    /// Zero.
    IntZero,
    /// Floating-point zero of either sign.
    FpZero,
    /// One, bit by bit.
    Bit,
}

/// `MUX` of `bits` 32, 16 or 8: `a` where `c` says so, else `b`.
#[inline(always)]
pub fn mux(a: u32, b: u32, c: u32, mux: Mux, bits: u32) -> u32 {
    let mask = match (mux, bits) {
        (Mux::Bit, _) => c,
        (Mux::Neg, 32) => ((c as i32) >> 31) as u32,
        (Mux::Neg, 16) => each_half(
            c,
            #[inline(always)]
            |x| ((x as i16) >> 15) as u16,
        ),
        (Mux::Neg, _) => each_byte(
            c,
            #[inline(always)]
            |x| ((x as i8) >> 7) as u8,
        ),
        (Mux::IntZero, 32) => Truth::M1.word(c == 0),
        (Mux::IntZero, 16) => each_half(
            c,
            #[inline(always)]
            |x| Truth::M1.half(x == 0),
        ),
        (Mux::IntZero, _) => each_byte(
            c,
            #[inline(always)]
            |x| Truth::M1.byte(x == 0),
        ),
        (Mux::FpZero, 32) => Truth::M1.word(c << 1 == 0),
        (Mux::FpZero, _) => each_half(
            c,
            #[inline(always)]
            |x| Truth::M1.half(x << 1 == 0),
        ),
    };
    (a & mask) | (b & !mask)
}

/// `CLZ` of each element (32, 16 or 8 for 0).
#[inline(always)]
pub fn clz(a: u32, element: Element) -> u32 {
    match element {
        Element::S32 | Element::U32 => a.leading_zeros(),
        Element::S16 | Element::U16 => each_half(
            a,
            #[inline(always)]
            |x| x.leading_zeros() as u16,
        ),
        Element::S8 | Element::U8 => each_byte(
            a,
            #[inline(always)]
            |x| x.leading_zeros() as u8,
        ),
    }
}

/// `POPCOUNT.i32`.
#[inline(always)]
pub const fn popcount(a: u32) -> u32 {
    a.count_ones()
}

/// `BITREV.i32`.
#[inline(always)]
pub const fn bitrev(a: u32) -> u32 {
    a.reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Element; 6] = [
        Element::S32,
        Element::U32,
        Element::S16,
        Element::U16,
        Element::S8,
        Element::U8,
    ];
    const COMPARES: [Compare; 6] = [
        Compare::Eq,
        Compare::Gt,
        Compare::Ge,
        Compare::Ne,
        Compare::Lt,
        Compare::Le,
    ];

    fn shape(e: Element) -> (u32, bool) {
        match e {
            Element::S32 => (32, true),
            Element::U32 => (32, false),
            Element::S16 => (16, true),
            Element::U16 => (16, false),
            Element::S8 => (8, true),
            Element::U8 => (8, false),
        }
    }

    fn split(x: u32, e: Element) -> Vec<i128> {
        let (bits, signed) = shape(e);
        (0..32 / bits)
            .map(|i| {
                let v = (x as u64 >> (i * bits)) & ((1u64 << bits) - 1);
                if signed && v >> (bits - 1) == 1 {
                    v as i128 - (1i128 << bits)
                } else {
                    v as i128
                }
            })
            .collect()
    }

    fn join(v: impl Iterator<Item = i128>, e: Element) -> u32 {
        let (bits, _) = shape(e);
        v.enumerate().fold(0, |x, (i, v)| {
            x | ((v as u64 & ((1u64 << bits) - 1)) << (i as u32 * bits)) as u32
        })
    }

    fn words() -> Vec<u32> {
        let mut v = vec![
            0,
            1,
            2,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x8080_8080,
            0x7f7f_7f7f,
            0x8000_7fff,
            0x0001_ffff,
            0x0100_01ff,
        ];
        let mut random = fastrand::Rng::with_seed(5);
        v.extend(std::iter::repeat_with(|| random.u32(..)).take(60));
        v
    }

    #[test]
    fn sums_differences_products_averages() {
        for e in ALL {
            let (bits, signed) = shape(e);
            let (least, most) = if signed {
                (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
            } else {
                (0, (1i128 << bits) - 1)
            };
            for &a in &words() {
                for &b in &words() {
                    let pairs = || split(a, e).into_iter().zip(split(b, e));
                    assert_eq!(iadd(a, b, e, false), join(pairs().map(|(x, y)| x + y), e));
                    assert_eq!(isub(a, b, e, false), join(pairs().map(|(x, y)| x - y), e));
                    assert_eq!(imul(a, b, e), join(pairs().map(|(x, y)| x * y), e));
                    let sat = |v: i128| v.clamp(least, most);
                    assert_eq!(
                        iadd(a, b, e, true),
                        join(pairs().map(|(x, y)| sat(x + y)), e)
                    );
                    assert_eq!(
                        isub(a, b, e, true),
                        join(pairs().map(|(x, y)| sat(x - y)), e)
                    );
                    for up in [false, true] {
                        assert_eq!(
                            hadd(a, b, e, up),
                            join(pairs().map(|(x, y)| (x + y + up as i128) >> 1), e)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn comparisons_and_selection() {
        for e in ALL {
            let (bits, _) = shape(e);
            for &a in &words() {
                for &b in &words() {
                    for c in COMPARES {
                        let yes = |(x, y): (i128, i128)| match c {
                            Compare::Eq => x == y,
                            Compare::Gt => x > y,
                            Compare::Ge => x >= y,
                            Compare::Lt => x < y,
                            Compare::Le => x <= y,
                            _ => x != y,
                        };
                        let pairs = || split(a, e).into_iter().zip(split(b, e));
                        let ones = join(pairs().map(|p| yes(p) as i128), e);
                        assert_eq!(icmp(a, b, e, c, Truth::I1), ones);
                        let mask = join(pairs().map(|p| -(yes(p) as i128)), e);
                        assert_eq!(icmp(a, b, e, c, Truth::M1), mask);
                        assert_eq!(csel(a, b, a, b, e, c), (a & mask) | (b & !mask));
                        if bits == 16 {
                            let f = join(pairs().map(|p| if yes(p) { 0x3c00 } else { 0 }), e);
                            assert_eq!(icmp(a, b, e, c, Truth::F1), f);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn long_comparisons() {
        let w = [0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX];
        for a0 in w {
            for a1 in w {
                for b0 in w {
                    for b1 in w {
                        let (a, b) = ((a1 as u64) << 32 | a0 as u64, (b1 as u64) << 32 | b0 as u64);
                        for c in COMPARES {
                            let u = icmpf(a1, b1, icmpi(a0, b0, false, c, Truth::I1));
                            assert_eq!(u, holds(a, b, c) as u32);
                            let s = icmpf(a1, b1, icmpi(a0, b0, true, c, Truth::M1));
                            let want = holds(a as i64, b as i64, c) as u32;
                            assert_eq!(s, want.wrapping_neg());
                            let m = icmpm(a1, b1, icmpi(a0, b0, false, c, Truth::I1));
                            assert_eq!(icmpf(7, 7, m), holds(a, b, c) as u32);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn multiply_add_family() {
        assert_eq!(imad(7, 6, 5), 47);
        assert_eq!(imulsub(7, 6, 5), 37);
        assert_eq!(imsub(7, 6, 5), (-37i32) as u32);
        assert_eq!(iaddc(u32::MAX, 0, 3), 0);
        assert_eq!(isubb(0, 0, 1), u32::MAX);
        assert_eq!(idp(0xff02_ff03, 0x01ff_ff04, true, true), {
            (3 * 4 + 1 - 2 - 1) as u32
        });
        assert_eq!(idp(0xff00_0000, 0xff00_0000, false, true), (-255i32) as u32);
    }

    #[test]
    fn minima_clamps_bits_and_multiplexers() {
        let minus = u32::MAX;
        assert_eq!(imax3(minus, 1, 0, true), 1);
        assert_eq!(imax3(minus, 1, 0, false), minus);
        assert_eq!(imin3(minus, 1, 0, true), minus);
        assert_eq!(imin3(minus, 1, 2, false), 1);
        assert_eq!(iclamp(minus - 4, minus, 27, true), minus);
        assert_eq!(iclamp(40, minus, 27, true), 27);
        assert_eq!(iclamp(40, 1, 27, false), 27);
        assert_eq!(iabs(0x8000_ffff, Element::S16), 0x8000_0001);
        assert_eq!(iabs(0x80ff_7f01, Element::S8), 0x8001_7f01);
        assert_eq!(iabs(minus, Element::S32), 1);
        assert_eq!(clz(0, Element::U32), 32);
        assert_eq!(clz(0x0001_0000, Element::U16), 0x000f_0010);
        assert_eq!(clz(0x0180_0000, Element::U8), 0x0700_0808);
        assert_eq!(popcount(0xf0f0_0001), 9);
        assert_eq!(bitrev(1), 1 << 31);
        assert_eq!(mux(5, 6, minus, Mux::Neg, 32), 5);
        assert_eq!(mux(5, 6, 1, Mux::IntZero, 32), 6);
        assert_eq!(mux(5, 6, 1 << 31, Mux::FpZero, 32), 5);
        assert_eq!(mux(0xff00, 0x00ff, 0xf0f0, Mux::Bit, 32), 0xf00f);
        assert_eq!(
            mux(0x1111_2222, 0x3333_4444, 0x8000_0000, Mux::Neg, 16),
            0x1111_4444
        );
        assert_eq!(
            mux(0x1111_2222, 0x3333_4444, 0x8000_0001, Mux::FpZero, 16),
            0x1111_4444
        );
        assert_eq!(
            mux(0x1122_3344, 0x5566_7788, 0x0001_0001, Mux::IntZero, 8),
            0x1166_3388
        );
    }
}
