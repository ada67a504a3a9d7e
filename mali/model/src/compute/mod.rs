// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compute jobs: from descriptors to a dispatch on the shader cores.

use mali_facts::registers::JobStatus;
use mali_facts::{
    Draw, Invocation, LocalStorage, Profile, RendererState, clause_address, descriptor_address, job,
};
use mali_isa::{DecodeError, Identity, Product, Shader};
use mali_memory::{Bus, PAGE_SIZE};
use mali_shader::{
    Access, AddressSpace, Cores, Dispatch, FaultKind, ShaderFault, ThreadStorage, WorkgroupStorage,
};

use crate::environment::{Environment, JobFault};
use crate::log::{ComputeReport, Level, log};
use crate::space::JobMemory;

/// Reads the descriptors of the compute job at `address` and runs it on some of the cores. The report is there for a job that failed as
/// well, if its descriptors make sense.
pub(crate) fn run<B: Bus>(
    environment: &Environment<B>,
    memory: &JobMemory<'_, B>,
    address: u64,
    cores: Cores,
) -> (Option<ComputeReport>, Result<(), JobFault>) {
    let dispatch = match dispatch(environment.profile, memory, address) {
        Ok(dispatch) => Dispatch { cores, ..dispatch },
        Err(fault) => return (None, Err(fault)),
    };
    if environment.log.level() >= Level::Debug {
        log!(environment.log, Debug, "job {address:#x}: {dispatch:x?}");
    }
    let observer = environment.observer.as_ref();
    let mut report = ComputeReport {
        shader: dispatch.shader,
        workgroup_size: dispatch.workgroup_size,
        workgroup_count: dispatch.workgroup_count,
        kernel: observer
            .filter(|observer| observer.wants_kernels())
            .and_then(|_| identity(memory, dispatch.shader)),
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
        Err(fault) => Err(shader_fault(dispatch.shader, fault)),
    };
    (Some(report), result)
}

/// The fault of a job whose shader raised one.
pub(crate) fn shader_fault(shader: u64, fault: ShaderFault) -> JobFault {
    JobFault {
        status: JobStatus(fault.kind.exception_code().into()),
        pointer: fault.address,
        mmu: match fault.kind {
            FaultKind::Mmu(mmu) => Some(mmu),
            _ => None,
        },
        text: format!("shader {shader:#x}: {fault}"),
    }
}

/// What the code at `shader` is.
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

/// What the descriptors of a compute job ask of the shader cores.
pub(crate) fn dispatch<B: Bus>(
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
    let invalid = |text: &str| JobFault::new(JobStatus::DATA_INVALID_FAULT, address, text);
    let (workgroup_size, workgroup_count) = invocation
        .dimensions()
        .ok_or_else(|| invalid("invocation shifts are out of order"))?;
    let threads = workgroup_size
        .iter()
        .map(|&n| u64::from(n))
        .product::<u64>();
    if threads > u64::from(profile.max_workgroup_size) {
        return Err(invalid(&format!(
            "a work group of {threads} threads is more than the GPU has"
        )));
    }
    Ok(Dispatch {
        architecture: profile.architecture,
        product: product(profile),
        cores: Cores::default(),
        shader: clause_address(state.shader()),
        workgroup_size,
        workgroup_count,
        push_uniforms: draw.push_uniforms(),
        push_uniform_count: state.uniform_count() as u32,
        uniform_buffers: draw.uniform_buffers(),
        uniform_buffer_count: state.uniform_buffer_count() as u32,
        attributes: draw.attributes(),
        attribute_count: state.attribute_count() as u32,
        attribute_buffers: draw.attribute_buffers(),
        textures: draw.textures(),
        texture_count: state.texture_count() as u32,
        samplers: draw.samplers(),
        sampler_count: state.sampler_count() as u32,
        thread_storage: thread_storage(profile, storage.as_ref()),
        workgroup_storage: workgroup_storage(storage.as_ref()),
    })
}

/// The product whose instructions a GPU executes.
pub(crate) fn product(profile: &Profile) -> Option<Product> {
    profile.gpu_id.name().and_then(Product::by_name)
}

pub(crate) fn thread_storage(profile: &Profile, storage: Option<&LocalStorage>) -> ThreadStorage {
    let Some(storage) = storage.filter(|storage| storage.tls_base() != 0) else {
        return ThreadStorage::default();
    };
    ThreadStorage {
        base: storage.tls_base(),
        bytes_per_thread: u32::try_from(storage.tls_bytes()).unwrap_or(u32::MAX),
        threads: profile.max_threads,
    }
}

fn workgroup_storage(storage: Option<&LocalStorage>) -> WorkgroupStorage {
    match storage {
        Some(storage) if storage.wls_base() != 0 && storage.wls_bytes() != 0 => WorkgroupStorage {
            base: storage.wls_base(),
            bytes: u32::try_from(storage.wls_bytes()).unwrap_or(u32::MAX),
            instances: u32::try_from(storage.wls_instances()).unwrap_or(u32::MAX),
        },
        _ => WorkgroupStorage::default(),
    }
}
