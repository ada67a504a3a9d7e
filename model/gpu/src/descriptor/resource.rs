// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of memory that shaders address by index: attributes, textures, samplers.

use std::fmt;

use super::Kind::{
    Address, Bool, Enum, Fixed8, Float, Hex, MinusOne, PixelFormat as Format, PowerOfTwo,
    ShiftedAddress, Signed, SignedFixed8, Swizzle, Unsigned,
};
use super::descriptors;

const ATTRIBUTE_TYPES: &[(u32, &str)] = &[
    (1, "1D"),
    (2, "1D power of two divisor"),
    (3, "1D modulus"),
    (4, "1D divisor"),
    (5, "3D linear"),
    (6, "3D interleaved"),
    (7, "1D primitive index buffer"),
    (32, "continuation"),
];

const TEXTURE_DIMENSIONS: &[(u32, &str)] = &[(0, "cube"), (1, "1D"), (2, "2D"), (3, "3D")];
const TEXEL_ORDERINGS: &[(u32, &str)] = &[(1, "tiled"), (2, "linear"), (12, "AFBC")];
const WRAP_MODES: &[(u32, &str)] = &[
    (8, "repeat"),
    (9, "clamp to edge"),
    (11, "clamp to border"),
    (12, "mirrored repeat"),
    (13, "mirrored clamp to edge"),
    (15, "mirrored clamp to border"),
];
const MIPMAP_MODES: &[(u32, &str)] = &[(0, "nearest"), (1, "none"), (3, "trilinear")];
const COMPARE_FUNCTIONS: &[(u32, &str)] = &[
    (0, "never"),
    (1, "less"),
    (2, "equal"),
    (3, "less or equal"),
    (4, "greater"),
    (5, "not equal"),
    (6, "greater or equal"),
    (7, "always"),
];

