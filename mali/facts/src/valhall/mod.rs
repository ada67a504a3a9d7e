// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valhall's resources and compute jobs.
//!
//! Fields that only architecture 9 or 10 has say so. Source: Mesa's `v9.xml`, `v10.xml`.

pub mod drawing;
mod walk;

use crate::field::Kind::{
    Address, Bool, Enum, Fixed8, Float, Hex, MinusOne, PixelFormat as Format, PowerOfTwo, Signed,
    SignedFixed8, Swizzle, Unsigned,
};
use crate::field::{descriptors, encodings};
use crate::resource::{COMPARE_FUNCTIONS, mipmap_mode, texture_dimension, wrap_mode};
use crate::state::workgroup_bytes;
use crate::{Layout, descriptor_address};

pub(crate) use walk::compute;
pub use walk::{COMPUTE_BYTES, LONGEST_TABLE, environment};

encodings! {
    /// A descriptor's lowest bits.
    descriptor_type {
        NONE = 0, "none";
        SAMPLER = 1, "sampler";
        TEXTURE = 2, "texture";
        ATTRIBUTE = 5, "attribute";
        DEPTH_STENCIL = 7, "depth/stencil";
        SHADER = 8, "shader";
        BUFFER = 9, "buffer";
        PLANE = 10, "plane";
    }

    /// Of [`ShaderProgram::stage`](crate::valhall::ShaderProgram::stage).
    stage {
        COMPUTE = 1, "compute";
        FRAGMENT = 2, "fragment";
        VERTEX = 3, "vertex";
    }

    /// Of [`Plane::clump_ordering`](crate::valhall::Plane::clump_ordering).
    clump_ordering {
        TILED = 1, "tiled";
        LINEAR = 2, "linear";
    }

    /// Of [`ShaderProgram::subnormals`](crate::valhall::ShaderProgram::subnormals).
    subnormals {
        KEPT = 0, "kept";
        DX11 = 1, "DX11";
        FLUSHED = 2, "always flushed";
        ABRUPT = 3, "abrupt";
    }

    /// Of [`ShaderProgram::register_allocation`](crate::valhall::ShaderProgram::register_allocation).
    register_allocation {
        SIXTY_FOUR = 0, "64 per thread";
        THIRTY_TWO = 2, "32 per thread";
    }

    /// Of [`LocalStorage::tls_mode`](crate::valhall::LocalStorage::tls_mode).
    address_mode {
        FLAT = 0, "flat";
        PACKED = 1, "packed";
    }
}

const TYPES: &[(u32, &str)] = descriptor_type::NAMES;
const BUFFER_TYPES: &[(u32, &str)] = &[
    (1, "simple"),
    (2, "tiler heap"),
    (3, "structure"),
    (4, "vertex packet"),
];
const PLANE_TYPES: &[(u32, &str)] = &[
    (0, "null"),
    (1, "generic"),
    (4, "ASTC 2D"),
    (5, "ASTC 3D"),
    (6, "AFBC"),
    (8, "chroma of 2 planes"),
    (10, "AFRC"),
    (11, "AFRC, chroma of 2 planes"),
];
const ATTRIBUTE_TYPES: &[(u32, &str)] = &[
    (1, "1D"),
    (2, "1D power of two divisor"),
    (3, "1D divisor"),
    (5, "1D primitive index buffer"),
    (6, "vertex packet"),
];
const AXES: &[(u32, &str)] = &[(0, "x"), (1, "y"), (2, "z")];
const REDUCTIONS: &[(u32, &str)] = &[(0, "average"), (1, "minimum"), (2, "maximum")];

