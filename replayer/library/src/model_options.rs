// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the model.

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// 1 to [`MAX_THREADS`](crate::device::MAX_THREADS); by default one per processor.
    pub threads: Option<usize>,
    /// On standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
    pub verbose: u8,
    /// Clauses of all jobs of a run; default of `gpureplay-on-model`.
    pub work_limit: Option<u64>,
}
