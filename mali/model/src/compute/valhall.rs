// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compute jobs of Valhall.

use gpureplay_memory::Bus;
use mali_facts::valhall::{
    ComputePayload, LocalStorage, ShaderEnvironment, ShaderProgram, descriptor_type, stage,
    subnormals,
};
use mali_facts::{Profile, job};
use mali_shader::{Dispatch, Subnormals};

use super::{groups_at, invalid, threads_at};
use crate::environment::JobFault;
use crate::space::JobMemory;

pub(super) fn dispatch<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
) -> Result<Dispatch, JobFault> {
    let at = address.wrapping_add(job::PAYLOAD);
    let payload = ComputePayload::from_bytes(&memory.bytes(at)?);
    let at = at.wrapping_add(ComputePayload::SIZE as u64);
    let environment = ShaderEnvironment::from_bytes(&memory.bytes(at)?);
    requested(profile, memory, address, &payload, &environment)
}

pub(super) fn requested<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
    payload: &ComputePayload,
    environment: &ShaderEnvironment,
) -> Result<Dispatch, JobFault> {
    if [payload.offset_x(), payload.offset_y(), payload.offset_z()] != [0; 3] {
        return Err(invalid(address, "offsets of work groups are not modelled"));
    }
    let mut dispatch = started(profile, memory, address, environment, stage::COMPUTE)?;
    dispatch.grid.workgroup_size =
        [payload.size_x(), payload.size_y(), payload.size_z()].map(|n| n as u32);
    dispatch.grid.workgroup_count =
        [payload.count_x(), payload.count_y(), payload.count_z()].map(|n| n as u32);
    Ok(dispatch)
}

pub(crate) fn started<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
    environment: &ShaderEnvironment,
    stage: u32,
) -> Result<Dispatch, JobFault> {
    let mut dispatch = Dispatch::default();
    dispatch.grid.push_uniforms = environment.uniforms();
    dispatch.grid.push_uniform_count = environment.uniform_count() as u32;
    // Mesa omits the program of a shader without code (`pan_cmdstream.c`, `prepare_shader`).
    if environment.program() != 0 {
        let program = ShaderProgram::from_bytes(&memory.bytes(environment.program())?);
        if program.descriptor_type() as u32 != descriptor_type::SHADER {
            return Err(invalid(
                address,
                "the shader's descriptor is of another type",
            ));
        }
        if program.stage() as u32 != stage {
            return Err(invalid(address, "the shader is for another stage"));
        }
        dispatch.grid.shader = program.binary();
        dispatch.subnormals = match program.subnormals() as u32 {
            subnormals::KEPT => Subnormals::Kept,
            // Mesa, `pan_shader.h`: only single precision.
            subnormals::DX11 => Subnormals::SinglesFlushed,
            _ => Subnormals::Flushed,
        };
    }
    let (list, count) = environment.resource_list();
    (dispatch.resources, dispatch.resource_count) = (list, count as u32);
    if environment.storage_at() != 0 {
        let storage = LocalStorage::from_bytes(&memory.bytes(environment.storage_at())?);
        dispatch.grid.thread_storage =
            threads_at(profile, storage.tls_address(), storage.tls_bytes());
        let (bytes, instances) = (storage.wls_bytes(), storage.wls_instances());
        dispatch.grid.workgroup_storage = groups_at(storage.wls_base(), bytes, instances);
    }
    Ok(dispatch)
}
