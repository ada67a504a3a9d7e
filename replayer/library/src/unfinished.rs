// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a chain's unfinished job, which a GPU-wide error does not name.

use std::cell::RefCell;

use gpureplay_core::Gpu;
use mali_drive::ends::{Ends, Job};

/// The first job whose header lacks DONE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// GPU address of its header.
    pub address: u64,
    /// In the chain, from 1.
    pub number: usize,
    /// Jobs of the chain.
    pub jobs: usize,
}

/// `None`: all headers say DONE, or one cannot be read.
pub(crate) fn first(gpu: &mut dyn Gpu, head: u64) -> Option<Unfinished> {
    let gpu = RefCell::new(gpu);
    let read = |va, to: &mut [u8]| gpu.borrow_mut().read_memory(va, to).is_ok();
    let ends = Ends::of(read, head);
    let jobs: Vec<Job> = ends.is_whole().then(|| ends.jobs().collect())?;
    let (left, job) = jobs.iter().enumerate().find(|(_, job)| !job.is_done())?;
    Some(Unfinished {
        address: job.address,
        number: left + 1,
        jobs: jobs.len(),
    })
}
