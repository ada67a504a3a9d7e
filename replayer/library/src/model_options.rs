// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be said of the model when it is opened.

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Host threads, 1 to [`MAX_THREADS`](crate::device::MAX_THREADS); by default one per processor.
    pub threads: Option<usize>,
    /// Messages on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
    pub verbose: u8,
    /// Clauses that all jobs of a run may execute; default of `gpureplay-on-model`.
    pub work_limit: Option<u64>,
}
