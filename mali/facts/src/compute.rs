// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compute jobs' descriptors, from memory.

use crate::job::{COMPUTE_DRAW, COMPUTE_PARAMETERS, INVOCATION};
use crate::{
    ComputeParameters, Draw, Invocation, Job, JobType, LocalStorage, Memory, RendererState,
    clause_address, descriptor_address,
};

/// `None`: some are unknown.
pub fn bytes<const N: usize, M: Memory + ?Sized>(memory: &M, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes).then_some(bytes)
}

/// Descriptors of a compute job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeJob {
    /// Work groups' size and number.
    pub invocation: Invocation,
    /// Tuning.
    pub parameters: ComputeParameters,
    /// Pointers to all that the shader uses.
    pub draw: Draw,
    /// Shader, and threads' start.
    pub state: RendererState,
    /// Of threads and work groups.
    pub storage: Option<LocalStorage>,
}

impl ComputeJob {
    /// `None`: another job, or unknown.
    pub fn read<M: Memory + ?Sized>(memory: &M, job: &Job) -> Option<Self> {
        let draw = Draw::of(memory, job)?;
        let parameters = job.address.checked_add(COMPUTE_PARAMETERS)?;
        Some(Self {
            invocation: Invocation::of(memory, job)?,
            parameters: ComputeParameters::from_bytes(&bytes(memory, parameters)?),
            draw,
            state: draw.renderer_state(memory)?,
            storage: match draw.storage_at() {
                None => None,
                Some(_) => Some(draw.local_storage(memory)?),
            },
        })
    }

    /// Address of the first clause.
    pub fn shader(&self) -> u64 {
        clause_address(self.state.shader())
    }
}

fn part<const N: usize, M: Memory + ?Sized>(memory: &M, job: &Job, offset: u64) -> Option<[u8; N]> {
    let compute = job.job_type() == Some(JobType::Compute);
    bytes(memory, job.address.checked_add(offset)?).filter(|_| compute)
}

impl Invocation {
    /// `None`: another job, or unknown.
    pub fn of<M: Memory + ?Sized>(memory: &M, job: &Job) -> Option<Self> {
        Some(Self::from_bytes(&part(memory, job, INVOCATION)?))
    }
}

impl Draw {
    /// `None`: another job, or unknown.
    pub fn of<M: Memory + ?Sized>(memory: &M, job: &Job) -> Option<Self> {
        Some(Self::from_bytes(&part(memory, job, COMPUTE_DRAW)?))
    }

    /// Address of the renderer state.
    pub fn state_at(&self) -> u64 {
        descriptor_address(self.state())
    }

    /// Address of the local storage descriptor.
    pub fn storage_at(&self) -> Option<u64> {
        Some(descriptor_address(self.thread_storage())).filter(|at| *at != 0)
    }

    /// `None`: unknown.
    pub fn renderer_state<M: Memory + ?Sized>(&self, memory: &M) -> Option<RendererState> {
        Some(RendererState::from_bytes(&bytes(memory, self.state_at())?))
    }

    /// `None`: none, or unknown.
    pub fn local_storage<M: Memory + ?Sized>(&self, memory: &M) -> Option<LocalStorage> {
        let at = self.storage_at()?;
        Some(LocalStorage::from_bytes(&bytes(memory, at)?))
    }
}
