// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors of drawing, with Mesa's names for v6 and v7.

use crate::field::Kind::{
    Address, Bool, Enum, Float, Hex, MinusOne, PowerOfTwo, Signed, Swizzle, Unsigned,
};
use crate::field::{descriptors, encodings};

/// Of fragment jobs, in pixels.
pub const TILE_SIDE: u32 = 16;
/// In bytes, from a framebuffer to [`RenderTarget`].
pub const RENDER_TARGET_OFFSET: u64 = 128;
/// In bytes, to the state that hardware, or the model, keeps.
pub const TILER_STATE_OFFSET: u64 = 128;

const DRAW_MODES: &[(u32, &str)] = &[
    (0, "none"),
    (1, "points"),
    (2, "lines"),
    (4, "line strip"),
    (6, "line loop"),
    (8, "triangles"),
    (10, "triangle strip"),
    (12, "triangle fan"),
    (13, "polygon"),
    (14, "quads"),
];
const FRAME_SHADER_MODES: &[(u32, &str)] = &[
    (0, "never"),
    (1, "always"),
    (2, "intersect"),
    (3, "early ZS always"),
];
const FUNCTIONS: &[(u32, &str)] = &[(0, "never"), (7, "always")];
const MSAA: &[(u32, &str)] = &[
    (0, "single"),
    (1, "average"),
    (2, "multiple"),
    (3, "layered"),
];
encodings! {
    /// Of [`Blend::mode`](super::Blend::mode).
    blend_mode {
        SHADER = 0, "shader";
        OPAQUE = 1, "opaque";
        FIXED_FUNCTION = 2, "fixed-function";
        OFF = 3, "off";
    }
}

