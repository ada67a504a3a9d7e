// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatches of a draw's fragments.

use std::sync::Arc;

use gpureplay_memory::Bus;
use mali_facts::{
    Architecture, BLEND_OFFSET, Blend, Draw, FragmentState, Viewport, clause_address,
    descriptor_address,
};
use mali_shader::{AttributeTable, Dispatch, Fragments, Lookup, Packets, Preload, Stage, Tile};

use super::Job;
use super::framebuffer::Rectangle;
use super::primitive::Placed;
use crate::environment::JobFault;

pub(super) const ALWAYS: u64 = 7;
pub(super) const DEPTH_FROM_SHADER: u64 = 3;
/// Pixel (bit 11) and its coverage (bit 7).
const PRELOADS: u64 = 1 << 11 | 1 << 7;
/// Replaces colour and alpha: source + source * 0, no component masked.
const REPLACE: u64 = 0xf012_2122;
const OFF: [u32; 2] = [3, 0];

pub(crate) struct Shading {
    pub(super) dispatch: Dispatch,
    pub(super) varyings: AttributeTable,
    pub(super) packets: Packets,
    pub(super) preload: Option<Preload>,
    pub(super) blend: [u32; 2],
    pub(crate) positions: u64,
    pub(crate) scissor: Rectangle,
    /// Unbounded if depth discards nothing.
    pub(super) depth: [f32; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Corners {
    pub(crate) vertices: [u32; 3],
    pub(crate) provoking: u32,
}

impl Shading {
    pub(crate) fn read<B: Bus>(job: &Job<'_, B>, at: u64) -> Result<Shading, JobFault> {
        let memory = job.memory;
        let draw = Draw::from_bytes(&memory.bytes(at)?);
        let state_at = descriptor_address(draw.state());
        let state = FragmentState::from_bytes(&memory.bytes(state_at)?);
        let blend = Blend::from_bytes(&memory.bytes(state_at.wrapping_add(BLEND_OFFSET))?);
        let viewport = Viewport::from_bytes(&memory.bytes(draw.viewport() & !31)?);
        job.demand(&[
            (state.multisample() == 0, "several samples"),
            (state.per_sample() == 0, "shading of each sample"),
            (state.sample_mask() & 1 == 1, "a sample mask"),
            (state.depth_function() == ALWAYS, "a depth test"),
            (state.depth_write() == 0, "depth"),
            (
                state.depth_source() != DEPTH_FROM_SHADER,
                "depth from a shader",
            ),
            (state.stencil() == 0, "stencil"),
            (state.stencil_from_shader() == 0, "stencil from a shader"),
            (state.alpha_to_coverage() == 0, "coverage from alpha"),
            (
                state.modifies_coverage() == 0,
                "a shader that changes its coverage",
            ),
            (
                state.preload() & !PRELOADS == 0,
                "something about its fragment that a shader asks for",
            ),
        ])?;
        let mut dispatch = job.dispatch(&draw)?;
        dispatch.grid.shader = clause_address(state.shader());
        dispatch.uniform_buffer_count = state.uniform_buffer_count() as u32;
        dispatch.grid.push_uniform_count = state.uniform_count() as u32;
        dispatch.texture_count = state.texture_count() as u32;
        dispatch.sampler_count = state.sampler_count() as u32;
        let minimum = [viewport.scissor_minimum_x(), viewport.scissor_minimum_y()];
        let maximum = [viewport.scissor_maximum_x(), viewport.scissor_maximum_y()];
        let float = |bits: u64| f32::from_bits(bits as u32);
        Ok(Shading {
            dispatch,
            varyings: AttributeTable {
                descriptors: draw.varyings(),
                count: state.varying_count() as u32,
                buffers: draw.varying_buffers(),
            },
            packets: Packets::default(),
            preload: preload(job, &state)?,
            blend: blend_words(job, &blend)?,
            positions: draw.position(),
            scissor: Rectangle {
                start: minimum.map(|v| v as u32),
                end: maximum.map(|v| v as u32 + 1),
            },
            depth: [
                match state.near_discard() {
                    1 => float(viewport.minimum_z()),
                    _ => f32::NEG_INFINITY,
                },
                match state.far_discard() {
                    1 => float(viewport.maximum_z()),
                    _ => f32::INFINITY,
                },
            ],
        })
    }

    /// False: it would need clipping.
    pub(crate) fn shows(&self, placed: &Placed) -> bool {
        self.depth[0] <= placed.depth[0] && placed.depth[1] <= self.depth[1]
    }

    pub(crate) fn shade<B: Bus>(
        &self,
        job: &Job<'_, B>,
        part: &Rectangle,
        (placed, corners): (&Placed, Corners),
        everywhere: bool,
        tile: &Arc<Tile>,
    ) -> Result<(), JobFault> {
        let [columns, lines] = part.size();
        let mut dispatch = self.dispatch.clone();
        dispatch.grid.workgroup_count = [columns, lines, 1];
        let stage = Stage::Fragments(Arc::new(Fragments {
            origin: part.start,
            triangle: placed.triangle,
            everywhere,
            reciprocals: placed.reciprocals,
            vertices: corners.vertices,
            provoking: corners.provoking,
            varyings: self.varyings,
            packets: self.packets,
            preload: self.preload,
            blend: self.blend,
            tile: Arc::clone(tile),
        }));
        job.run(&dispatch, &stage)
    }
}

fn preload<B: Bus>(job: &Job<'_, B>, state: &FragmentState) -> Result<Option<Preload>, JobFault> {
    if job.environment.profile.architecture == Architecture::V6 {
        return Ok(None);
    }
    job.demand(&[
        (
            state.message_2_type() == 0,
            "a second message before the shader",
        ),
        (
            state.message_half() <= 1,
            "a precision of a message before the shader",
        ),
    ])?;
    let index = state.message_index() as u32;
    let half = state.message_half() == 1;
    match state.message_type() {
        0 => Ok(None),
        1 => Ok(Some(Preload::Varying {
            index,
            components: state.message_components() as u32,
            half,
        })),
        2 => Ok(Some(Preload::Texture(Lookup {
            varying: index & 7,
            texture: index >> 3,
            computed_lod: state.message_zero_lod() == 0,
            half,
        }))),
        _ => Err(job.unmodelled("a message before the shader")),
    }
}

pub(super) fn blend_words<B: Bus>(job: &Job<'_, B>, blend: &Blend) -> Result<[u32; 2], JobFault> {
    const OPAQUE: u64 = 1;
    const NOTHING: u64 = 3;
    if blend.enable() == 0 || blend.mode() == NOTHING {
        return Ok(OFF);
    }
    job.demand(&[
        (blend.mode() == OPAQUE, "blending"),
        (blend.load_destination() == 0, "blending"),
        (blend.equation() == REPLACE, "blending"),
        (blend.alpha_to_one() == 0, "alpha to one"),
        (blend.srgb() == 0, "sRGB colours"),
    ])?;
    Ok([blend.words[2], blend.words[3]])
}
