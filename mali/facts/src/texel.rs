// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pixel formats of texels.
//!
//! Bits 19:12 are the format, 20 sRGB, 11:0 component order: on v7 from a list, on v6 four 3-bit selectors.

use crate::PixelFormat;

/// Singles or integers, by [`Kind`].
pub type Texel = [u32; 4];

/// Words of a decoded texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Singles.
    Float,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
}

impl Kind {
    /// The word for "one".
    #[inline]
    pub const fn one(self) -> u32 {
        match self {
            Kind::Float => 0x3f80_0000,
            Kind::Signed | Kind::Unsigned => 1,
        }
    }
}

/// How one component is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Unsigned fraction.
    Unorm,
    /// Signed fraction.
    Snorm,
    /// Unsigned integer.
    Uint,
    /// Signed integer.
    Sint,
    /// Float of 16 or 32 bits; of 10 or 11 it has no sign.
    Float,
    /// 32-bit float; stores round two components to 1/256.
    Position,
}

/// Components in a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Widths from the low end (0: absent).
    Fields([u8; 4]),
    /// From the low end: three 9-bit mantissas, 5-bit exponent.
    SharedExponent,
    /// From the low end: 5-bit exponent, three 9-bit mantissas.
    ExponentFirst,
}

/// A result component's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// 0 to 3, of memory, or the format's result in a swizzle.
    Component(u8),
    /// Zero.
    Zero,
    /// One.
    One,
}

impl Channel {
    /// 3 bits: R, G, B, A, zero, one.
    pub const fn from_selector(selector: u32) -> Option<Channel> {
        match selector {
            0..=3 => Some(Channel::Component(selector as u8)),
            4 => Some(Channel::Zero),
            5 => Some(Channel::One),
            _ => None,
        }
    }

    /// Selected component.
    #[inline]
    pub const fn pick(self, texel: Texel, kind: Kind) -> u32 {
        match self {
            Channel::Component(i) => texel[(i & 3) as usize],
            Channel::Zero => 0,
            Channel::One => kind.one(),
        }
    }
}

/// Four selectors, from 12 bits.
pub const fn swizzle(bits: u32) -> Option<[Channel; 4]> {
    let mut out = [Channel::Zero; 4];
    let mut i = 0;
    while i < 4 {
        match Channel::from_selector(bits >> (3 * i) & 7) {
            Some(channel) => out[i] = channel,
            None => return None,
        }
        i += 1;
    }
    Some(out)
}

/// Pixel format of unknown meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The 22-bit word.
    pub word: u32,
}

impl core::fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "unknown pixel format {:#08x} (number {}, component order {:#05x})",
            self.word,
            PixelFormat(self.word).number(),
            PixelFormat(self.word).order()
        )
    }
}

impl core::error::Error for UnknownFormat {}

/// A pixel format, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TexelFormat {
    /// Layout of components.
    pub packing: Packing,
    /// How each is stored.
    pub encoding: Encoding,
    /// From memory's components.
    pub order: [Channel; 4],
    /// But not alpha.
    pub srgb: bool,
    /// Per texel.
    pub bytes: u8,
}

impl TexelFormat {
    /// `explicit_swizzle`: v6's low bits.
    pub const fn parse(
        format: PixelFormat,
        explicit_swizzle: bool,
    ) -> Result<TexelFormat, UnknownFormat> {
        let word = format.0;
        let unknown = UnknownFormat {
            word: word & 0x3f_ffff,
        };
        // Bit 21, big-endian storage, is never used.
        if word >> 21 & 1 == 1 {
            return Err(unknown);
        }
        let Some((packing, encoding)) = layout(format.number()) else {
            return Err(unknown);
        };
        let order = if explicit_swizzle {
            swizzle(format.order())
        } else {
            component_order(format.order())
        };
        let Some(order) = order else {
            return Err(unknown);
        };
        let bits = match packing {
            Packing::Fields(w) => w[0] as u32 + w[1] as u32 + w[2] as u32 + w[3] as u32,
            Packing::SharedExponent | Packing::ExponentFirst => 32,
        };
        Ok(TexelFormat {
            packing,
            encoding,
            order,
            srgb: format.is_srgb(),
            bytes: bits.div_ceil(8) as u8,
        })
    }

    /// Words of a decoded texel.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self.encoding {
            Encoding::Unorm | Encoding::Snorm | Encoding::Float | Encoding::Position => Kind::Float,
            Encoding::Uint => Kind::Unsigned,
            Encoding::Sint => Kind::Signed,
        }
    }
}

