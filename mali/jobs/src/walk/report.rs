// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the chains of a recording reach.

use mali_facts::Access;
use mali_facts::walk::Purpose;

/// Most jobs of all chains that are walked, each as often as it is submitted; far more than any network has.
pub(crate) const MAX_JOBS: usize = 1 << 18;

/// Memory that a job was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// What it is for.
    pub purpose: Purpose,
    /// First byte.
    pub address: u64,
    /// Bytes, where the descriptors say how many.
    pub length: Option<u64>,
    /// What the job does with it.
    pub access: Access,
}

/// A job of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Address of its header.
    pub address: u64,
    /// Its type in words.
    pub kind: &'static str,
    /// Descriptors that were followed.
    pub descriptors: usize,
    /// What it was given, descriptors left out.
    pub uses: Vec<Use>,
    /// Values in its uniforms that are addresses in regions of the recording: what its shader can reach beyond `uses`
    /// without computing an address itself.
    pub pointers: Vec<u64>,
}

/// A chain that was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Index of the action that submits it.
    pub action: u32,
    /// Its jobs in order.
    pub jobs: Vec<Job>,
}

/// All chains in the order of their submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The chains.
    pub chains: Vec<Chain>,
}

impl Report {
    /// Jobs of all chains.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.chains.iter().flat_map(|chain| &chain.jobs)
    }
}
