// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains: which the driver started, and what their headers say.

use std::collections::BTreeSet;

use mali_regs::job_slot;

use crate::files::word64;
use crate::{Contents, Diagnosis, Direction, History};

/// Job slots of every GPU with a job manager.
const SLOTS: u32 = 3;
/// Longest chain that is followed.
const MAX_JOBS: usize = 4096;
/// JS_COMMAND_NEXT: start.
const START: u32 = 1;
/// Status of a job that ended well.
const DONE: u32 = 1;

/// A job header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobHeader {
    /// GPU address.
    pub va: u64,
    /// Status word in the dump.
    pub status: u32,
    /// Job type: 4 is compute.
    pub job_type: u8,
    /// Index in the order of creation.
    pub index: u16,
}

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
    pub jobs: Vec<JobHeader>,
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
                if is(job_slot::COMMAND_NEXT) && access.value == START {
                    let [low, high, config, affinity, flush_id] = *registers;
                    let head = u64::from(high) << 32 | u64::from(low);
                    let jobs = follow(contents, head, chains.len(), diagnoses);
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

/// The headers of a chain; empty when one of them is not in the dump.
fn follow(
    contents: &Contents,
    head: u64,
    submission: usize,
    diagnoses: &mut Vec<Diagnosis>,
) -> Vec<JobHeader> {
    let mut jobs = Vec::new();
    let mut seen = BTreeSet::new();
    let mut va = head;
    while va != 0 && jobs.len() < MAX_JOBS && seen.insert(va) {
        let mut header = [0; 32];
        let word =
            |header: &[u8; 32], i: usize| (word64(&header[i & !7..]) >> (8 * (i & 7))) as u32;
        // Headers are aligned, and a chain ends in a compute, cache flush, null or write-value job.
        let found = va.is_multiple_of(64) && contents.read(va, &mut header).is_some();
        let control = word(&header, 16);
        let job_type = (control >> 1 & 0x7f) as u8;
        if !found || job_type == 0 || job_type > 11 {
            diagnoses.push(Diagnosis::JobNotCaptured { submission, va });
            return Vec::new();
        }
        let status = word(&header, 0);
        if status > DONE {
            diagnoses.push(Diagnosis::JobStatus {
                submission,
                va,
                status,
            });
        }
        jobs.push(JobHeader {
            va,
            status,
            job_type,
            index: (control >> 16) as u16,
        });
        va = if control & 1 == 1 {
            word64(&header[24..])
        } else {
            u64::from(word(&header, 24))
        };
    }
    jobs
}

/// Addresses of thread-local and workgroup-local storage that a compute job names.
pub(crate) fn storage(contents: &Contents, job: &JobHeader) -> Option<[u64; 2]> {
    const COMPUTE: u8 = 4;
    const VERTEX: u8 = 5;
    if job.job_type != COMPUTE && job.job_type != VERTEX {
        return None;
    }
    let mut pointer = [0; 8];
    contents.read(job.va.checked_add(0xb0)?, &mut pointer)?;
    let storage = u64::from_le_bytes(pointer) & !63;
    if storage == 0 {
        return None;
    }
    let mut descriptor = [0; 64];
    contents.read(storage, &mut descriptor)?;
    Some([word64(&descriptor[8..]), word64(&descriptor[16..])])
}
