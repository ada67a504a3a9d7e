// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job chains: headers, each with the next one's address.
//!
//! [`follow`] allocates nothing, and ends on every memory; then [`Chain::jobs`] lists jobs.

use core::fmt;

use crate::job::{ALIGNMENT, JobHeader, JobType};

/// Indices have 16 bits; 0 is no job.
pub const LONGEST_CHAIN: u32 = u16::MAX as u32;

/// Known GPU memory.
pub trait Memory {
    /// False: some is unknown, `to` holds anything.
    fn read(&self, va: u64, to: &mut [u8]) -> bool;
}

impl<F: Fn(u64, &mut [u8]) -> bool> Memory for F {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        self(va, to)
    }
}

/// A job of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// GPU virtual, of the header.
    pub address: u64,
    /// Header.
    pub header: JobHeader,
}

impl Job {
    /// `None`: no such type.
    pub fn job_type(&self) -> Option<JobType> {
        JobType::from_bits(self.header.job_type())
    }

    /// Index that dependencies name.
    pub fn index(&self) -> u16 {
        self.header.index() as u16
    }
}

/// How a chain ends, with the unusable header's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// No next header.
    Complete,
    /// Not a multiple of [`ALIGNMENT`].
    Misaligned(u64),
    /// In unknown memory.
    Unknown(u64),
    /// A header comes again.
    Loop(u64),
    /// A header after [`LONGEST_CHAIN`] others.
    TooLong(u64),
}

impl fmt::Display for ChainEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainEnd::Complete => f.write_str("the chain is complete"),
            ChainEnd::Misaligned(_) => write!(f, "the job is not aligned to {ALIGNMENT} bytes"),
            ChainEnd::Unknown(_) => f.write_str("the job is in memory that is not known"),
            ChainEnd::Loop(_) => f.write_str("the chain returns to this job"),
            ChainEnd::TooLong(_) => write!(f, "the chain has more than {LONGEST_CHAIN} jobs"),
        }
    }
}

/// What [`follow`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// First header; 0 for none.
    pub head: u64,
    /// Different headers before the end.
    pub length: u32,
    /// How it ends.
    pub end: ChainEnd,
}

impl Chain {
    /// Jobs in the chain's order; fewer if memory has changed.
    pub fn jobs<'m, M: Memory + ?Sized>(
        &self,
        memory: &'m M,
    ) -> impl Iterator<Item = Job> + use<'m, M> {
        let (mut address, mut left) = (self.head, self.length);
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let header = header(memory, address)?;
            let job = Job { address, header };
            address = header.next();
            Some(job)
        })
    }
}

fn header<M: Memory + ?Sized>(memory: &M, address: u64) -> Option<JobHeader> {
    let mut bytes = [0; JobHeader::SIZE];
    let known = memory.read(address, &mut bytes);
    known.then(|| JobHeader::from_bytes(&bytes))
}

/// Follows a chain from `head`, regardless of job types.
///
/// Reads each header once, or a few times in a loop.
pub fn follow<M: Memory + ?Sized>(memory: &M, head: u64) -> Chain {
    let (mut address, mut length) = (head, 0);
    let mut excess = 0;
    // Brent's algorithm: the mark moves up after `span` headers, which doubles. A loop in the longest chain is met
    // within three times its length.
    let (mut mark, mut since, mut span) = (head, 0, 1);
    let end = loop {
        if length == LONGEST_CHAIN {
            excess = address;
        }
        if address == 0 {
            break ChainEnd::Complete;
        }
        if !address.is_multiple_of(ALIGNMENT) {
            break ChainEnd::Misaligned(address);
        }
        if since != 0 && address == mark {
            match start_of_loop(memory, head, since) {
                Some((start, before)) if before + since <= LONGEST_CHAIN => {
                    let (length, end) = (before + since, ChainEnd::Loop(start));
                    return Chain { head, length, end };
                }
                _ => break ChainEnd::TooLong(excess),
            }
        }
        let header = match header(memory, address) {
            Some(header) if length < 4 * LONGEST_CHAIN => header,
            _ => break ChainEnd::Unknown(address),
        };
        if since == span {
            (mark, since, span) = (address, 0, span * 2);
        }
        (address, length, since) = (header.next(), length + 1, since + 1);
    };
    match excess {
        0 => Chain { head, length, end },
        _ => Chain {
            head,
            length: LONGEST_CHAIN,
            end: ChainEnd::TooLong(excess),
        },
    }
}

