// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uniform buffers, attributes, textures, samplers.

use crate::field::Kind::{
    Address, Bool, Enum, Fixed8, Float, Hex, MinusOne, PixelFormat as Format, PowerOfTwo,
    ShiftedAddress, Signed, SignedFixed8, Swizzle, Unsigned,
};
use crate::field::{descriptors, encodings};

encodings! {
    /// Of [`AttributeBuffer::buffer_type`](super::AttributeBuffer::buffer_type).
    attribute_type {
        LINEAR_1D = 1, "1D";
        POWER_OF_TWO_DIVISOR = 2, "1D power of two divisor";
        MODULUS = 3, "1D modulus";
        DIVISOR = 4, "1D divisor";
        LINEAR_3D = 5, "3D linear";
        INTERLEAVED_3D = 6, "3D interleaved";
        PRIMITIVE_INDEX = 7, "1D primitive index buffer";
        CONTINUATION = 32, "continuation";
    }

    /// Of textures and samplers.
    descriptor_type {
        SAMPLER = 1, "sampler";
        TEXTURE = 2, "texture";
    }

    /// Of [`Texture::dimension`](super::Texture::dimension).
    texture_dimension {
        CUBE = 0, "cube";
        ONE = 1, "1D";
        TWO = 2, "2D";
        THREE = 3, "3D";
    }

    /// Of [`Texture::texel_ordering`](super::Texture::texel_ordering) and a target's block format.
    texel_ordering {
        INTERLEAVED = 1, "tiled";
        LINEAR = 2, "linear";
        AFBC = 12, "AFBC";
    }

    /// Of [`Sampler::wrap_s`](super::Sampler::wrap_s) and its like.
    wrap_mode {
        REPEAT = 8, "repeat";
        CLAMP_TO_EDGE = 9, "clamp to edge";
        CLAMP = 10, "clamp";
        CLAMP_TO_BORDER = 11, "clamp to border";
        MIRRORED_REPEAT = 12, "mirrored repeat";
        MIRRORED_CLAMP_TO_EDGE = 13, "mirrored clamp to edge";
        MIRRORED_CLAMP = 14, "mirrored clamp";
        MIRRORED_CLAMP_TO_BORDER = 15, "mirrored clamp to border";
    }

    /// Of [`Sampler::mipmap_mode`](super::Sampler::mipmap_mode).
    mipmap_mode {
        NEAREST = 0, "nearest";
        NONE = 1, "none";
        TRILINEAR = 3, "trilinear";
    }
}