#[rustfmt::skip]
const CLUMP_FORMATS: &[(u32, &str)] = &[
    (0, "RAW8"), (1, "RAW16"), (2, "RAW32"), (3, "RAW64"), (4, "RAW128"), (8, "RAW24"), (9, "RAW48"), (10, "RAW96"), (16,
    "D32X32"), (17, "X32D32"), (18, "X32S8X24"), (19, "X24S8X32"), (20, "X24S8"), (21, "S8X24"), (22, "S8"), (24, "L4A4"),
    (25, "L8A8"), (26, "A8"), (32, "ETC2 RGB8"), (33, "ETC2 R11 UNORM"), (34, "ETC2 R11 SNORM"), (35, "ETC2 RG11 UNORM"),
    (36, "ETC2 RG11 SNORM"), (37, "ETC2 RGBA8"), (38, "ETC2 RGB8A1"), (48, "BC1 UNORM"), (49, "BC2 UNORM"), (50, "BC3 UNORM"), (51, "BC4 UNORM"), (52, "BC4 SNORM"), (53, "BC5 UNORM"), (54, "BC5 SNORM"), (55, "BC6H UF16"), (56, "BC6H SF16"), (57, "BC7 UNORM"), (64, "Y8 UV8 422"), (65, "Y10 UV10 422"), (67, "Y16 UV16 422"), (72, "Y8 UV8 420"), (73,
    "Y10 UV10 420"), (75, "Y16 UV16 420"), (76, "YUV420 10x6"), (120, "RAW10"), (121, "RAW12"), (124, "R8G8B8G8"), (125,
    "G8R8G8B8"),
];

