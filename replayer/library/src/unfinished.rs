// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a chain's unfinished job, which a GPU-wide error does not name.

use gpureplay_core::Gpu;
use mali_facts::registers::JobStatus;
use mali_facts::{JobHeader, LONGEST_CHAIN};

/// The first job whose header lacks DONE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// GPU address of its header.
    pub address: u64,
    /// In the chain, from 1.
    pub number: u32,
    /// Jobs of the chain.
    pub jobs: u32,
}

/// `None`: all headers say DONE, or one cannot be read.
pub(crate) fn first(gpu: &mut dyn Gpu, head: u64) -> Option<Unfinished> {
    let mut found = None;
    let (mut at, mut jobs) = (head, 0);
    while at != 0 && jobs < LONGEST_CHAIN {
        let mut bytes = [0; JobHeader::SIZE];
        gpu.read_memory(at, &mut bytes).ok()?;
        let header = JobHeader::from_bytes(&bytes);
        jobs += 1;
        let status = JobStatus(header.words.first().copied()? & 0xff);
        if found.is_none() && status != JobStatus::DONE {
            found = Some((at, jobs));
        }
        at = header.next();
    }
    found.map(|(address, number)| Unfinished {
        address,
        number,
        jobs,
    })
}
