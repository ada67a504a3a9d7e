// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording's chains reach.

use mali_facts::Access;
use mali_facts::walk::Purpose;

/// Counted at each submission; no network has as many.
pub(crate) const MAX_JOBS: usize = 1 << 18;

/// Memory that a job was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// What it is for.
    pub purpose: Purpose,
    /// First byte.
    pub address: u64,
    /// Bytes, where descriptors say.
    pub length: Option<u64>,
    /// What the job does with it.
    pub access: Access,
}

/// Job of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Address of its header.
    pub address: u64,
    /// Type in words.
    pub kind: &'static str,
    /// How many were followed.
    pub descriptors: usize,
    /// Memory besides descriptors.
    pub uses: Vec<Use>,
    /// Addresses of regions among its uniforms, which its shader reaches directly.
    pub pointers: Vec<u64>,
}

/// Submitted chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Index.
    pub action: u32,
    /// In order.
    pub jobs: Vec<Job>,
}

/// Report on all chains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of submission.
    pub chains: Vec<Chain>,
}

impl Report {
    /// Jobs of all chains.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.chains.iter().flat_map(|chain| &chain.jobs)
    }
}
