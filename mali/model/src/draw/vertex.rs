// SPDX-License-Identifier: MIT OR Apache-2.0
//! Indexed vertex jobs.

use gpureplay_memory::Bus;
use mali_facts::{
    Draw, DrawFlags, Invocation, Primitive, TilerPointer, VertexState, clause_address,
    descriptor_address, job,
};
use mali_shader::{AttributeTable, Packets, Stage, Vertices};

use super::tiler::{self, Record};
use super::{Job, primitive};
use crate::environment::JobFault;

pub(crate) fn run<B: Bus>(job: &Job<'_, B>) -> Result<(), JobFault> {
    let (memory, address) = (job.memory, job.address);
    let at = |offset: u64| address.wrapping_add(offset);
    let invocation = Invocation::from_bytes(&memory.bytes(at(job::INVOCATION))?);
    let primitive = Primitive::from_bytes(&memory.bytes(at(job::PRIMITIVE))?);
    let tiler = TilerPointer::from_bytes(&memory.bytes(at(job::TILER_POINTER))?);
    let fragment = Draw::from_bytes(&memory.bytes(at(job::FRAGMENT_DRAW))?);
    let vertex = Draw::from_bytes(&memory.bytes(at(job::VERTEX_DRAW))?);
    let flags = DrawFlags {
        words: [fragment.words[0]],
    };
    let dimensions = invocation
        .dimensions()
        .ok_or_else(|| job.invalid("invocation shifts are out of order"))?;
    let (_, [_, vertices, instances]) = dimensions;
    job.demand(&[
        (
            dimensions == ([1; 3], [1, vertices, instances]),
            "vertices that are not along y",
        ),
        (instances == 1, "instances"),
        (primitive.index_type() == 0, "indices"),
        (primitive.primitive_restart() == 0, "primitive restart"),
        (primitive.point_sizes() == 0, "point sizes"),
        (primitive.base_vertex() == 0, "a base vertex"),
        (
            primitive.index_count() == u64::from(vertices),
            "an index count that is not the number of vertices",
        ),
        (
            vertex.offset_start() == 0 && fragment.offset_start() == 0,
            "a first vertex",
        ),
        (
            primitive::is_known(primitive.draw_mode() as u32),
            "a draw mode other than triangles, strips and fans of them",
        ),
        (flags.occlusion_query() == 0, "an occlusion query"),
        (flags.cull() == 0, "culling by direction"),
    ])?;
    if fragment.position() == 0 {
        return Err(job.invalid("vertices have no place for their positions"));
    }
    shade(job, &vertex, vertices, fragment.position(), &primitive)?;
    let record = Record {
        draw: at(job::FRAGMENT_DRAW),
        mode: primitive.draw_mode() as u32,
        vertices,
        first_provokes: primitive.first_provoking_vertex() == 1,
        packets: 0,
    };
    tiler::add(job, descriptor_address(tiler.context()), &record)
}

fn shade<B: Bus>(
    job: &Job<'_, B>,
    draw: &Draw,
    vertices: u32,
    positions: u64,
    primitive: &Primitive,
) -> Result<(), JobFault> {
    let state = VertexState::from_bytes(&job.memory.bytes(descriptor_address(draw.state()))?);
    let mut dispatch = job.dispatch(draw)?;
    dispatch.grid.workgroup_count = [1, vertices, 1];
    dispatch.uniform_buffer_count = state.uniform_buffer_count() as u32;
    dispatch.attribute_count = state.attribute_count() as u32;
    dispatch.texture_count = state.texture_count() as u32;
    dispatch.sampler_count = state.sampler_count() as u32;
    let varyings = AttributeTable {
        descriptors: draw.varyings(),
        count: state.varying_count() as u32,
        buffers: draw.varying_buffers(),
    };
    let position = (state.shader(), state.uniform_count(), positions);
    let varying = (state.secondary_shader(), state.secondary_uniform_count(), 0);
    let both = [position, varying];
    let shaders = 1 + primitive.secondary_shader() as usize;
    for (shader, uniforms, positions) in both.into_iter().take(shaders) {
        dispatch.grid.shader = clause_address(shader);
        dispatch.grid.push_uniform_count = uniforms as u32;
        if dispatch.grid.shader == 0 {
            return Err(job.invalid("vertices have no shader"));
        }
        let stage = Stage::Vertices(Vertices {
            positions,
            varyings,
            packets: Packets::default(),
        });
        job.run(&dispatch, &stage)?;
    }
    Ok(())
}