descriptors! {
    /// One attribute, or the image with the same number in a compute shader.
    Attribute = "Attribute", 2 words {
        buffer_index = "Buffer index", 0:0, 9, Unsigned;
        offset_enable = "Offset enable", 0:9, 1, Bool;
        format = "Format", 0:10, 22, Format;
        offset = "Offset", 1:0, 32, Signed;
    }

    /// Memory of attributes. Types of 3D memory continue in an [`AttributeBuffer3d`].
    AttributeBuffer = "Attribute buffer", 4 words {
        buffer_type = "Type", 0:0, 6, Enum(ATTRIBUTE_TYPES);
        pointer = "Pointer", 0:6, 50, ShiftedAddress(6);
        divisor = "Divisor", 1:24, 8, Hex;
        stride = "Stride", 2:0, 32, Unsigned;
        size = "Size", 3:0, 32, Unsigned;
    }

    /// Second record of an image's attribute buffer.
    AttributeBuffer3d = "Attribute buffer continuation 3D", 4 words {
        record_type = "Type", 0:0, 6, Enum(ATTRIBUTE_TYPES);
        s_dimension = "S dimension", 0:16, 16, MinusOne;
        t_dimension = "T dimension", 1:0, 16, MinusOne;
        r_dimension = "R dimension", 1:16, 16, MinusOne;
        row_stride = "Row stride", 2:0, 32, Unsigned;
        slice_stride = "Slice stride", 3:0, 32, Unsigned;
    }

    /// One texture; its texels are in [`Surface`]s.
    Texture = "Texture", 8 words {
        descriptor_type = "Type", 0:0, 4, Unsigned;
        dimension = "Dimension", 0:4, 2, Enum(TEXTURE_DIMENSIONS);
        sample_corner_position = "Sample corner position", 0:8, 1, Bool;
        normalize_coordinates = "Normalize coordinates", 0:9, 1, Bool;
        format = "Format", 0:10, 22, Format;
        width = "Width", 1:0, 16, MinusOne;
        height = "Height", 1:16, 16, MinusOne;
        swizzle = "Swizzle", 2:0, 12, Swizzle;
        texel_ordering = "Texel ordering", 2:12, 4, Enum(TEXEL_ORDERINGS);
        levels = "Levels", 2:16, 5, MinusOne;
        minimum_level = "Minimum level", 2:24, 5, Unsigned;
        minimum_lod = "Minimum LOD", 3:0, 13, Fixed8;
        sample_count = "Sample count", 3:13, 3, PowerOfTwo;
        maximum_lod = "Maximum LOD", 3:16, 13, Fixed8;
        surfaces = "Surfaces", 4:0, 64, Address;
        array_size = "Array size", 6:0, 16, MinusOne;
        depth = "Depth", 7:0, 16, MinusOne;
    }

    /// Memory of one level of one layer of a texture.
    Surface = "Surface with stride", 4 words {
        pointer = "Pointer", 0:0, 64, Address;
        row_stride = "Row stride", 2:0, 32, Signed;
        surface_stride = "Surface stride", 3:0, 32, Signed;
    }

    /// How a texture is sampled.
    Sampler = "Sampler", 8 words {
        descriptor_type = "Type", 0:0, 4, Unsigned;
        wrap_r = "Wrap mode R", 0:8, 4, Enum(WRAP_MODES);
        wrap_t = "Wrap mode T", 0:12, 4, Enum(WRAP_MODES);
        wrap_s = "Wrap mode S", 0:16, 4, Enum(WRAP_MODES);
        round_to_nearest_even = "Round to nearest even", 0:21, 1, Bool;
        srgb_override = "sRGB override", 0:22, 1, Bool;
        seamless_cube_map = "Seamless cube map", 0:23, 1, Bool;
        clamp_integer_coordinates = "Clamp integer coordinates", 0:24, 1, Bool;
        normalized_coordinates = "Normalized coordinates", 0:25, 1, Bool;
        clamp_integer_array_indices = "Clamp integer array indices", 0:26, 1, Bool;
        minify_nearest = "Minify nearest", 0:27, 1, Bool;
        magnify_nearest = "Magnify nearest", 0:28, 1, Bool;
        magnify_cutoff = "Magnify cutoff", 0:29, 1, Bool;
        mipmap_mode = "Mipmap mode", 0:30, 2, Enum(MIPMAP_MODES);
        minimum_lod = "Minimum LOD", 1:0, 13, Fixed8;
        compare_function = "Compare function", 1:13, 3, Enum(COMPARE_FUNCTIONS);
        maximum_lod = "Maximum LOD", 1:16, 13, Fixed8;
        lod_bias = "LOD bias", 2:0, 16, SignedFixed8;
        maximum_anisotropy = "Maximum anisotropy", 2:16, 5, MinusOne;
        border_red = "Border colour R", 4:0, 32, Float;
        border_green = "Border colour G", 5:0, 32, Float;
        border_blue = "Border colour B", 6:0, 32, Float;
        border_alpha = "Border colour A", 7:0, 32, Float;
    }
}

/// The 22-bit pixel format of attributes, textures and conversions.
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

    /// True for sRGB encoded colours.
    pub const fn is_srgb(self) -> bool {
        self.0 >> 20 & 1 != 0
    }

    /// Component order (v7) or swizzle (v6).
    pub const fn order(self) -> u32 {
        self.0 & 0xfff
    }

    /// Name of the memory format: `RGBA8 UNORM`. Formats that compute never uses have none.
    pub fn name(self) -> Option<String> {
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
            return Some(special.into());
        }
        let kind = match number {
            96..=127 => " SNORM",
            128..=159 => "UI",
            160..=191 => " UNORM",
            192..=223 => "I",
            _ => return None,
        };
        let channels = ["R", "RG", "RGB", "RGBA"][(number >> 3 & 3) as usize];
        let width = match number & 7 {
            7 if kind == " UNORM" => return Some(format!("{channels}32F")),
            code @ 1..=5 => 1 << code,
            _ => return None,
        };
        Some(format!("{channels}{width}{kind}"))
    }

    pub(super) fn format(self, f: &mut dyn fmt::Write) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(&name)?,
            None => write!(f, "format {}", self.number())?,
        }
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
            assert_eq!(PixelFormat(number << 12).name().as_deref(), Some(name));
        }
        assert_eq!(PixelFormat(22 << 12).name(), None);
    }
}
