// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains in GPU memory.

use mali_facts::job::ALIGNMENT;
use mali_facts::{Architecture, ChainEnd, Job, JobType, LONGEST_CHAIN, Launch, follow};

use crate::pages::{Memory, Moment};

/// Why a chain cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Header in unmapped memory.
    #[error("the job header at {va:#x} is in memory that the trace does not contain")]
    Unmapped {
        /// Header address.
        va: u64,
    },
    /// Misaligned header.
    #[error("the job header at {va:#x} is not at a multiple of {ALIGNMENT}")]
    Alignment {
        /// Header address.
        va: u64,
    },
    /// A cycle, or too long.
    #[error("the chain has a cycle or more than {LONGEST_CHAIN} jobs (at {va:#x})")]
    Endless {
        /// The repeated header.
        va: u64,
    },
    /// Unsupported job type.
    #[error(
        "the job at {va:#x} is of type {kind}, which is not a compute job; graphics cannot be replayed"
    )]
    Kind {
        /// Job address.
        va: u64,
        /// Job type.
        kind: u8,
    },
}

/// Follows a chain in memory just before its submission.
///
/// # Errors
/// The chain does not end, or a job is not [`JobType::is_replayed`].
pub fn walk(memory: &Memory, moment: Moment, head: u64) -> Result<Vec<Job>, ChainError> {
    let read = |va: u64, to: &mut [u8]| memory.read(moment, va, to);
    let chain = follow(&read, head);
    let jobs: Vec<Job> = chain.jobs(&read).collect();
    for job in &jobs {
        if !job.job_type().is_some_and(JobType::is_replayed) {
            let (va, kind) = (job.address, job.header.job_type() as u8);
            return Err(ChainError::Kind { va, kind });
        }
    }
    match chain.end {
        ChainEnd::Complete => Ok(jobs),
        ChainEnd::Misaligned(va) => Err(ChainError::Alignment { va }),
        ChainEnd::Unknown(va) => Err(ChainError::Unmapped { va }),
        ChainEnd::Loop(va) | ChainEnd::TooLong(va) => Err(ChainError::Endless { va }),
    }
}

/// What a compute job launches, by its descriptors at a moment; `None` for other jobs and invalid descriptors.
pub fn launch(
    memory: &Memory,
    moment: Moment,
    job: &Job,
    architecture: Architecture,
) -> Option<Launch> {
    let read = |va: u64, to: &mut [u8]| memory.read(moment, va, to);
    Launch::read(&read, job, architecture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_trace::PAGE_SIZE;

    fn header(page: &mut [u8; PAGE_SIZE], at: usize, kind: u32, next: u64) {
        page[at + 16..at + 20].copy_from_slice(&(kind << 1 | 1 << 16).to_le_bytes());
        page[at + 24..at + 32].copy_from_slice(&next.to_le_bytes());
    }

    #[test]
    fn work_items_are_groups_times_their_size() {
        let mut page = [0; PAGE_SIZE];
        header(&mut page, 0, 4, 0);
        // 8 x 4 x 1 threads a group, 5 x 3 x 2 groups.
        page[32..36].copy_from_slice(&(7 | 3 << 3 | 4 << 5 | 2 << 8 | 1u32 << 10).to_le_bytes());
        page[36..40].copy_from_slice(&(3 | 5 << 5 | 5 << 10 | 8 << 16 | 10u32 << 22).to_le_bytes());
        page[120..128].copy_from_slice(&0x1800u64.to_le_bytes());
        let mut memory = Memory::default();
        let now = Moment::before(0);
        let items =
            |memory: &Memory, job: &Job| Some(launch(memory, now, job, Architecture::V7)?.items());
        memory.set(now, 0x1000, Some(&page));
        let mut jobs = walk(&memory, now, 0x1000).unwrap();
        assert_eq!(items(&memory, &jobs[0]), Some([40, 12, 2]));
        memory.set(now, 0x1000, Some(&[0xff; PAGE_SIZE]));
        assert_eq!(items(&memory, &jobs[0]), None);
        header(&mut page, 0, 2, 0);
        memory.set(now, 0x1000, Some(&page));
        jobs = walk(&memory, now, 0x1000).unwrap();
        assert_eq!(items(&memory, &jobs[0]), None);
    }

    #[test]
    fn chains_are_followed_to_the_end() {
        let mut page = [0; PAGE_SIZE];
        header(&mut page, 0, 4, 0x1100);
        header(&mut page, 0x100, 2, 0);
        header(&mut page, 0x200, 4, 0x1200);
        header(&mut page, 0x300, 4, 0x9000);
        header(&mut page, 0x400, 9, 0);
        let mut memory = Memory::default();
        let now = Moment::before(0);
        memory.set(now, 0x1000, Some(&page));
        let jobs = walk(&memory, now, 0x1000).unwrap();
        assert_eq!(
            jobs.iter()
                .map(|job| (job.address, job.job_type().unwrap()))
                .collect::<Vec<_>>(),
            [(0x1000, JobType::Compute), (0x1100, JobType::WriteValue)]
        );
        assert_eq!(
            walk(&memory, now, 0x1200),
            Err(ChainError::Endless { va: 0x1200 })
        );
        assert_eq!(
            walk(&memory, now, 0x1300),
            Err(ChainError::Unmapped { va: 0x9000 })
        );
        assert_eq!(
            walk(&memory, now, 0x1400),
            Err(ChainError::Kind {
                va: 0x1400,
                kind: 9
            })
        );
        assert_eq!(
            walk(&memory, now, 0x1010),
            Err(ChainError::Alignment { va: 0x1010 })
        );
    }
}
