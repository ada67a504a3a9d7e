// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a chain's jobs ended.

use mali_facts::registers::JobStatus;
use mali_facts::{Chain, ChainEnd, follow};

/// Status of a job that ended well.
pub const DONE: u32 = JobStatus::DONE.0;

/// A header's first bytes, written by the GPU. Cleared, they say that the job did not run.
pub const WRITTEN_BACK: usize = mali_facts::job::WRITTEN_BACK as usize;

/// What a job's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Of the header.
    pub address: u64,
    /// [`DONE`], 0 (it did not run), or why it ended.
    pub status: u32,
    /// GPU address of a refused access.
    pub fault_address: u64,
}

impl Job {
    /// Whether it ended well.
    pub fn is_done(&self) -> bool {
        self.status == DONE
    }

    /// Taken off the GPU by no fault of its own, or not run.
    pub fn was_interrupted(&self) -> bool {
        [0, JobStatus::STOPPED.0, JobStatus::TERMINATED.0].contains(&(self.status & 0xff))
    }
}

/// A chain's jobs, in memory that a function reads: `false` where there is none.
pub struct Ends<M> {
    memory: M,
    chain: Chain,
}

impl<M: Fn(u64, &mut [u8]) -> bool> Ends<M> {
    /// Follows a chain.
    pub fn of(memory: M, head: u64) -> Self {
        let chain = follow(&memory, head);
        Self { memory, chain }
    }

    /// The chain has an end, and all headers can be read.
    pub fn is_whole(&self) -> bool {
        self.chain.end == ChainEnd::Complete
    }

    /// In order; up to what cannot be read.
    pub fn jobs(&self) -> impl Iterator<Item = Job> {
        let jobs = self.chain.jobs(&self.memory);
        jobs.map(|job| Job {
            address: job.address,
            status: job.header.exception_status() as u32,
            fault_address: job.header.fault_pointer(),
        })
    }

    /// A slot's status: of the first job that did not end well. `well`: as the driver says.
    pub fn status(&self, well: bool) -> u32 {
        let left = self.jobs().find(|job| job.status & 0xff != DONE);
        match left {
            Some(job) => job.status & 0xff,
            None if !self.is_whole() => JobStatus::JOB_READ_FAULT.0,
            None => status(well),
        }
    }
}

/// Status of work of which only the driver says how it ended.
pub const fn status(well: bool) -> u32 {
    match well {
        true => DONE,
        false => JobStatus::UNKNOWN.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Headers of 32 bytes from 0x40 on, with these statuses; the last one's next is `last`.
    fn chain(statuses: &[u32], last: u64) -> Vec<u8> {
        let mut memory = std::vec![0; 0x40 + 0x40 * statuses.len()];
        for (at, status) in (0x40..).step_by(0x40).zip(statuses) {
            let next = at as u64 + 0x40;
            let next = if next == memory.len() as u64 {
                last
            } else {
                next
            };
            memory[at..at + 4].copy_from_slice(&status.to_le_bytes());
            memory[at + 24..at + 32].copy_from_slice(&next.to_le_bytes());
            // 64-bit addresses.
            memory[at + 16] = 1;
        }
        memory
    }

    fn ends(memory: &[u8]) -> Ends<impl Fn(u64, &mut [u8]) -> bool> {
        let read = |va: u64, to: &mut [u8]| {
            let found = memory
                .get(va as usize..)
                .and_then(|rest| rest.get(..to.len()));
            found.inspect(|found| to.copy_from_slice(found)).is_some()
        };
        Ends::of(read, 0x40)
    }

    #[test]
    fn the_first_job_that_did_not_end_well_decides() {
        let fault = JobStatus::TRANSLATION_FAULT_3.0;
        let memory = chain(&[DONE, fault, 0, DONE], 0);
        let ends = ends(&memory);
        assert!(ends.is_whole());
        let jobs: Vec<Job> = ends.jobs().collect();
        assert_eq!(jobs.len(), 4);
        assert_eq!((jobs[1].address, jobs[1].status), (0x80, fault));
        assert_eq!(ends.status(true), fault);
        assert!(!jobs[1].was_interrupted() && jobs[2].was_interrupted());
    }

    #[test]
    fn a_driver_that_complains_is_believed() {
        let memory = chain(&[DONE, DONE], 0);
        assert_eq!(ends(&memory).status(true), DONE);
        assert_eq!(ends(&memory).status(false), JobStatus::UNKNOWN.0);
    }

    #[test]
    fn a_chain_without_an_end_is_not_whole() {
        for last in [0x40, 0x4000] {
            let memory = chain(&[DONE, DONE], last);
            assert!(!ends(&memory).is_whole(), "{last:#x}");
            assert_eq!(ends(&memory).status(true), JobStatus::JOB_READ_FAULT.0);
        }
    }
}
