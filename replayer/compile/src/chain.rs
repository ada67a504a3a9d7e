// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains as they lie in GPU memory: the headers, and where a compute job keeps its thread storage.

use crate::pages::{Memory, Moment};

/// Bytes of a job header.
pub const HEADER_BYTES: u64 = 32;
/// Bytes at the start of a job header that the GPU writes: exception status, first incomplete task, fault pointer.
pub const WRITTEN_BACK: u64 = 16;
/// Job headers lie at multiples of this.
pub const ALIGNMENT: u64 = 64;
/// The longest chain that is followed.
const MAX_JOBS: usize = 1 << 16;

/// Offset of the local-storage pointer in a compute job of Bifrost: header and invocation 64 bytes, word 28 of the draw.
const LOCAL_STORAGE: u64 = 64 + 28 * 4;
/// Type of a compute job.
const COMPUTE: u8 = 4;

/// One job of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobHeader {
    /// GPU virtual address.
    pub va: u64,
    /// Job type (4 is compute).
    pub kind: u8,
    /// Index in the chain, as dependencies name it.
    pub index: u16,
    /// GPU virtual address of the next header; 0 at the end.
    pub next: u64,
}

/// Why a chain cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A header is in memory that is not mapped.
    #[error("the job header at {va:#x} is in memory that the trace does not contain")]
    Unmapped {
        /// Its address.
        va: u64,
    },
    /// A header is not aligned.
    #[error("the job header at {va:#x} is not at a multiple of {ALIGNMENT}")]
    Alignment {
        /// Its address.
        va: u64,
    },
    /// The chain has a cycle, or is very long.
    #[error("the chain has a cycle or more than {MAX_JOBS} jobs (at {va:#x})")]
    Endless {
        /// The header that came too often.
        va: u64,
    },
    /// A job of a type that a replay does not support.
    #[error(
        "the job at {va:#x} is of type {kind}, which is not a compute job; graphics cannot be replayed"
    )]
    Kind {
        /// Its address.
        va: u64,
        /// Its type.
        kind: u8,
    },
}

fn word(bytes: &[u8], index: usize) -> u32 {
    bytes
        .chunks_exact(4)
        .nth(index)
        .map_or(0, |w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
}

/// Follows a chain as it is in memory just before its submission.
pub fn walk(memory: &Memory, moment: Moment, head: u64) -> Result<Vec<JobHeader>, ChainError> {
    let mut out: Vec<JobHeader> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut va = head;
    while va != 0 {
        if !va.is_multiple_of(ALIGNMENT) {
            return Err(ChainError::Alignment { va });
        }
        if !seen.insert(va) || out.len() == MAX_JOBS {
            return Err(ChainError::Endless { va });
        }
        let mut bytes = [0; HEADER_BYTES as usize];
        if !memory.read(moment, va, &mut bytes) {
            return Err(ChainError::Unmapped { va });
        }
        let control = word(&bytes, 4);
        let kind = (control >> 1) as u8 & 0x7f;
        // Null, write value, cache flush, compute, vertex.
        if !(1..=5).contains(&kind) {
            return Err(ChainError::Kind { va, kind });
        }
        let next = u64::from(word(&bytes, 6)) | u64::from(word(&bytes, 7)) << 32;
        out.push(JobHeader {
            va,
            kind,
            index: (control >> 16) as u16,
            next,
        });
        va = next;
    }
    Ok(out)
}

/// Base addresses of the thread-local and workgroup-local storage of a compute job; 0 where there is none.
pub fn local_storage(memory: &Memory, moment: Moment, job: &JobHeader) -> Option<[u64; 2]> {
    if job.kind != COMPUTE {
        return None;
    }
    let mut pointer = [0; 8];
    if !memory.read(moment, job.va.checked_add(LOCAL_STORAGE)?, &mut pointer) {
        return None;
    }
    let mut descriptor = [0; 32];
    let va = u64::from_le_bytes(pointer) & !63;
    if va == 0 || !memory.read(moment, va, &mut descriptor) {
        return None;
    }
    const ADDRESS: u64 = (1 << 48) - 1;
    let address =
        |i| (u64::from(word(&descriptor, i)) | u64::from(word(&descriptor, i + 1)) << 32) & ADDRESS;
    Some([address(2), address(4)])
}

/// Work-items of a compute job along each dimension; `None` for other jobs.
///
/// The invocation's second word says where in the first one each of six numbers begins (docs/jobs.md).
pub fn work_items(memory: &Memory, moment: Moment, job: &JobHeader) -> Option<[u64; 3]> {
    let mut bytes = [0; 8];
    if job.kind != COMPUTE || !memory.read(moment, job.va.checked_add(HEADER_BYTES)?, &mut bytes) {
        return None;
    }
    let (packed, shifts) = (u64::from(word(&bytes, 0)), word(&bytes, 1));
    let bounds = [
        0,
        shifts & 31,
        shifts >> 5 & 31,
        shifts >> 10 & 63,
        shifts >> 16 & 63,
        shifts >> 22 & 63,
        32,
    ];
    let number = |i: usize| {
        let width = bounds[i + 1].saturating_sub(bounds[i]);
        ((packed >> bounds[i].min(32)) & ((1 << width.min(32)) - 1)) + 1
    };
    Some([0, 1, 2].map(|i| number(i) * number(i + 3)))
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
        let mut memory = Memory::default();
        let now = Moment::before(0);
        memory.set(now, 0x1000, Some(&page));
        let mut jobs = walk(&memory, now, 0x1000).unwrap();
        assert_eq!(work_items(&memory, now, &jobs[0]), Some([40, 12, 2]));
        // No shifts make sense of these words, and none may panic.
        memory.set(now, 0x1000, Some(&[0xff; PAGE_SIZE]));
        assert!(work_items(&memory, now, &jobs[0]).is_some());
        jobs[0].kind = 2;
        assert_eq!(work_items(&memory, now, &jobs[0]), None);
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
            jobs.iter().map(|j| (j.va, j.kind)).collect::<Vec<_>>(),
            [(0x1000, 4), (0x1100, 2)]
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
