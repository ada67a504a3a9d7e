// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compute jobs of Bifrost.

use gpureplay_memory::Bus;
use gpureplay_shader::{Grid, ThreadStorage, WorkgroupStorage};
use mali_facts::{
    Draw, Invocation, LocalStorage, Profile, RendererState, clause_address, descriptor_address, job,
};
use mali_shader::Dispatch;

use super::{groups_at, invalid, product, threads_at};
use crate::environment::JobFault;
use crate::space::JobMemory;

pub(super) fn dispatch<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
) -> Result<Dispatch, JobFault> {
    let invocation = Invocation::from_bytes(&memory.bytes(address + job::INVOCATION)?);
    let draw = Draw::from_bytes(&memory.bytes(address + job::COMPUTE_DRAW)?);
    let state = RendererState::from_bytes(&memory.bytes(descriptor_address(draw.state()))?);
    let storage = match descriptor_address(draw.thread_storage()) {
        0 => None,
        at => Some(LocalStorage::from_bytes(&memory.bytes(at)?)),
    };
    let dimensions = invocation.dimensions();
    let (workgroup_size, workgroup_count) =
        dimensions.ok_or_else(|| invalid(address, "invocation shifts are out of order"))?;
    Ok(Dispatch {
        grid: Grid {
            shader: clause_address(state.shader()),
            workgroup_size,
            workgroup_count,
            push_uniforms: draw.push_uniforms(),
            push_uniform_count: state.uniform_count() as u32,
            thread_storage: thread_storage(profile, storage.as_ref()),
            workgroup_storage: storage.map_or_else(WorkgroupStorage::default, |storage| {
                let (bytes, instances) = (storage.wls_bytes(), storage.wls_instances());
                groups_at(storage.wls_base(), bytes, instances)
            }),
            ..Grid::default()
        },
        product: product(profile),
        uniform_buffers: draw.uniform_buffers(),
        uniform_buffer_count: state.uniform_buffer_count() as u32,
        attributes: draw.attributes(),
        attribute_count: state.attribute_count() as u32,
        attribute_buffers: draw.attribute_buffers(),
        textures: draw.textures(),
        texture_count: state.texture_count() as u32,
        samplers: draw.samplers(),
        sampler_count: state.sampler_count() as u32,
        ..Dispatch::default()
    })
}

pub(crate) fn thread_storage(profile: &Profile, storage: Option<&LocalStorage>) -> ThreadStorage {
    storage.map_or_else(ThreadStorage::default, |storage| {
        threads_at(profile, storage.tls_base(), storage.tls_bytes())
    })
}