/// First header of a loop, and how many precede it.
fn start_of_loop<M: Memory + ?Sized>(memory: &M, head: u64, span: u32) -> Option<(u64, u32)> {
    let next = |address| header(memory, address).map(|header| header.next());
    let mut ahead = head;
    for _ in 0..span {
        ahead = next(ahead)?;
    }
    let (mut address, mut before) = (head, 0);
    while address != ahead {
        (address, ahead) = (next(address)?, next(ahead)?);
        before += 1;
    }
    Some((address, before))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::vec::Vec;

    use super::*;

    /// Headers at multiples of 64; `next[i]` is the number after number `i + 1`.
    fn chain(next: &[u32], reads: &Cell<usize>) -> impl Memory {
        move |va: u64, to: &mut [u8]| {
            reads.set(reads.get() + 1);
            let Some(&next) = (va / 64).checked_sub(1).and_then(|i| next.get(i as usize)) else {
                return false;
            };
            to.fill(0);
            to[24..].copy_from_slice(&(64 * u64::from(next)).to_le_bytes());
            true
        }
    }

    fn followed(next: &[u32]) -> (u32, ChainEnd, usize) {
        let reads = Cell::new(0);
        let memory = chain(next, &reads);
        let chain = follow(&memory, 64);
        let reads = reads.get();
        let jobs: Vec<_> = chain.jobs(&memory).collect();
        assert_eq!(jobs.len(), chain.length as usize);
        let mut addresses: Vec<_> = jobs.iter().map(|job| job.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), jobs.len(), "all are different");
        (chain.length, chain.end, reads)
    }

    #[test]
    fn chains_end() {
        assert_eq!(followed(&[0]), (1, ChainEnd::Complete, 1));
        assert_eq!(followed(&[3, 0, 2]), (3, ChainEnd::Complete, 3));
        assert_eq!(followed(&[2, 9]), (2, ChainEnd::Unknown(9 * 64), 3));
        let none = follow(&|_: u64, _: &mut [u8]| false, 0);
        assert_eq!((none.length, none.end), (0, ChainEnd::Complete));
        let skewed = follow(&|_: u64, _: &mut [u8]| true, 32);
        assert_eq!((skewed.length, skewed.end), (0, ChainEnd::Misaligned(32)));
    }

    #[test]
    fn every_loop_is_found_where_it_closes() {
        for length in 1..40 {
            for back in 1..=length {
                let mut next: Vec<u32> = (2..=length).collect();
                next.push(back);
                let (found, end, reads) = followed(&next);
                assert_eq!((found, end), (length, ChainEnd::Loop(64 * u64::from(back))));
                assert!(reads <= 6 * length as usize, "{reads} for {length}");
            }
        }
    }

    #[test]
    fn the_longest_chain() {
        let chain = |length, last| (2..=length).chain([last]).collect::<Vec<u32>>();
        let excess = 64 * u64::from(LONGEST_CHAIN + 1);
        let most = LONGEST_CHAIN;
        for (length, last, end) in [
            (most, 0, ChainEnd::Complete),
            (most, 1, ChainEnd::Loop(64)),
            (most, most, ChainEnd::Loop(64 * u64::from(most))),
            (most + 1, 0, ChainEnd::TooLong(excess)),
            (most + 1, 1, ChainEnd::TooLong(excess)),
            (most + 1, most + 1, ChainEnd::TooLong(excess)),
            (most, 1 << 20, ChainEnd::TooLong(64 << 20)),
            (5 * most, 0, ChainEnd::TooLong(excess)),
            (5 * most, 5 * most, ChainEnd::TooLong(excess)),
        ] {
            let (found, how, _) = followed(&chain(length, last));
            assert_eq!((found, how), (most, end), "{length} {last}");
        }
    }
}