pub(crate) const COMPARE_FUNCTIONS: &[(u32, &str)] = &[
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
    /// An entry of its table.
    UniformBuffer = "Uniform buffer", 2 words {
        /// Number of 16-byte entries.
        entries = "Entries", 0:0, 12, MinusOne;
        pointer = "Pointer", 0:12, 52, ShiftedAddress(4);
    }

    /// Or a compute shader's image.
    Attribute = "Attribute", 2 words {
        buffer_index = "Buffer index", 0:0, 9, Unsigned;
        offset_enable = "Offset enable", 0:9, 1, Bool;
        format = "Format", 0:10, 22, Format;
        offset = "Offset", 1:0, 32, Signed;
    }

    /// 3D types have an [`AttributeBuffer3d`], too.
    AttributeBuffer = "Attribute buffer", 4 words {
        buffer_type = "Type", 0:0, 6, Enum(attribute_type::NAMES);
        pointer = "Pointer", 0:6, 50, ShiftedAddress(6);
        divisor = "Divisor", 1:24, 8, Hex;
        stride = "Stride", 2:0, 32, Unsigned;
        size = "Size", 3:0, 32, Unsigned;
    }

    /// An image's second record.
    AttributeBuffer3d = "Attribute buffer continuation 3D", 4 words {
        record_type = "Type", 0:0, 6, Enum(attribute_type::NAMES);
        s_dimension = "S dimension", 0:16, 16, MinusOne;
        t_dimension = "T dimension", 1:0, 16, MinusOne;
        r_dimension = "R dimension", 1:16, 16, MinusOne;
        row_stride = "Row stride", 2:0, 32, Unsigned;
        slice_stride = "Slice stride", 3:0, 32, Unsigned;
    }

    /// With texels in [`Surface`]s.
    Texture = "Texture", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(descriptor_type::NAMES);
        dimension = "Dimension", 0:4, 2, Enum(texture_dimension::NAMES);
        sample_corner_position = "Sample corner position", 0:8, 1, Bool;
        normalize_coordinates = "Normalize coordinates", 0:9, 1, Bool;
        format = "Format", 0:10, 22, Format;
        width = "Width", 1:0, 16, MinusOne;
        height = "Height", 1:16, 16, MinusOne;
        swizzle = "Swizzle", 2:0, 12, Swizzle;
        texel_ordering = "Texel ordering", 2:12, 4, Enum(texel_ordering::NAMES);
        levels = "Levels", 2:16, 5, MinusOne;
        minimum_level = "Minimum level", 2:24, 5, Unsigned;
        minimum_lod = "Minimum LOD", 3:0, 13, Fixed8;
        sample_count = "Sample count", 3:13, 3, PowerOfTwo;
        maximum_lod = "Maximum LOD", 3:16, 13, Fixed8;
        surfaces = "Surfaces", 4:0, 64, Address;
        array_size = "Array size", 6:0, 16, MinusOne;
        depth = "Depth", 7:0, 16, MinusOne;
    }

    /// A level of a layer.
    Surface = "Surface with stride", 4 words {
        pointer = "Pointer", 0:0, 64, Address;
        row_stride = "Row stride", 2:0, 32, Signed;
        surface_stride = "Surface stride", 3:0, 32, Signed;
    }

    /// How a texture is sampled.
    Sampler = "Sampler", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(descriptor_type::NAMES);
        wrap_r = "Wrap mode R", 0:8, 4, Enum(wrap_mode::NAMES);
        wrap_t = "Wrap mode T", 0:12, 4, Enum(wrap_mode::NAMES);
        wrap_s = "Wrap mode S", 0:16, 4, Enum(wrap_mode::NAMES);
        round_to_nearest_even = "Round to nearest even", 0:21, 1, Bool;
        srgb_override = "sRGB override", 0:22, 1, Bool;
        seamless_cube_map = "Seamless cube map", 0:23, 1, Bool;
        clamp_integer_coordinates = "Clamp integer coordinates", 0:24, 1, Bool;
        normalized_coordinates = "Normalized coordinates", 0:25, 1, Bool;
        clamp_integer_array_indices = "Clamp integer array indices", 0:26, 1, Bool;
        minify_nearest = "Minify nearest", 0:27, 1, Bool;
        magnify_nearest = "Magnify nearest", 0:28, 1, Bool;
        magnify_cutoff = "Magnify cutoff", 0:29, 1, Bool;
        mipmap_mode = "Mipmap mode", 0:30, 2, Enum(mipmap_mode::NAMES);
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

impl AttributeBuffer {
    /// Whether it continues in an [`AttributeBuffer3d`].
    pub fn is_3d(&self) -> bool {
        matches!(
            self.buffer_type() as u32,
            attribute_type::LINEAR_3D | attribute_type::INTERLEAVED_3D
        )
    }
}

impl Attribute {
    /// Offset in bytes; 0 unless enabled.
    pub fn enabled_offset(&self) -> i64 {
        match self.offset_enable() {
            1 => self.offset() as i64,
            _ => 0,
        }
    }
}

impl Texture {
    /// Number of [`Surface`] records.
    pub fn surface_count(&self) -> u64 {
        let faces = match self.dimension() as u32 {
            texture_dimension::CUBE => 6,
            _ => 1,
        };
        self.levels() * self.array_size() * self.sample_count() * faces
    }
}
