// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains that the driver started.

use gpureplay_format::MAX_SUBMITTED_JOBS;
use mali_facts::registers::{JobCommand, JobStatus, job_slot};
use mali_facts::{ChainEnd, Draw, Job, JobType, follow};

use crate::diagnosis::Listed;
use crate::{Contents, ConvertError, Diagnosis, Direction, History};

const SLOTS: u32 = 3;

/// Chain that the driver started.
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
    /// Since the first register access.
    pub time_ns: u64,
    /// GPU address of the first header.
    pub head: u64,
    /// In order; empty when the descriptors are not in the dump.
    pub jobs: Vec<Job>,
}

impl Chain {
    /// All chains, in order.
    ///
    /// # Errors
    /// More than [`MAX_SUBMITTED_JOBS`] jobs, lost chains included.
    pub fn all(
        history: &History,
        contents: &Contents,
        diagnoses: &mut Vec<Diagnosis>,
    ) -> Result<Vec<Chain>, ConvertError> {
        let mut defects = Listed::new(diagnoses);
        let mut followed = 0;
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
                    let submission = chains.len();
                    let (jobs, length) = jobs(contents, head, submission, &mut defects);
                    followed += length;
                    if followed > MAX_SUBMITTED_JOBS {
                        let chain = submission;
                        return Err(ConvertError::TooManyJobs { chain, head });
                    }
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
        defects.finish();
        Ok(chains)
    }
}

fn jobs(
    contents: &Contents,
    head: u64,
    submission: usize,
    defects: &mut Listed<'_>,
) -> (Vec<Job>, usize) {
    let chain = follow(contents, head);
    let jobs: Vec<Job> = chain.jobs(contents).collect();
    let length = jobs.len();
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
            None | Some(JobType::NotStarted) => Diagnosis::JobNotCaptured { submission, va },
            Some(kind) => Diagnosis::JobType {
                submission,
                va,
                kind: kind.name(),
            },
        };
        let lost = !matches!(diagnosis, Diagnosis::JobStatus { .. });
        defects.push(diagnosis);
        if lost {
            return (Vec::new(), length);
        }
    }
    let diagnosis = match chain.end {
        ChainEnd::Complete => return (jobs, length),
        ChainEnd::Misaligned(va) | ChainEnd::Unknown(va) => {
            Diagnosis::JobNotCaptured { submission, va }
        }
        ChainEnd::Loop(va) | ChainEnd::TooLong(va) => Diagnosis::ChainEndless { submission, va },
    };
    defects.push(diagnosis);
    (Vec::new(), length)
}

pub(crate) fn storage(contents: &Contents, job: &Job) -> Option<[u64; 2]> {
    let storage = Draw::of(contents, job)?.local_storage(contents)?;
    Some(storage.bases())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::MAX_DIAGNOSED;

    const CHAIN: u64 = 0x10_0000;

    /// Null jobs, 64 bytes apart; the last one leads to `end`.
    fn chain(jobs: u64, status: u32, end: u64) -> Contents {
        let bytes = (64 * jobs).next_multiple_of(4096);
        let mut headers = vec![0; bytes as usize];
        for (index, header) in (0..jobs).zip(headers.chunks_exact_mut(64)) {
            let next = CHAIN + 64 * (index + 1);
            let next = if index + 1 < jobs { next } else { end };
            header[..4].copy_from_slice(&status.to_le_bytes());
            header[16] = 1 | 1 << 1;
            header[24..32].copy_from_slice(&next.to_le_bytes());
        }
        let mut file = Vec::new();
        for word in [CHAIN, CHAIN + bytes, bytes / 4096] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0xf, 0, 0, 0, 1]);
        for (va, page) in (CHAIN..).step_by(4096).zip(headers.chunks(4096)) {
            file.extend([va, 0x8000].map(u64::to_le_bytes).as_flattened());
            file.extend(page);
        }
        Contents::parse(file, &mut Vec::new())
    }

    fn started(heads: &[u64]) -> History {
        let line = |head: &u64| format!("0,W,0x18c0,{head:x}\n0,W,0x18e0,1\n");
        let text: String = heads.iter().map(line).collect();
        History::parse(text.as_bytes(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn chains_have_as_many_jobs_in_all_as_they_may() {
        const LONG: u64 = 0xffff;
        let most = MAX_SUBMITTED_JOBS as u64;
        let rest = CHAIN + 64 * (LONG - most % LONG);
        for end in [0, CHAIN + 1] {
            let contents = chain(LONG, 1, end);
            let mut heads = vec![CHAIN; (most / LONG) as usize];
            heads.push(rest);
            let all = |heads: &[u64]| Chain::all(&started(heads), &contents, &mut Vec::new());
            let jobs = |chains: &[Chain]| chains.iter().map(|chain| chain.jobs.len()).sum();
            let found: usize = jobs(&all(&heads).unwrap());
            assert_eq!(found, if end == 0 { MAX_SUBMITTED_JOBS } else { 0 });
            heads.push(CHAIN + 64 * (LONG - 1));
            let error = all(&heads).unwrap_err();
            assert!(
                matches!(error, ConvertError::TooManyJobs { chain: 5, .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn jobs_that_failed_are_listed_up_to_a_limit() {
        for (jobs, times) in [(MAX_DIAGNOSED as u64, 1), (2, MAX_DIAGNOSED / 2), (100, 30)] {
            let mut diagnoses = Vec::new();
            let history = started(&vec![CHAIN; times]);
            Chain::all(&history, &chain(jobs, 0x40, 0), &mut diagnoses).unwrap();
            let all = jobs * times as u64;
            assert_eq!(diagnoses.iter().map(Diagnosis::count).sum::<u64>(), all);
            let more = diagnoses.get(MAX_DIAGNOSED).map(Diagnosis::to_string);
            let text = "job-status in gr_mem_contents: 2984 more of these, which are not listed";
            assert_eq!(more.as_deref(), (all > 16).then_some(text));
            assert!(diagnoses.len() <= MAX_DIAGNOSED + 1);
        }
    }

    #[test]
    fn types_of_jobs_that_are_imported() {
        for number in 0..=127 {
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
            let mut defects = Listed::new(&mut diagnoses);
            let found = jobs(&contents, 0x1000, 0, &mut defects).0.len() == 1;
            assert_eq!(found, kind.is_some_and(JobType::is_replayed), "{kind:?}");
            assert_eq!(diagnoses.is_empty(), found);
        }
    }
}