descriptors! {
    /// Memory, or a table of descriptors.
    Resource = "Resource", 4 words {
        address = "Address", 0:0, 56, Address;
        contains_descriptors = "Contains descriptors", 1:24, 1, Bool;
        size = "Size", 2:0, 64, Unsigned;
    }

    /// Memory with a handle.
    Buffer = "Buffer", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        buffer_type = "Buffer type", 0:4, 4, Enum(BUFFER_TYPES);
        size = "Size", 1:0, 32, Unsigned;
        address = "Address", 2:0, 64, Address;
        stride = "Stride", 4:0, 32, Unsigned;
    }

    /// Layout in a buffer.
    Attribute = "Attribute", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        attribute_type = "Attribute type", 0:4, 4, Enum(ATTRIBUTE_TYPES);
        offset_enable = "Offset enable", 0:8, 1, Bool;
        format = "Format", 0:10, 22, Format;
        table = "Table", 1:0, 6, Unsigned;
        frequency = "Frequency", 1:6, 2, Enum(&[(0, "vertex"), (1, "instance")]);
        divisor_r = "Divisor R", 1:24, 5, Unsigned;
        divisor_e = "Divisor E", 1:29, 1, Unsigned;
        offset = "Offset", 2:0, 32, Signed;
        buffer_index = "Buffer index", 3:0, 32, Unsigned;
        stride = "Stride", 4:0, 32, Unsigned;
        divisor_d = "Divisor D", 5:0, 32, Unsigned;
    }

    /// With texels in [`Plane`]s.
    Texture = "Texture", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        dimension = "Dimension", 0:4, 2, Enum(texture_dimension::NAMES);
        sample_corner_position = "Sample corner position", 0:8, 1, Bool;
        normalize_coordinates = "Normalize coordinates", 0:9, 1, Bool;
        format = "Format", 0:10, 22, Format;
        width = "Width", 1:0, 16, MinusOne;
        height = "Height", 1:16, 16, MinusOne;
        swizzle = "Swizzle", 2:0, 12, Swizzle;
        texel_interleave = "Texel interleave", 2:12, 1, Bool;
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
    Plane = "Plane", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        plane_type = "Plane type", 0:4, 4, Enum(PLANE_TYPES);
        clump_ordering = "Clump ordering", 0:8, 4, Enum(clump_ordering::NAMES);
        clump_format = "Clump format", 0:24, 8, Enum(CLUMP_FORMATS);
        size = "Size", 1:0, 32, Unsigned;
        pointer = "Pointer", 2:0, 64, Address;
        row_stride = "Row stride", 4:0, 32, Unsigned;
        slice_stride = "Slice stride", 6:0, 32, Signed;
        width = "Width", 7:0, 16, MinusOne, since V10;
        height = "Height", 7:16, 16, MinusOne, since V10;
    }

    /// How a texture is sampled.
    Sampler = "Sampler", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        reduction = "Reduction", 0:4, 2, Enum(REDUCTIONS), since V10;
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
        lod_algorithm = "LOD algorithm", 2:24, 2, Enum(&[(0, "isotropic"), (3, "anisotropic")]);
        border_red = "Border colour R", 4:0, 32, Float;
        border_green = "Border colour G", 5:0, 32, Float;
        border_blue = "Border colour B", 6:0, 32, Float;
        border_alpha = "Border colour A", 7:0, 32, Float;
    }

    /// Code, and threads' start.
    ShaderProgram = "Shader program", 8 words {
        descriptor_type = "Type", 0:0, 4, Enum(TYPES);
        stage = "Stage", 0:4, 4, Enum(stage::NAMES);
        warp_limit = "Vertex warp limit", 0:8, 2, Enum(&[(0, "full"), (1, "half"), (2, "quarter")]);
        suppress_nan = "Suppress NaN", 0:16, 1, Bool;
        subnormals = "Flush to zero mode", 0:17, 2, Enum(subnormals::NAMES);
        suppress_inf = "Suppress Inf", 0:19, 1, Bool;
        requires_helpers = "Requires helper threads", 0:28, 1, Bool;
        contains_jump = "Shader contains JUMP_EX", 0:29, 1, Bool;
        register_allocation = "Register allocation", 0:30, 2, Enum(register_allocation::NAMES);
        /// Bit n sets register 48 + n.
        preload = "Preload", 1:0, 16, Hex;
        binary = "Binary", 2:0, 64, Address;
    }

    /// Thread and work group storage.
    LocalStorage = "Local storage", 8 words {
        /// A thread has 16 bytes, shifted left by this, with a base.
        tls_size = "TLS size", 0:0, 5, Unsigned;
        /// 1 << 31: no memory.
        wls_instances = "WLS instances", 1:0, 5, PowerOfTwo;
        wls_size_base = "WLS size base", 1:5, 2, Unsigned;
        wls_size_scale = "WLS size scale", 1:8, 5, Unsigned;
        tls_base = "TLS base pointer", 2:0, 48, Address;
        tls_mode = "TLS address mode", 3:28, 4, Enum(address_mode::NAMES);
        wls_base = "WLS base pointer", 4:0, 64, Address;
    }

    /// A shader's start.
    ShaderEnvironment = "Shader environment", 16 words {
        attribute_offset = "Attribute offset", 0:0, 32, Unsigned;
        uniform_count = "FAU count", 1:0, 8, Unsigned;
        /// [`Resource`]s, counted by the low six bits.
        resources = "Resources", 8:0, 64, Address;
        shader = "Shader", 10:0, 64, Address;
        storage = "Thread storage", 12:0, 64, Address;
        uniforms = "FAU", 14:0, 64, Address;
    }

    /// Before a [`ShaderEnvironment`].
    ComputePayload = "Compute payload", 8 words {
        size_x = "Work group size X", 0:0, 10, MinusOne;
        size_y = "Work group size Y", 0:10, 10, MinusOne;
        size_z = "Work group size Z", 0:20, 10, MinusOne;
        may_merge = "Allow merging work groups", 0:31, 1, Bool;
        task_increment = "Task increment", 1:0, 14, Unsigned;
        task_axis = "Task axis", 1:14, 2, Enum(AXES);
        count_x = "Work group count X", 2:0, 32, Unsigned;
        count_y = "Work group count Y", 3:0, 32, Unsigned;
        count_z = "Work group count Z", 4:0, 32, Unsigned;
        offset_x = "Offset X", 5:0, 32, Unsigned;
        offset_y = "Offset Y", 6:0, 32, Unsigned;
        offset_z = "Offset Z", 7:0, 32, Unsigned;
    }

    /// LEA_TEX's, for converting stores.
    Conversion = "Internal conversion", 1 words {
        format = "Memory format", 0:0, 22, Format;
        raw = "Raw", 0:22, 1, Bool;
        register_format = "Register format", 0:24, 3,
            Enum(&[(0, "f16"), (1, "f32"), (2, "i32"), (3, "u32"), (4, "i16"), (5, "u16")]);
    }
}

