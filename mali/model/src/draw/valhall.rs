// SPDX-License-Identifier: MIT OR Apache-2.0
//! Malloc vertex jobs of Valhall.
//!
//! Hardware's packets in the tiler's heap have their own form; the model keeps positions, then attributes.

use gpureplay_memory::Bus;
use mali_facts::valhall::drawing::{self, DepthStencil, FragmentDraw, Scissor};
use mali_facts::valhall::drawing::{VertexAllocation, VertexPrimitive};
use mali_facts::valhall::{ShaderEnvironment, stage};
use mali_facts::{Blend, TilerContext, TilerPointer, descriptor_address};
use mali_shader::{AttributeTable, Dispatch, Packets, Stage, Triangle, Vertices};

use super::Job;
use super::framebuffer::{Framebuffer, Rectangle};
use super::primitive::{self, Placed};
use super::shading::{ALWAYS, DEPTH_FROM_SHADER, Shading, blend_words};
use super::tiler::{self, Record};
use crate::compute::started;
use crate::environment::JobFault;

const POSITION: u32 = 16;

pub(crate) fn run<B: Bus>(job: &Job<'_, B>) -> Result<(), JobFault> {
    let at = |offset: u64| job.address.wrapping_add(offset);
    let primitive = VertexPrimitive::from_bytes(&job.memory.bytes(at(drawing::PRIMITIVE))?);
    let allocation = allocation(job, job.address)?;
    job.demand(&[
        (allocation.instances() == 1, "instances"),
        (primitive.index_type() == 0, "indices"),
        (primitive.primitive_restart() == 0, "primitive restart"),
        (primitive.point_sizes() == 0, "point sizes"),
        (primitive.primitive_index() == 0, "numbers of primitives"),
        (
            primitive.layer_or_scissor_array() == 0,
            "layers and arrays of scissors",
        ),
        (primitive.base_vertex() == 0, "a base vertex"),
        (primitive.instance_offset() == 0, "a first instance"),
        (
            primitive::is_known(primitive.draw_mode() as u32),
            "a draw mode other than triangles, strips and fans of them",
        ),
        (
            allocation.packet_stride() == u64::from(POSITION) + allocation.attribute_stride(),
            "vertex packets with more than a position and attributes",
        ),
    ])?;
    let vertices = primitive.index_count() as u32;
    let tiler = TilerPointer::from_bytes(&job.memory.bytes(at(drawing::TILER_POINTER))?);
    let context = descriptor_address(tiler.context());
    let bytes = u64::from(vertices) * allocation.packet_stride();
    let packets = tiler::allocate(job, context, bytes)?;
    let positions = Packets {
        base: packets,
        stride: POSITION,
    };
    shade(job, at(drawing::POSITION_ENVIRONMENT), vertices, positions)?;
    let record = Record {
        draw: job.address,
        mode: primitive.draw_mode() as u32,
        vertices,
        first_provokes: TilerContext::from_bytes(&job.memory.bytes(context)?)
            .first_provoking_vertex()
            == 1,
        packets,
    };
    if primitive.secondary_shader() == 1 {
        let attributes = attributes(&record, &allocation);
        let at = at(drawing::VARYING_ENVIRONMENT);
        shade(job, at, vertices, attributes)?;
    }
    tiler::add(job, context, &record)
}

fn allocation<B: Bus>(job: &Job<'_, B>, vertex_job: u64) -> Result<VertexAllocation, JobFault> {
    let at = vertex_job.wrapping_add(drawing::ALLOCATION);
    Ok(VertexAllocation::from_bytes(&job.memory.bytes(at)?))
}

fn attributes(record: &Record, allocation: &VertexAllocation) -> Packets {
    let positions = u64::from(record.vertices) * u64::from(POSITION);
    Packets {
        base: record.packets.wrapping_add(positions),
        stride: allocation.attribute_stride() as u32,
    }
}

fn shade<B: Bus>(
    job: &Job<'_, B>,
    at: u64,
    vertices: u32,
    packets: Packets,
) -> Result<(), JobFault> {
    let mut dispatch = environment(job, at, stage::VERTEX)?;
    dispatch.grid.workgroup_count = [1, vertices, 1];
    if dispatch.grid.shader == 0 {
        return Err(job.invalid("vertices have no shader"));
    }
    let stage = Stage::Vertices(Vertices {
        positions: 0,
        varyings: AttributeTable::default(),
        packets,
    });
    job.run(&dispatch, &stage)
}

