// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a compute job launches, whichever generation's descriptors say it.

use crate::compute::bytes;
use crate::valhall::{
    ComputePayload, LocalStorage as ValhallStorage, ShaderEnvironment, ShaderProgram,
};
use crate::{Architecture, ComputeJob, Job, JobType, LocalStorage, Memory, job};

/// Code, work groups and storage of a compute job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Address of the first clause or word.
    pub shader: u64,
    /// Threads of a work group by dimension.
    pub size: [u32; 3],
    /// Work groups by dimension.
    pub count: [u32; 3],
    /// Where the storage of threads and that of work groups begin; 0: there is none.
    pub storage: [u64; 2],
    /// Bytes of storage of a thread and of a work group.
    pub storage_bytes: [u64; 2],
    /// Bytes of push uniforms.
    pub uniform_bytes: u64,
}

impl Launch {
    /// Reads the descriptors of a job. `None`: it is no compute job, or one of them is unknown or makes no sense.
    pub fn read<M: Memory + ?Sized>(
        memory: &M,
        job: &Job,
        architecture: Architecture,
    ) -> Option<Self> {
        match architecture.has_resource_tables() {
            false => ComputeJob::read(memory, job)?.launch(),
            true => valhall(memory, job),
        }
    }

    /// Work-items by dimension.
    pub fn items(&self) -> [u64; 3] {
        [0, 1, 2].map(|axis: usize| u64::from(self.size[axis]) * u64::from(self.count[axis]))
    }
}

impl ComputeJob {
    /// The same in the terms of every generation. `None`: the shifts of the invocation are out of order.
    pub fn launch(&self) -> Option<Launch> {
        let (size, count) = self.invocation.dimensions()?;
        let storage = self.storage;
        let bytes = |storage: LocalStorage| [storage.tls_bytes(), storage.wls_bytes()];
        Some(Launch {
            shader: self.shader(),
            size,
            count,
            storage: storage.map_or([0; 2], |storage| storage.bases()),
            storage_bytes: storage.map_or([0; 2], bytes),
            uniform_bytes: self.state.uniform_bytes(),
        })
    }
}

fn valhall<M: Memory + ?Sized>(memory: &M, job: &Job) -> Option<Launch> {
    if job.job_type() != Some(JobType::Compute) {
        return None;
    }
    let at = job.address.checked_add(job::PAYLOAD)?;
    let payload = ComputePayload::from_bytes(&bytes(memory, at)?);
    let at = at.checked_add(ComputePayload::SIZE as u64)?;
    let environment = ShaderEnvironment::from_bytes(&bytes(memory, at)?);
    let program = ShaderProgram::from_bytes(&bytes(memory, environment.program())?);
    let storage = match environment.storage_at() {
        0 => ValhallStorage { words: [0; 8] },
        at => ValhallStorage::from_bytes(&bytes(memory, at)?),
    };
    Some(Launch {
        shader: program.binary(),
        size: [payload.size_x(), payload.size_y(), payload.size_z()].map(|n| n as u32),
        count: [payload.count_x(), payload.count_y(), payload.count_z()].map(|n| n as u32),
        storage: [storage.tls_address(), storage.wls_base()],
        storage_bytes: [storage.tls_bytes(), storage.wls_bytes()],
        uniform_bytes: environment.uniform_bytes(),
    })
}
