// SPDX-License-Identifier: MIT OR Apache-2.0
//! Halves and bytes of a register.

/// A part that is widened to 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// All 32 bits.
    #[default]
    Word,
    /// Bits 15:0.
    H0,
    /// Bits 31:16.
    H1,
    /// Bits 7:0.
    B0,
    /// Bits 15:8.
    B1,
    /// Bits 23:16.
    B2,
    /// Bits 31:24.
    B3,
}

impl Part {
    /// Byte `index & 3`.
    #[inline(always)]
    pub const fn byte(index: u32) -> Part {
        match index & 3 {
            0 => Part::B0,
            1 => Part::B1,
            2 => Part::B2,
            _ => Part::B3,
        }
    }

    /// Half `index & 1`.
    #[inline(always)]
    pub const fn half(index: u32) -> Part {
        if index & 1 == 0 { Part::H0 } else { Part::H1 }
    }

    /// Left shift of the part's top bit to bit 31, and right shift back.
    pub const fn shifts(self) -> (u32, u32) {
        match self {
            Part::Word => (0, 0),
            Part::H0 => (16, 16),
            Part::H1 => (0, 16),
            Part::B0 => (24, 24),
            Part::B1 => (16, 24),
            Part::B2 => (8, 24),
            Part::B3 => (0, 24),
        }
    }

    /// Zero-extended part of `x`.
    #[inline(always)]
    pub const fn zero_extend(self, x: u32) -> u32 {
        let (left, right) = self.shifts();
        x << left >> right
    }

    /// Sign-extended part of `x`.
    #[inline(always)]
    pub const fn sign_extend(self, x: u32) -> u32 {
        let (left, right) = self.shifts();
        (((x << left) as i32) >> right) as u32
    }

    /// Extended part of `x`.
    #[inline(always)]
    pub const fn extend(self, x: u32, signed: bool) -> u32 {
        if signed {
            self.sign_extend(x)
        } else {
            self.zero_extend(x)
        }
    }
}

/// Sources of the low and high half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Halves {
    /// Low half twice.
    H00,
    /// Swapped.
    H10,
    /// In place.
    #[default]
    H01,
    /// High half twice.
    H11,
}

impl Halves {
    /// By `index & 3` of a `swz` modifier: h00, h10, h01, h11.
    #[inline(always)]
    pub const fn from_encoding(index: u32) -> Halves {
        match index & 3 {
            0 => Halves::H00,
            1 => Halves::H10,
            2 => Halves::H01,
            _ => Halves::H11,
        }
    }

    /// Arranges halves.
    #[inline(always)]
    pub const fn apply(self, x: u32) -> u32 {
        match self {
            Halves::H00 => x << 16 | (x & 0xffff),
            Halves::H10 => x.rotate_left(16),
            Halves::H01 => x,
            Halves::H11 => x >> 16 | (x & 0xffff_0000),
        }
    }
}

/// Byte `a` to the low, `b` to the high half, extended.
#[inline(always)]
pub const fn bytes_to_halves(x: u32, a: u32, b: u32, signed: bool) -> u32 {
    let low = Part::byte(a).extend(x, signed);
    let high = Part::byte(b).extend(x, signed);
    (low & 0xffff) | high << 16
}

/// Low half first.
#[inline(always)]
pub const fn halves(x: u32) -> [u16; 2] {
    [x as u16, (x >> 16) as u16]
}

/// Low half first.
#[inline(always)]
pub const fn from_halves(h: [u16; 2]) -> u32 {
    h[0] as u32 | (h[1] as u32) << 16
}

/// `f` on each half.
#[inline(always)]
pub fn each_half(a: u32, f: impl Fn(u16) -> u16) -> u32 {
    let a = halves(a);
    from_halves([f(a[0]), f(a[1])])
}

/// `f` on each pair of halves.
#[inline(always)]
pub fn each_half2(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let (a, b) = (halves(a), halves(b));
    from_halves([f(a[0], b[0]), f(a[1], b[1])])
}

/// `f` on each triple of halves.
#[inline(always)]
pub fn each_half3(a: u32, b: u32, c: u32, f: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let (a, b, c) = (halves(a), halves(b), halves(c));
    from_halves([f(a[0], b[0], c[0]), f(a[1], b[1], c[1])])
}

/// `f` on each byte.
#[inline(always)]
pub fn each_byte(a: u32, f: impl Fn(u8) -> u8) -> u32 {
    let a = a.to_le_bytes();
    u32::from_le_bytes([f(a[0]), f(a[1]), f(a[2]), f(a[3])])
}

/// `f` on each pair of bytes.
#[inline(always)]
pub fn each_byte2(a: u32, b: u32, f: impl Fn(u8, u8) -> u8) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes([f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let x = 0x89ab_cdef;
        assert_eq!(Part::Word.sign_extend(x), x);
        assert_eq!(Part::H0.zero_extend(x), 0xcdef);
        assert_eq!(Part::H0.sign_extend(x), 0xffff_cdef);
        assert_eq!(Part::H1.sign_extend(x), 0xffff_89ab);
        for i in 0..4 {
            let byte = x.to_le_bytes()[i as usize];
            assert_eq!(Part::byte(i).zero_extend(x), byte as u32);
            assert_eq!(Part::byte(i).sign_extend(x), byte as i8 as u32);
        }
    }

    #[test]
    fn arrangements() {
        let x = 0x4433_2211;
        assert_eq!(Halves::from_encoding(0).apply(x), 0x2211_2211);
        assert_eq!(Halves::from_encoding(1).apply(x), 0x2211_4433);
        assert_eq!(Halves::from_encoding(2).apply(x), x);
        assert_eq!(Halves::from_encoding(3).apply(x), 0x4433_4433);
        assert_eq!(bytes_to_halves(0x80_7f, 0, 1, true), 0xff80_007f);
    }
}
