// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be said of the model when it is opened.

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Host threads that the model uses, 1 to [`MAX_THREADS`](crate::device::MAX_THREADS); one per processor if not given.
    pub threads: Option<usize>,
    /// Messages on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
    pub verbose: u8,
    /// What all jobs of a run together may do, in clauses; those of `gpureplay-on-model` if not given.
    pub work_limit: Option<u64>,
}
