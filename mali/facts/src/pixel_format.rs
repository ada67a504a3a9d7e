// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pixel formats of descriptors.

use core::fmt;

/// Pixel format of 22 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelFormat(pub u32);

const ORDERS: &[(u32, &str)] = &[
    (0, "RGBA"),
    (2, "GRBA"),
    (4, "BGRA"),
    (8, "ARGB"),
    (10, "AGRB"),
    (12, "ABGR"),
    (16, "RGB1"),
    (18, "GRB1"),
    (20, "BGR1"),
    (24, "1RGB"),
    (26, "1GRB"),
    (28, "1BGR"),
    (226, "RRRR"),
    (227, "RRR1"),
    (228, "RRRA"),
    (229, "000A"),
    (230, "0001"),
    (231, "0000"),
    (240, "R000"),
    (242, "RBGA"),
];

impl PixelFormat {
    /// Number of the memory format.
    pub const fn number(self) -> u32 {
        self.0 >> 12 & 0xff
    }

    /// Colours are sRGB encoded.
    pub const fn is_srgb(self) -> bool {
        self.0 >> 20 & 1 != 0
    }

    /// v7: component order; v6: swizzle.
    pub const fn order(self) -> u32 {
        self.0 & 0xfff
    }

    /// `RGBA8 UNORM`; numbers for what compute never uses.
    fn memory_format(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        let special = match number {
            64 => "RGB565",
            65 => "RGB5 A1 UNORM",
            67 => "RGB10 A2 UNORM",
            69 => "RGB10 A2 SNORM",
            71 => "RGB10 A2UI",
            73 => "RGB10 A2I",
            75 => "Z16 UNORM",
            76 => "Z32",
            77 => "Z24X8 UNORM",
            89 => "R11F G11F B10F",
            91 => "R9F G9F B9F E5F",
            93 => "S8",
            95 => "Constant",
            199 => "R16F",
            207 => "RG16F",
            215 => "RGB16F",
            223 => "RGBA16F",
            _ => "",
        };
        if !special.is_empty() {
            return f.write_str(special);
        }
        let kind = match number {
            96..=127 => " SNORM",
            128..=159 => "UI",
            160..=191 => " UNORM",
            192..=223 => "I",
            _ => return write!(f, "format {number}"),
        };
        let channels = ["R", "RG", "RGB", "RGBA"][(number >> 3 & 3) as usize];
        match number & 7 {
            7 if (160..=191).contains(&number) => write!(f, "{channels}32F"),
            code @ 1..=5 => write!(f, "{channels}{}{kind}", 1 << code),
            _ => write!(f, "format {number}"),
        }
    }
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory_format(f)?;
        if self.is_srgb() {
            f.write_str(" sRGB")?;
        }
        match ORDERS.iter().find(|(code, _)| *code == self.order()) {
            Some((_, order)) => write!(f, " {order}"),
            None => write!(f, " order {:#x}", self.order()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn formats_have_names() {
        for (number, name) in [
            (163, "R8 UNORM"),
            (187, "RGBA8 UNORM"),
            (167, "R32F"),
            (191, "RGBA32F"),
            (157, "RGBA32UI"),
            (205, "RG32I"),
            (223, "RGBA16F"),
            (124, "RGBA16 SNORM"),
            (131, "R8UI"),
            (186, "RGBA4 UNORM"),
        ] {
            assert_eq!(
                PixelFormat(number << 12).to_string(),
                std::format!("{name} RGBA")
            );
        }
        assert_eq!(PixelFormat(22 << 12 | 4).to_string(), "format 22 BGRA");
        assert_eq!(
            PixelFormat(1 << 20 | 187 << 12 | 1).to_string(),
            "RGBA8 UNORM sRGB order 0x1"
        );
    }
}
