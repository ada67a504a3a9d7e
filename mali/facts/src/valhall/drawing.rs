// SPDX-License-Identifier: MIT OR Apache-2.0
//! Malloc vertex jobs, as the model reads them; fragment jobs are as Bifrost's.

use super::ShaderEnvironment;
use crate::field::Kind::{Address, Bool, Float, Hex, Signed, Unsigned};
use crate::field::descriptors;

/// [`VertexPrimitive`] in MALLOC_VERTEX jobs.
pub const PRIMITIVE: u64 = 32;
/// [`VertexAllocation`] in MALLOC_VERTEX jobs.
pub const ALLOCATION: u64 = 48;
/// In MALLOC_VERTEX jobs.
pub const TILER_POINTER: u64 = 56;
/// [`Scissor`] in MALLOC_VERTEX jobs.
pub const SCISSOR: u64 = 104;
/// [`FragmentDraw`] in MALLOC_VERTEX jobs, before an environment.
pub const FRAGMENT_DRAW: u64 = 128;
/// After [`FragmentDraw`].
pub const DRAW_ENVIRONMENT: u64 = FragmentDraw::SIZE as u64;
/// In MALLOC_VERTEX jobs.
pub const POSITION_ENVIRONMENT: u64 = 256;
/// In MALLOC_VERTEX jobs.
pub const VARYING_ENVIRONMENT: u64 = POSITION_ENVIRONMENT + ShaderEnvironment::SIZE as u64;

descriptors! {
    /// Of a malloc vertex job.
    VertexPrimitive = "Primitive", 4 words {
        draw_mode = "Draw mode", 0:0, 8, Unsigned;
        index_type = "Index type", 0:8, 3, Unsigned;
        point_sizes = "Point size array format", 0:11, 2, Unsigned;
        primitive_index = "Primitive index enable and writeback", 0:13, 2, Hex;
        low_depth_cull = "Low depth cull", 0:16, 1, Bool;
        high_depth_cull = "High depth cull", 0:17, 1, Bool;
        secondary_shader = "Secondary shader", 0:18, 1, Bool;
        primitive_restart = "Primitive restart", 0:19, 1, Bool;
        layer_or_scissor_array = "Layer index and scissor array enable", 0:20, 2, Hex;
        base_vertex = "Base vertex offset", 1:0, 32, Signed;
        instance_offset = "Instance offset", 2:0, 32, Unsigned;
        index_count = "Index count", 3:0, 32, Unsigned;
    }

    /// Instances, and the heap's data per vertex.
    VertexAllocation = "Allocation", 2 words {
        instances = "Instance count", 0:0, 32, Unsigned;
        /// Bytes: position and attributes.
        packet_stride = "Vertex packet stride", 1:0, 16, Unsigned;
        /// Bytes of a vertex's attributes.
        attribute_stride = "Vertex attribute stride", 1:16, 16, Unsigned;
    }

    /// Pixels, maximum included.
    Scissor = "Scissor", 2 words {
        minimum_x = "Scissor minimum X", 0:0, 16, Unsigned;
        minimum_y = "Scissor minimum Y", 0:16, 16, Unsigned;
        maximum_x = "Scissor maximum X", 1:0, 16, Unsigned;
        maximum_y = "Scissor maximum Y", 1:16, 16, Unsigned;
    }

    /// Its shader's environment follows.
    FragmentDraw = "Draw", 16 words {
        per_sample = "Evaluate per-sample", 0:11, 1, Bool;
        occlusion_query = "Occlusion query", 0:14, 2, Unsigned;
        cull = "Cull", 0:17, 2, Hex;
        multisample = "Multisample enable", 0:19, 1, Bool;
        modifies_coverage = "Shader modifies coverage", 0:20, 1, Bool;
        alpha_to_coverage = "Alpha-to-coverage", 0:22, 1, Bool;
        sample_mask = "Sample mask", 1:0, 16, Hex;
        target_mask = "Render target mask", 1:16, 8, Hex;
        minimum_z = "Minimum Z", 6:0, 32, Float;
        maximum_z = "Maximum Z", 7:0, 32, Float;
        depth_stencil = "Depth/stencil", 10:0, 64, Address;
        /// Counted by the low four bits.
        blend = "Blend", 12:0, 64, Address;
    }

    /// Of a draw.
    DepthStencil = "Depth/stencil", 8 words {
        descriptor_type = "Type", 0:0, 4, Unsigned;
        stencil_from_shader = "Stencil from shader", 0:30, 1, Bool;
        stencil = "Stencil test enable", 0:31, 1, Bool;
        depth_cull = "Depth cull enable", 4:22, 1, Bool;
        depth_source = "Depth source", 4:25, 2, Unsigned;
        depth_write = "Depth write enable", 4:27, 1, Bool;
        depth_bias = "Depth bias enable", 4:28, 1, Bool;
        depth_function = "Depth function", 4:29, 3, Unsigned;
    }
}