descriptors! {
    /// 40 bytes into an indexed vertex job.
    Primitive = "Primitive", 6 words {
        draw_mode = "Draw mode", 0:0, 8, Enum(DRAW_MODES);
        index_type = "Index type", 0:8, 3, Unsigned;
        point_sizes = "Point size array format", 0:11, 2, Unsigned;
        first_provoking_vertex = "First provoking vertex", 0:15, 1, Bool;
        secondary_shader = "Secondary shader", 0:18, 1, Bool;
        primitive_restart = "Primitive restart", 0:19, 2, Unsigned;
        base_vertex = "Base vertex offset", 1:0, 32, Signed;
        index_count = "Index count", 3:0, 32, MinusOne;
    }

    /// 72 bytes into an indexed vertex job.
    TilerPointer = "Tiler pointer", 2 words {
        context = "Address", 0:0, 64, Address;
    }

    /// The tiler's framebuffer. State of hardware, or the model, from word 32 on.
    TilerContext = "Tiler context", 48 words {
        polygon_list = "Polygon list", 0:0, 64, Address;
        /// Of Valhall; Bifrost has it in each primitive.
        first_provoking_vertex = "First provoking vertex", 2:18, 1, Bool;
        heap = "Heap", 6:0, 64, Address;
        mark = "Model's mark", 32:0, 32, Hex;
        draws = "Model's number of draws", 33:0, 32, Unsigned;
        vertices = "Model's bytes of vertices", 34:0, 32, Unsigned;
    }

    /// Memory of the tiler.
    TilerHeap = "Tiler heap", 8 words {
        bottom = "Bottom", 4:0, 64, Address;
        top = "Top", 6:0, 64, Address;
    }

    /// A draw descriptor's first word.
    DrawFlags = "Draw flags", 1 words {
        occlusion_query = "Occlusion query", 0:3, 2, Unsigned;
        cull = "Cull", 0:6, 2, Hex;
    }

    /// For vertices' two shaders.
    VertexState = "Renderer state, vertices", 16 words {
        shader = "Shader", 0:0, 64, Address;
        sampler_count = "Sampler count", 2:0, 16, Unsigned;
        texture_count = "Texture count", 2:16, 16, Unsigned;
        attribute_count = "Attribute count", 3:0, 16, Unsigned;
        varying_count = "Varying count", 3:16, 16, Unsigned;
        uniform_buffer_count = "Uniform buffer count", 4:0, 8, Unsigned;
        uniform_count = "Uniform count", 12:15, 7, Unsigned;
        secondary_uniform_count = "Secondary uniform count", 13:15, 7, Unsigned;
        secondary_shader = "Secondary shader", 14:0, 64, Address;
    }

    /// Blend descriptors follow.
    FragmentState = "Renderer state, fragments", 16 words {
        shader = "Shader", 0:0, 64, Address;
        sampler_count = "Sampler count", 2:0, 16, Unsigned;
        texture_count = "Texture count", 2:16, 16, Unsigned;
        varying_count = "Varying count", 3:16, 16, Unsigned;
        uniform_buffer_count = "Uniform buffer count", 4:0, 8, Unsigned;
        depth_source = "Depth source", 4:8, 2, Unsigned;
        modifies_coverage = "Shader modifies coverage", 4:16, 1, Bool;
        stencil_from_shader = "Stencil from shader", 4:28, 1, Bool;
        sample_mask = "Sample mask", 8:0, 16, Hex;
        multisample = "Multisample enable", 8:16, 1, Bool;
        per_sample = "Evaluate per-sample", 8:18, 1, Bool;
        depth_function = "Depth function", 8:24, 3, Enum(FUNCTIONS);
        depth_write = "Depth write mask", 8:27, 1, Bool;
        near_discard = "Fixed-function near discard", 8:28, 1, Bool;
        far_discard = "Fixed-function far discard", 8:29, 1, Bool;
        stencil = "Stencil enable", 9:16, 1, Bool;
        alpha_to_coverage = "Alpha-to-coverage", 9:17, 1, Bool;
        preload = "Preload", 12:0, 15, Hex;
        uniform_count = "Uniform count", 12:15, 7, Unsigned;
        message_type = "Message preload 1 type", 15:0, 4, Unsigned, since V7;
        /// In texture lookups, 2:0 are the varying, 4:3 the texture.
        message_index = "Message preload 1 indices", 15:4, 5, Hex, since V7;
        message_half = "Message preload 1 half precision", 15:9, 2, Unsigned, since V7;
        message_components = "Message preload 1 components", 15:11, 2, MinusOne, since V7;
        message_zero_lod = "Message preload 1 zero LOD", 15:15, 1, Bool, since V7;
        message_2_type = "Message preload 2 type", 15:16, 4, Unsigned, since V7;
    }

    /// The shader passes words 2 and 3 to `BLEND`.
    Blend = "Blend", 4 words {
        load_destination = "Load destination", 0:0, 1, Bool;
        alpha_to_one = "Alpha to one", 0:8, 1, Bool;
        enable = "Enable", 0:9, 1, Bool;
        srgb = "sRGB", 0:10, 1, Bool;
        equation = "Equation", 1:0, 32, Hex;
        mode = "Mode", 2:0, 2, Enum(blend_mode::NAMES);
        /// Alpha 0 is not written.
        alpha_zero_nop = "Alpha zero NOP", 2:5, 1, Bool;
        /// Alpha 1 is written without blending.
        alpha_one_store = "Alpha one store", 2:6, 1, Bool;
        target = "Render target", 2:16, 4, Unsigned;
        conversion = "Conversion", 3:0, 32, Hex;
    }

    /// Limits of what is drawn.
    Viewport = "Viewport", 8 words {
        minimum_z = "Minimum Z", 4:0, 32, Float;
        maximum_z = "Maximum Z", 5:0, 32, Float;
        scissor_minimum_x = "Scissor minimum X", 6:0, 16, Unsigned;
        scissor_minimum_y = "Scissor minimum Y", 6:16, 16, Unsigned;
        scissor_maximum_x = "Scissor maximum X", 7:0, 16, Unsigned;
        scissor_maximum_y = "Scissor maximum Y", 7:16, 16, Unsigned;
    }

    /// 32 bytes into a fragment job. Bounds in tiles of 16 by 16 pixels, maximum included.
    FragmentPayload = "Fragment job payload", 8 words {
        minimum_x = "Bound minimum X", 0:0, 12, Unsigned;
        minimum_y = "Bound minimum Y", 0:16, 12, Unsigned;
        maximum_x = "Bound maximum X", 1:0, 12, Unsigned;
        maximum_y = "Bound maximum Y", 1:16, 12, Unsigned;
        has_tile_map = "Has tile enable map", 1:31, 1, Bool;
        framebuffer = "Framebuffer", 2:0, 64, Hex;
    }

    /// Render targets begin at byte 128.
    FramebufferParameters = "Framebuffer parameters", 16 words {
        pre_frame_0 = "Pre frame 0", 0:0, 3, Enum(FRAME_SHADER_MODES);
        pre_frame_1 = "Pre frame 1", 0:3, 3, Enum(FRAME_SHADER_MODES);
        post_frame = "Post frame", 0:6, 3, Enum(FRAME_SHADER_MODES);
        frame_shaders = "Frame shader DCDs", 6:0, 64, Address;
        width = "Width", 8:0, 16, MinusOne;
        height = "Height", 8:16, 16, MinusOne;
        minimum_x = "Bound min X", 9:0, 16, Unsigned;
        minimum_y = "Bound min Y", 9:16, 16, Unsigned;
        maximum_x = "Bound max X", 10:0, 16, Unsigned;
        maximum_y = "Bound max Y", 10:16, 16, Unsigned;
        sample_count = "Sample count", 11:0, 3, PowerOfTwo;
        downsampling = "Downsampling scales", 11:13, 6, Hex;
        target_count = "Render target count", 11:19, 4, MinusOne;
        stencil_use = "S write, preload and unload enable", 12:8, 3, Hex;
        depth_use = "Z write, preload and unload enable", 12:18, 3, Hex;
        extension = "Has ZS CRC extension", 12:21, 1, Bool;
        crc_use = "CRC read and write enable", 12:30, 2, Hex;
        tiler = "Tiler", 14:0, 64, Address;
    }

    /// One colour buffer.
    RenderTarget = "Render target", 16 words {
        yuv = "YUV enable", 0:24, 1, Bool;
        internal_format = "Internal format", 0:26, 6, Unsigned;
        write_enable = "Write enable", 1:0, 1, Bool;
        writeback_format = "Writeback format", 1:3, 5, Unsigned;
        /// v7: arrangement. v6: byte order (low half), arrangement (high half).
        block_format = "Writeback block format", 1:8, 4, Hex;
        msaa = "Writeback MSAA", 1:12, 2, Enum(MSAA);
        srgb = "sRGB", 1:14, 1, Bool;
        swizzle = "Swizzle", 1:16, 12, Swizzle;
        base = "Base", 8:0, 64, Address;
        row_stride = "Row stride", 10:0, 32, Unsigned;
        clear_low = "Clear colours 0 and 1", 12:0, 64, Hex;
        clear_high = "Clear colours 2 and 3", 14:0, 64, Hex;
    }
}
