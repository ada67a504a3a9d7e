// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compute jobs: from descriptors to a dispatch.

mod bifrost;
mod valhall;

use gpureplay_memory::{Bus, PAGE_SIZE};
use gpureplay_shader::{
    Access, AddressSpace, Cores, FaultKind, ShaderFault, ThreadStorage, WorkgroupStorage,
};
use mali_facts::Profile;
use mali_facts::registers::JobStatus;
use mali_facts::valhall::{ComputePayload, ShaderEnvironment};
use mali_isa::{DecodeError, Identity, Product, Shader};
use mali_shader::Dispatch;

pub(crate) use self::bifrost::thread_storage;
pub(crate) use self::valhall::started;
use crate::environment::{Environment, JobFault};
use crate::log::{Level, log};
use crate::observer::ComputeReport;
use crate::space::JobMemory;

pub(crate) fn run<B: Bus>(
    environment: &Environment<B>,
    memory: &JobMemory<'_, B>,
    address: u64,
    cores: Cores,
) -> (Option<ComputeReport>, Result<(), JobFault>) {
    match dispatch(environment.profile, memory, address) {
        Ok(mut dispatch) => {
            dispatch.grid.cores = cores;
            launch(environment, memory, address, dispatch)
        }
        Err(fault) => (None, Err(fault)),
    }
}

pub(crate) fn from_registers<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
    payload: &ComputePayload,
    shaders: &ShaderEnvironment,
) -> Result<Dispatch, JobFault> {
    let dispatch = valhall::requested(profile, memory, address, payload, shaders)?;
    checked(profile, address, dispatch)
}

pub(crate) fn launch<B: Bus>(
    environment: &Environment<B>,
    memory: &JobMemory<'_, B>,
    address: u64,
    dispatch: Dispatch,
) -> (Option<ComputeReport>, Result<(), JobFault>) {
    if environment.log.level() >= Level::Debug {
        log!(environment.log, Debug, "job {address:#x}: {dispatch:x?}");
    }
    let observer = environment.observer.as_ref();
    let mut report = ComputeReport {
        shader: dispatch.grid.shader,
        workgroup_size: dispatch.grid.workgroup_size,
        workgroup_count: dispatch.grid.workgroup_count,
        kernel: observer
            .filter(|observer| observer.wants_kernels())
            .and_then(|_| identity(memory, dispatch.grid.shader)),
        statistics: None,
    };
    let (threads, control) = (&environment.threads, &environment.control.shader);
    let analyser = observer.and_then(|observer| observer.analyser(address, &dispatch));
    let result = match analyser {
        Some(analyser) => mali_shader::analyse(&dispatch, memory, threads, control, &*analyser),
        None => mali_shader::run(&dispatch, memory, threads, control),
    };
    let result = match result {
        Ok(statistics) => {
            report.statistics = Some(statistics);
            Ok(())
        }
        Err(fault) => Err(shader_fault(dispatch.grid.shader, fault)),
    };
    (Some(report), result)
}

pub(crate) fn shader_fault(shader: u64, fault: ShaderFault) -> JobFault {
    let (status, mmu) = match fault.kind {
        FaultKind::InvalidPc => (JobStatus::INSTR_INVALID_PC, None),
        FaultKind::InvalidEncoding => (JobStatus::INSTR_INVALID_ENC, None),
        FaultKind::InvalidData => (JobStatus::DATA_INVALID_FAULT, None),
        FaultKind::Mmu(mmu) => (JobStatus(mmu.code.into()), Some(mmu)),
        // As by a hard stop.
        FaultKind::Budget | FaultKind::WorkLimit | FaultKind::Aborted => {
            (JobStatus::TERMINATED, None)
        }
    };
    JobFault {
        status,
        pointer: fault.address,
        mmu,
        text: format!("shader {shader:#x}: {fault}"),
    }
}

fn identity<B: Bus>(memory: &JobMemory<'_, B>, shader: u64) -> Option<Identity> {
    let word = |offset: u32| {
        let va = shader.wrapping_add(offset.into());
        let page = memory.translate(va, Access::Execute);
        let page = page.map_err(|_| DecodeError::Truncated {
            offset: offset as usize,
        })?;
        Ok::<_, DecodeError>(page.load_u128(va as usize % PAGE_SIZE).to_le_bytes())
    };
    let (_, identity) = Shader::identify(word).ok()?;
    Some(identity)
}

pub(crate) fn dispatch<B: Bus>(
    profile: &Profile,
    memory: &JobMemory<'_, B>,
    address: u64,
) -> Result<Dispatch, JobFault> {
    let dispatch = match profile.architecture.has_resource_tables() {
        false => bifrost::dispatch(profile, memory, address)?,
        true => valhall::dispatch(profile, memory, address)?,
    };
    checked(profile, address, dispatch)
}

fn checked(profile: &Profile, address: u64, dispatch: Dispatch) -> Result<Dispatch, JobFault> {
    let size = dispatch.grid.workgroup_size.iter();
    let threads = size.map(|&n| u64::from(n)).product::<u64>();
    if threads > u64::from(profile.max_workgroup_size) {
        let text = format!("a work group of {threads} threads is more than the GPU has");
        return Err(invalid(address, &text));
    }
    Ok(Dispatch {
        architecture: profile.architecture,
        ..dispatch
    })
}

fn invalid(address: u64, text: &str) -> JobFault {
    JobFault::new(JobStatus::DATA_INVALID_FAULT, address, text)
}

pub(crate) fn product(profile: &Profile) -> Option<Product> {
    profile.gpu_id.name().and_then(Product::by_name)
}

fn threads_at(profile: &Profile, base: u64, bytes: u64) -> ThreadStorage {
    if base == 0 {
        return ThreadStorage::default();
    }
    ThreadStorage {
        base,
        bytes_per_thread: u32::try_from(bytes).unwrap_or(u32::MAX),
        threads: profile.max_threads,
    }
}

fn groups_at(base: u64, bytes: u64, instances: u64) -> WorkgroupStorage {
    if base == 0 || bytes == 0 {
        return WorkgroupStorage::default();
    }
    WorkgroupStorage {
        base,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        instances: u32::try_from(instances).unwrap_or(u32::MAX),
    }
}