fn environment<B: Bus>(job: &Job<'_, B>, at: u64, stage: u32) -> Result<Dispatch, JobFault> {
    let environment = ShaderEnvironment::from_bytes(&job.memory.bytes(at)?);
    job.demand(&[(environment.attribute_offset() == 0, "a first vertex")])?;
    let profile = job.environment.profile;
    let mut dispatch = started(profile, job.memory, job.address, &environment, stage)?;
    dispatch.architecture = profile.architecture;
    dispatch.grid.workgroup_size = [1; 3];
    Ok(dispatch)
}

pub(super) fn shading<B: Bus>(job: &Job<'_, B>, record: &Record) -> Result<Shading, JobFault> {
    let at = |offset: u64| record.draw.wrapping_add(offset);
    let scissor = Scissor::from_bytes(&job.memory.bytes(at(drawing::SCISSOR))?);
    let [left, top] = [scissor.minimum_x(), scissor.minimum_y()].map(|v| v as u32);
    let [right, bottom] = [scissor.maximum_x(), scissor.maximum_y()].map(|v| v as u32 + 1);
    let within = Rectangle {
        start: [left, top],
        end: [right, bottom],
    };
    let packets = attributes(record, &allocation(job, record.draw)?);
    drawn(job, at(drawing::FRAGMENT_DRAW), within, packets).map(|shading| Shading {
        positions: record.packets,
        ..shading
    })
}

/// The vertices are the frame's corners.
pub(super) fn frame_shading<B: Bus>(
    job: &Job<'_, B>,
    framebuffer: &Framebuffer,
) -> Result<(Shading, Placed), JobFault> {
    let frame = framebuffer.frame;
    let shading = drawn(job, framebuffer.frame_draw, frame, Packets::default())?;
    let [right, bottom] = frame.end.map(|v| i64::from(v) << 8);
    let triangle = Triangle::new([[0, 0], [right, 0], [0, bottom]]);
    let triangle = triangle.ok_or_else(|| job.unmodelled("a frame of 65536 pixels"))?;
    let placed = Placed {
        triangle,
        reciprocals: [1.0; 3],
        depth: [0.0; 2],
        bounds: frame,
    };
    Ok((shading, placed))
}

fn drawn<B: Bus>(
    job: &Job<'_, B>,
    at: u64,
    scissor: Rectangle,
    packets: Packets,
) -> Result<Shading, JobFault> {
    let draw = FragmentDraw::from_bytes(&job.memory.bytes(at)?);
    let state = DepthStencil::from_bytes(&job.memory.bytes(draw.depth_stencil())?);
    job.demand(&[
        (draw.multisample() == 0, "several samples"),
        (draw.per_sample() == 0, "shading of each sample"),
        (draw.sample_mask() & 1 == 1, "a sample mask"),
        (draw.occlusion_query() == 0, "an occlusion query"),
        (draw.cull() == 0, "culling by direction"),
        (draw.alpha_to_coverage() == 0, "coverage from alpha"),
        (
            draw.modifies_coverage() == 0,
            "a shader that changes its coverage",
        ),
        (draw.blend() & 15 == 1, "several blend descriptors"),
        (draw.target_mask() == 1, "a mask of render targets"),
        (state.depth_function() == ALWAYS, "a depth test"),
        (state.depth_write() == 0, "depth"),
        (state.depth_bias() == 0, "a bias of depth"),
        (
            state.depth_source() != DEPTH_FROM_SHADER,
            "depth from a shader",
        ),
        (state.stencil() == 0, "stencil"),
        (state.stencil_from_shader() == 0, "stencil from a shader"),
    ])?;
    let blend = Blend::from_bytes(&job.memory.bytes(draw.blend() & !15)?);
    let at = at.wrapping_add(drawing::DRAW_ENVIRONMENT);
    let float = |bits: u64| f32::from_bits(bits as u32);
    Ok(Shading {
        dispatch: environment(job, at, stage::FRAGMENT)?,
        varyings: AttributeTable::default(),
        packets,
        preload: None,
        blend: blend_words(job, &blend)?,
        positions: 0,
        scissor,
        depth: match state.depth_cull() {
            1 => [float(draw.minimum_z()), float(draw.maximum_z())],
            _ => [f32::NEG_INFINITY, f32::INFINITY],
        },
    })
}
