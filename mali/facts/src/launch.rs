// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compute job's launch.

use crate::compute::bytes;
use crate::valhall::{
    ComputePayload, LocalStorage as ValhallStorage, ShaderEnvironment, ShaderProgram,
};
use crate::{Architecture, ComputeJob, Job, JobType, LocalStorage, Memory, job};

/// Code, work groups and storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// First clause or word.
    pub shader: u64,
    /// Threads of a work group.
    pub size: [u32; 3],
    /// Work groups.
    pub count: [u32; 3],
    /// Addresses of thread and work group storage; 0 for none.
    pub storage: [u64; 2],
    /// Per thread and per work group.
    pub storage_bytes: [u64; 2],
    /// Of push uniforms.
    pub uniform_bytes: u64,
}

impl Launch {
    /// `None`: another job, unknown or senseless.
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

    /// From payload and environment, which command streams have in registers.
    pub fn requested<M: Memory + ?Sized>(
        memory: &M,
        payload: &ComputePayload,
        environment: &ShaderEnvironment,
    ) -> Option<Self> {
        requested(memory, payload, environment)
    }

    /// Work-items by dimension.
    pub fn items(&self) -> [u64; 3] {
        [0, 1, 2].map(|axis: usize| u64::from(self.size[axis]) * u64::from(self.count[axis]))
    }
}

impl ComputeJob {
    /// Generation-independent. `None`: shifts out of order.
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
    requested(memory, &payload, &environment)
}

fn requested<M: Memory + ?Sized>(
    memory: &M,
    payload: &ComputePayload,
    environment: &ShaderEnvironment,
) -> Option<Launch> {
    let shader = match environment.program() {
        0 => 0,
        at => ShaderProgram::from_bytes(&bytes(memory, at)?).binary(),
    };
    let storage = match environment.storage_at() {
        0 => ValhallStorage { words: [0; 8] },
        at => ValhallStorage::from_bytes(&bytes(memory, at)?),
    };
    Some(Launch {
        shader,
        size: [payload.size_x(), payload.size_y(), payload.size_z()].map(|n| n as u32),
        count: [payload.count_x(), payload.count_y(), payload.count_z()].map(|n| n as u32),
        storage: [storage.tls_address(), storage.wls_base()],
        storage_bytes: [storage.tls_bytes(), storage.wls_bytes()],
        uniform_bytes: environment.uniform_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::JobHeader;

    #[test]
    fn valhall_says_what_it_launches() {
        let mut memory = vec![0u8; 0x400];
        let mut put = |at: usize, bytes: &[u8]| memory[at..at + bytes.len()].copy_from_slice(bytes);
        let header = JobHeader { words: [0; 8] }.with("Type", 4);
        put(0x80, &header.to_bytes());
        let payload = ComputePayload { words: [0; 8] }
            .with("Work group size X", 7)
            .with("Work group size Y", 3)
            .with("Work group count X", 5)
            .with("Work group count Y", 2)
            .with("Work group count Z", 9);
        put(0xa0, &payload.to_bytes());
        let environment = ShaderEnvironment { words: [0; 16] }
            .with("FAU count", 3)
            .with("Shader", 0x200)
            .with("Thread storage", 0x240);
        put(0xc0, &environment.to_bytes());
        let program = ShaderProgram { words: [0; 8] }.with("Binary", 0x1234_5680);
        put(0x200, &program.to_bytes());
        let storage = ValhallStorage { words: [0; 8] }
            .with("TLS size", 2)
            .with("TLS base pointer", 0x70)
            .with("TLS address mode", 1)
            .with("WLS instances", 1)
            .with("WLS size scale", 9)
            .with("WLS base pointer", 0x9000);
        put(0x240, &storage.to_bytes());
        let read = |at: u64, to: &mut [u8]| {
            let at = at as usize;
            let from = memory.get(at..at.saturating_add(to.len()));
            from.map(|from| to.copy_from_slice(from)).is_some()
        };
        let job = Job {
            address: 0x80,
            header,
        };
        let launch = Launch::read(&read, &job, Architecture::V9).unwrap();
        assert_eq!((launch.shader, launch.uniform_bytes), (0x1234_5680, 24));
        assert_eq!((launch.size, launch.count), ([8, 4, 1], [5, 2, 9]));
        assert_eq!(launch.items(), [40, 8, 9]);
        assert_eq!(
            (launch.storage, launch.storage_bytes),
            ([0x7000, 0x9000], [64, 256])
        );
        let other = Job {
            address: 0x80,
            header: header.with("Type", 2),
        };
        assert_eq!(Launch::read(&read, &other, Architecture::V9), None);
        let far = Job {
            address: u64::MAX - 63,
            header,
        };
        assert_eq!(Launch::read(&read, &far, Architecture::V9), None);
    }
}