const fn layout(number: u32) -> Option<(Packing, Encoding)> {
    use Encoding::{Float, Position, Sint, Snorm, Uint, Unorm};
    use Packing::{ExponentFirst, Fields, SharedExponent};
    let irregular = match number {
        5 => (Fields([4, 4, 0, 0]), Unorm),
        6 => (Fields([4, 4, 0, 0]), Unorm),
        24 | 25 => (Fields([8, 8, 0, 0]), Unorm),
        26 => (Fields([8, 0, 0, 0]), Unorm),
        64 => (Fields([5, 6, 5, 0]), Unorm),
        65 => (Fields([5, 5, 5, 1]), Unorm),
        66 => (Fields([1, 5, 5, 5]), Unorm),
        67 | 238 => (Fields([10, 10, 10, 2]), Unorm),
        68 => (Fields([2, 10, 10, 10]), Unorm),
        69 => (Fields([10, 10, 10, 2]), Snorm),
        70 => (Fields([2, 10, 10, 10]), Snorm),
        71 => (Fields([10, 10, 10, 2]), Uint),
        72 => (Fields([2, 10, 10, 10]), Uint),
        73 => (Fields([10, 10, 10, 2]), Sint),
        74 => (Fields([2, 10, 10, 10]), Sint),
        75 => (Fields([16, 0, 0, 0]), Unorm),
        76 | 231 => (Fields([32, 0, 0, 0]), Float),
        94 => (Fields([32, 32, 32, 32]), Position),
        89 => (Fields([11, 11, 10, 0]), Float),
        90 => (Fields([10, 11, 11, 0]), Float),
        91 => (SharedExponent, Float),
        92 => (ExponentFirst, Float),
        93 => (Fields([8, 0, 0, 0]), Uint),
        237 => (Fields([8, 8, 8, 8]), Unorm),
        239 => (Fields([32, 32, 0, 0]), Float),
        247 => (Fields([32, 32, 32, 0]), Float),
        255 => (Fields([32, 32, 32, 32]), Float),
        96..=223 => return regular(number),
        _ => return None,
    };
    Some(irregular)
}

/// 3 bits of class, 2 of component count less one, 3 of component size.
const fn regular(number: u32) -> Option<(Packing, Encoding)> {
    let class = number >> 5;
    let float = number & 7 == 7;
    let width = match (number & 7, class) {
        (1, _) => 2,
        (2, _) => 4,
        (3, _) => 8,
        (4, _) => 16,
        (5, _) => 32,
        (7, 5) => 32,
        (7, 6) => 16,
        _ => return None,
    };
    let encoding = match class {
        5 | 6 if float => Encoding::Float,
        3 => Encoding::Snorm,
        4 => Encoding::Uint,
        5 => Encoding::Unorm,
        _ => Encoding::Sint,
    };
    let count = (number >> 3 & 3) as usize + 1;
    let mut widths = [0; 4];
    let mut i = 0;
    while i < count {
        widths[i] = width;
        i += 1;
    }
    Some((Packing::Fields(widths), encoding))
}

/// Which component of memory each result component is, by v7's number of the order.
const fn component_order(order: u32) -> Option<[Channel; 4]> {
    use Channel::{Component, One, Zero};
    const C: [Channel; 4] = [Component(0), Component(1), Component(2), Component(3)];
    let (order, opaque) = if order >= 16 && order < 32 {
        (order - 16, true)
    } else {
        (order, false)
    };
    let mut out = match order {
        0 => [C[0], C[1], C[2], C[3]],
        2 => [C[1], C[0], C[2], C[3]],
        4 => [C[2], C[1], C[0], C[3]],
        8 => [C[1], C[2], C[3], C[0]],
        10 => [C[2], C[1], C[3], C[0]],
        12 => [C[3], C[2], C[1], C[0]],
        226 => [C[0], C[0], C[0], C[0]],
        227 => [C[0], C[0], C[0], One],
        228 => [C[0], C[0], C[0], C[1]],
        229 => [Zero, Zero, Zero, C[0]],
        230 => [Zero, Zero, Zero, One],
        231 => [Zero, Zero, Zero, Zero],
        240 => [C[0], Zero, Zero, Zero],
        242 => [C[0], C[2], C[1], C[3]],
        _ => return None,
    };
    if opaque {
        out[3] = One;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn v7(number: u32, order: u32) -> TexelFormat {
        TexelFormat::parse(PixelFormat(number << 12 | order), false).unwrap()
    }

    #[test]
    fn sizes_and_kinds() {
        for (number, bytes, kind) in [
            (187, 4, Kind::Float),
            (163, 1, Kind::Float),
            (131, 1, Kind::Unsigned),
            (221, 16, Kind::Signed),
            (191, 16, Kind::Float),
            (223, 8, Kind::Float),
            (199, 2, Kind::Float),
            (207, 4, Kind::Float),
            (64, 2, Kind::Float),
            (71, 4, Kind::Unsigned),
            (89, 4, Kind::Float),
            (147, 3, Kind::Unsigned),
            (101, 4, Kind::Float),
        ] {
            let f = v7(number, 0);
            assert_eq!((f.bytes, f.kind()), (bytes, kind), "{number}");
        }
    }

    #[test]
    fn unknown_words_are_named() {
        let parse = |word, explicit| TexelFormat::parse(PixelFormat(word), explicit);
        let e = parse(22 << 12, false).unwrap_err();
        assert!(e.to_string().contains("number 22"));
        assert!(parse(187 << 12 | 3, false).is_err());
        assert!(parse(187 << 12 | 0o6210, true).is_err());
        assert!(parse(1 << 21 | 187 << 12, false).is_err());
    }
}
