// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of memory that shaders address by index: uniform buffers, attributes, textures, samplers.

use crate::field::Kind::{
    Address, Bool, Enum, Fixed8, Float, Hex, MinusOne, PixelFormat as Format, PowerOfTwo,
    ShiftedAddress, Signed, SignedFixed8, Swizzle, Unsigned,
};
use crate::field::descriptors;

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
    /// One entry of the uniform buffer table.
    UniformBuffer = "Uniform buffer", 2 words {
        /// Number of 16-byte entries.
        entries = "Entries", 0:0, 12, MinusOne;
        pointer = "Pointer", 0:12, 52, ShiftedAddress(4);
    }

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

impl UniformBuffer {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.entries() * 16
    }
}
