// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains: which the driver started, and what their headers say.

use mali_descriptors::{
    ChainEnd, Draw, Job, JobType, LocalStorage, descriptor_address, follow, job,
};
use mali_regs::{JobCommand, JobStatus, job_slot};

use crate::{Contents, Diagnosis, Direction, History};

/// Job slots of every GPU with a job manager.
const SLOTS: u32 = 3;

/// A chain that the driver started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Job slot.
    pub slot: u8,
    /// JS_CONFIG.
    pub config: u32,
    /// JS_AFFINITY, low word.
    pub affinity: u32,
    /// JS_FLUSH_ID.
    pub flush_id: u32,
    /// Nanoseconds since the first register access.
    pub time_ns: u64,
    /// GPU address of the first header.
    pub head: u64,
    /// Its jobs in order; empty when the descriptors are not in the dump.
    pub jobs: Vec<Job>,
}

impl Chain {
    /// All chains of a recording in the order in which they were started.
    pub fn all(
        history: &History,
        contents: &Contents,
        diagnoses: &mut Vec<Diagnosis>,
    ) -> Vec<Chain> {
        let mut next = [[0u32; 5]; SLOTS as usize];
        let mut chains = Vec::new();
        for access in &history.accesses {
            if access.direction != Direction::Write {
                continue;
            }
            for (slot, registers) in (0..SLOTS).zip(&mut next) {
                let is = |register| access.register == job_slot::offset(slot, register);
                let kept = [
                    job_slot::HEAD_NEXT_LO,
                    job_slot::HEAD_NEXT_HI,
                    job_slot::CONFIG_NEXT,
                    job_slot::AFFINITY_NEXT_LO,
                    job_slot::FLUSH_ID_NEXT,
                ];
                for (register, value) in kept.into_iter().zip(registers.iter_mut()) {
                    if is(register) {
                        *value = access.value;
                    }
                }
                if is(job_slot::COMMAND_NEXT) && access.value == JobCommand::Start as u32 {
                    let [low, high, config, affinity, flush_id] = *registers;
                    let head = u64::from(high) << 32 | u64::from(low);
                    let jobs = jobs(contents, head, chains.len(), diagnoses);
                    chains.push(Chain {
                        slot: slot as u8,
                        config,
                        affinity,
                        flush_id,
                        time_ns: access.time_ns,
                        head,
                        jobs,
                    });
                }
            }
        }
        chains
    }
}

/// The jobs of a chain; empty when one of them is not in the dump, or cannot be replayed.
fn jobs(
    contents: &Contents,
    head: u64,
    submission: usize,
    diagnoses: &mut Vec<Diagnosis>,
) -> Vec<Job> {
    let read = |va: u64, to: &mut [u8]| contents.read(va, to).is_some();
    let chain = follow(&read, head);
    let jobs: Vec<Job> = chain.jobs(&read).collect();
    for job in &jobs {
        let va = job.address;
        let diagnosis = match job.job_type() {
            Some(kind) if kind.is_replayed() => {
                let status = job.header.exception_status() as u32;
                if status <= JobStatus::DONE.0 {
                    continue;
                }
                Diagnosis::JobStatus {
                    submission,
                    va,
                    status,
                }
            }
            // What lies there is no header.
            None | Some(JobType::NotStarted) => Diagnosis::JobNotCaptured { submission, va },
            Some(kind) => Diagnosis::JobType {
                submission,
                va,
                kind: kind.name(),
            },
        };
        let lost = !matches!(diagnosis, Diagnosis::JobStatus { .. });
        diagnoses.push(diagnosis);
        if lost {
            return Vec::new();
        }
    }
    let diagnosis = match chain.end {
        ChainEnd::Complete => return jobs,
        ChainEnd::Misaligned(va) | ChainEnd::Unknown(va) => {
            Diagnosis::JobNotCaptured { submission, va }
        }
        ChainEnd::Loop(va) | ChainEnd::TooLong(va) => Diagnosis::ChainEndless { submission, va },
    };
    diagnoses.push(diagnosis);
    Vec::new()
}

/// The draw descriptor of a compute job; `None` for other jobs, or when it is not in the dump.
pub(crate) fn draw(contents: &Contents, job: &Job) -> Option<Draw> {
    let mut bytes = [0; Draw::SIZE];
    let va = job.address.checked_add(job::COMPUTE_DRAW)?;
    if job.job_type() != Some(JobType::Compute) {
        return None;
    }
    contents.read(va, &mut bytes)?;
    Some(Draw::from_bytes(&bytes))
}

/// Addresses of thread-local and workgroup-local storage that a compute job names.
pub(crate) fn storage(contents: &Contents, job: &Job) -> Option<[u64; 2]> {
    let va = descriptor_address(draw(contents, job)?.thread_storage());
    if va == 0 {
        return None;
    }
    let mut bytes = [0; LocalStorage::SIZE];
    contents.read(va, &mut bytes)?;
    let storage = LocalStorage::from_bytes(&bytes);
    Some([storage.tls_base(), storage.wls_base()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_jobs_that_are_imported() {
        for number in 0..=127 {
            // A region of one page, which begins with a header.
            let mut file = Vec::new();
            for word in [0x1000u64, 0x2000, 1] {
                file.extend(word.to_le_bytes());
            }
            file.extend([0xf, 0, 0, 0, 1]);
            file.extend([0x1000u64, 0x8000].map(u64::to_le_bytes).as_flattened());
            let header = file.len();
            file.resize(header + 4096, 0);
            file[header + 16] = 1 | number << 1;
            let mut diagnoses = Vec::new();
            let contents = Contents::parse(file, &mut diagnoses);
            let kind = JobType::from_bits(number.into());
            let found = jobs(&contents, 0x1000, 0, &mut diagnoses).len() == 1;
            assert_eq!(found, kind.is_some_and(JobType::is_replayed), "{kind:?}");
            assert_eq!(diagnoses.is_empty(), found);
        }
    }
}
