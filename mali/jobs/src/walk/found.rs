// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs with their descriptors.

use mali_drive::LAUNCHED_AT;
use mali_facts::job::PAYLOAD;
use mali_facts::valhall::{self, ComputePayload};
use mali_facts::walk::{Visitor, walk_chain};
use mali_facts::{ComputeJob, JobType, Launch, Memory, Profile, bytes, follow};

use crate::streams;
use crate::walk::program::Submission;

/// What a job waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Name in its chain.
    pub index: u16,
    /// By index; 0 is none.
    pub dependencies: [u16; 2],
    /// For all jobs before it.
    pub barrier: bool,
}

/// Contents of a job's descriptors.
#[derive(Clone, Copy, Debug)]
pub enum Descriptors {
    /// No compute job, or descriptors that make no sense.
    None,
    /// Compute job of Bifrost.
    Bifrost(ComputeJob),
    /// Of Valhall; a stream has the payload in registers.
    Valhall(Launch, ComputePayload),
}

/// Job of a submission.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Of its header; for a stream, of the dispatch's instruction on the model.
    pub address: u64,
    /// Type, if it exists.
    pub kind: Option<JobType>,
    /// What it waits for.
    pub waits: Waits,
    /// If it is a compute job.
    pub descriptors: Descriptors,
}

/// Shows a stream's dispatches. The environment, in registers, is shown at its address.
pub fn walk_words(words: &[u8], known: &dyn Memory, profile: &Profile, visitor: &mut dyn Visitor) {
    // A verified recording's instructions can be walked.
    let _ = streams::dispatches(words, |address, compute| {
        visitor.job(address, Some(JobType::Compute));
        let (_, environment) = streams::payload(compute);
        let bytes = environment.to_bytes();
        let memory = |va: u64, to: &mut [u8]| {
            if va < LAUNCHED_AT {
                return known.read(va, to);
            }
            let from = va.checked_sub(address);
            let from = from.and_then(|from| usize::try_from(from).ok());
            let part = from.and_then(|from| bytes.get(from..)?.get(..to.len()));
            part.map(|part| to.copy_from_slice(part)).is_some()
        };
        valhall::environment(&memory, profile, address, visitor);
    });
}

impl Submission<'_> {
    /// Shows descriptors and their memory.
    pub fn walk(&self, profile: &Profile, visitor: &mut dyn Visitor) {
        match self.words {
            [] => {
                walk_chain(self.memory, profile, self.head, visitor);
            }
            words => walk_words(words, self.memory, profile, visitor),
        }
    }

    /// Jobs in order.
    pub fn jobs(&self, profile: &Profile) -> Vec<Found> {
        match self.words {
            [] => self.chained(profile),
            words => self.dispatched(words),
        }
    }

    fn chained(&self, profile: &Profile) -> Vec<Found> {
        let memory = self.memory;
        let chain = follow(memory, self.head);
        let valhall = |job: &mali_facts::Job| {
            let launch = Launch::read(memory, job, profile.architecture)?;
            let payload = bytes(memory, job.address.checked_add(PAYLOAD)?)?;
            let payload = ComputePayload::from_bytes(&payload);
            Some(Descriptors::Valhall(launch, payload))
        };
        let descriptors = |job: &mali_facts::Job| match job.job_type() {
            Some(JobType::Compute) if profile.architecture.has_clauses() => {
                ComputeJob::read(memory, job).map(Descriptors::Bifrost)
            }
            Some(JobType::Compute) => valhall(job),
            _ => None,
        };
        let found = chain.jobs(memory).map(|job| Found {
            address: job.address,
            kind: job.job_type(),
            waits: Waits {
                index: job.index(),
                dependencies: [job.header.dependency_1(), job.header.dependency_2()]
                    .map(|index| index as u16),
                barrier: job.header.barrier() != 0,
            },
            descriptors: descriptors(&job).unwrap_or(Descriptors::None),
        });
        found.collect()
    }

    fn dispatched(&self, words: &[u8]) -> Vec<Found> {
        let (mut found, mut waited) = (Vec::new(), streams::waits(words));
        let _ = streams::dispatches(words, |address, compute| {
            let (payload, environment) = streams::payload(compute);
            let launch = Launch::requested(self.memory, &payload, &environment);
            found.push(Found {
                address,
                kind: Some(JobType::Compute),
                waits: Waits {
                    barrier: waited.next().unwrap_or(false),
                    ..Waits::default()
                },
                descriptors: launch.map_or(Descriptors::None, |launch| {
                    Descriptors::Valhall(launch, payload)
                }),
            });
        });
        found
    }
}