/// Descriptors in place of Bifrost's.
pub static LAYOUTS: &[&Layout] = &[
    Resource::LAYOUT,
    Buffer::LAYOUT,
    Attribute::LAYOUT,
    Texture::LAYOUT,
    Plane::LAYOUT,
    Sampler::LAYOUT,
    ShaderProgram::LAYOUT,
    LocalStorage::LAYOUT,
    ShaderEnvironment::LAYOUT,
    ComputePayload::LAYOUT,
    Conversion::LAYOUT,
    drawing::VertexPrimitive::LAYOUT,
    drawing::VertexAllocation::LAYOUT,
    drawing::Scissor::LAYOUT,
    drawing::FragmentDraw::LAYOUT,
    drawing::DepthStencil::LAYOUT,
];

impl LocalStorage {
    /// Bytes of storage per thread; 0 for none.
    pub fn tls_bytes(&self) -> u64 {
        match self.tls_base() {
            0 => 0,
            _ => 16 << self.tls_size(),
        }
    }

    /// Bytes of work group storage per instance; 0 for none.
    pub fn wls_bytes(&self) -> u64 {
        let size = (self.wls_size_base(), self.wls_size_scale());
        workgroup_bytes(self.wls_instances(), size)
    }

    /// A packed one lacks its low eight bits.
    pub fn tls_address(&self) -> u64 {
        match self.tls_mode() as u32 {
            address_mode::PACKED => self.tls_base() << 8,
            _ => self.tls_base(),
        }
    }
}

impl ShaderEnvironment {
    /// Counted in pairs of words.
    pub fn uniform_bytes(&self) -> u64 {
        self.uniform_count() * 8
    }

    /// [`ShaderProgram`] at a multiple of 32.
    pub fn program(&self) -> u64 {
        self.shader() & !31
    }

    /// [`LocalStorage`] at a multiple of 64; 0 for none.
    pub fn storage_at(&self) -> u64 {
        descriptor_address(self.storage())
    }

    /// Address and length.
    pub fn resource_list(&self) -> (u64, u64) {
        (descriptor_address(self.resources()), self.resources() & 63)
    }
}

/// The payload's words; pointers to resources, program, storage, uniforms (pairs in 63:56); attributes' offset.
pub fn of_registers(
    payload: [u32; 8],
    pointers: [u64; 4],
    attribute_offset: u32,
) -> (ComputePayload, ShaderEnvironment) {
    let mut environment = ShaderEnvironment { words: [0; 16] };
    let [resources, program, storage, uniforms] = pointers;
    environment.words[0] = attribute_offset;
    environment.words[1] = (uniforms >> 56) as u32;
    let uniforms = uniforms & 0xffff_ffff_ffff;
    let pointers = [resources, program, storage, uniforms];
    for (pair, value) in environment.words[8..].chunks_exact_mut(2).zip(pointers) {
        pair.copy_from_slice(&[value as u32, (value >> 32) as u32]);
    }
    (ComputePayload { words: payload }, environment)
}

impl Texture {
    /// Number of [`Plane`]s.
    pub fn plane_count(&self) -> u64 {
        let faces = match self.dimension() as u32 {
            texture_dimension::CUBE => 6,
            _ => 1,
        };
        self.levels() * self.array_size() * self.sample_count() * faces
    }
}
