// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs of a recording's chains.

use std::collections::HashMap;

use crate::walk::{MAX_LISTED_JOBS, Submission, submissions};
use mali_drive::Verified;
use mali_facts::{Job, follow};

use crate::link::error::LinkError;

#[derive(Default)]
pub(crate) struct Count(usize);

impl Count {
    pub(crate) fn add(&mut self, jobs: usize) -> Result<(), LinkError> {
        self.0 = self.0.saturating_add(jobs);
        match self.0 > MAX_LISTED_JOBS {
            true => Err(LinkError::TooManyJobs),
            false => Ok(()),
        }
    }
}

pub(crate) fn chains(verified: &Verified<'_>) -> Result<Vec<Vec<Job>>, LinkError> {
    let mut count = Count::default();
    let mut chains = Vec::new();
    submissions(verified, |submission: &Submission<'_>| {
        let followed = follow(submission.memory, submission.head);
        count.add(followed.length as usize)?;
        chains.push(followed.jobs(submission.memory).collect());
        Ok::<(), LinkError>(())
    })?;
    Ok(chains)
}

#[derive(Default)]
pub(crate) struct Indices(HashMap<u64, u64>);

impl Indices {
    pub(crate) fn of<'a>(chain: impl Iterator<Item = &'a Job>) -> Self {
        let mut places = HashMap::new();
        for (place, job) in (1..).zip(chain) {
            places.entry(job.header.index()).or_insert(place);
        }
        Self(places)
    }

    /// In the chain, from 1; index 0 is no job.
    pub(crate) fn place(&self, index: u64) -> Option<u64> {
        self.0.get(&index).copied().filter(|_| index != 0)
    }
}
