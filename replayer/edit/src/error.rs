// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a recording was not taken apart or changed.

use gpureplay_core::Violation;
use gpureplay_format::EncodeError;
use gpureplay_jobs::JobsError;
use gpureplay_library::explain;
use mali_jobs::walk::DeepViolation;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The jobs of the recording cannot be listed.
    #[error("{0}")]
    Jobs(#[from] JobsError),
    /// The library could not replay it, or a file could not be used.
    #[error("{0}")]
    Library(#[from] gpureplay_library::Error),
    /// There is no such job.
    #[error("there is no job {job}; {known}")]
    NoJob {
        /// The number that was asked for.
        job: usize,
        /// Which there are.
        known: String,
    },
    /// It can be done with compute jobs only.
    #[error("job {job} is a {kind} job; only compute jobs can be used like this")]
    NotCompute {
        /// The job.
        job: usize,
        /// Its type.
        kind: String,
    },
    /// The job did not run to its end.
    #[error("job {job} {what} does not run to its end on the model: {reason}")]
    Failed {
        /// The job.
        job: usize,
        /// In which form: as it is, or changed.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The model did not come to the job.
    #[error("the replay on the model does not come to job {job}: {reason}")]
    NotReached {
        /// The job.
        job: usize,
        /// Why.
        reason: String,
    },
    /// The job writes where an output of a recording cannot lie.
    #[error(
        "job {job} writes to {address:#x}, which is no buffer; what it writes there cannot be an output"
    )]
    WritesElsewhere {
        /// The job.
        job: usize,
        /// The first address.
        address: u64,
    },
    /// The job writes nothing.
    #[error("job {job} writes nothing, so there is nothing to compare with")]
    WritesNothing {
        /// The job.
        job: usize,
    },
    /// The extracted recording did not give the bytes that the job gave.
    #[error(
        "the extracted job {job} gives another byte at {address:#x}: {found:#04x} instead of {expected:#04x}; it reads something that was not seen"
    )]
    NotReproduced {
        /// The job.
        job: usize,
        /// Where.
        address: u64,
        /// What the job gave.
        expected: u8,
        /// What the extracted one gives.
        found: u8,
    },
    /// A size that the GPU does not run, or that does not fit the job.
    #[error("{0}")]
    Size(String),
    /// A shader that does not fit the job.
    #[error("{gate}: {reason}")]
    Gate {
        /// What was checked.
        gate: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// The changed job computes something else.
    #[error("{0}")]
    Differs(String),
    /// The changed job reaches memory that neither the recorded one reached nor a tensor holds.
    #[error("{0}")]
    Outside(String),
    /// Not enough is known to try it.
    #[error("{0}")]
    NoInput(String),
    /// The new recording cannot be encoded.
    #[error("the new recording cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// The new recording breaks a rule.
    #[error("the new recording breaks a rule: {}", explain::violation(.0))]
    Rule(Violation),
    /// The new recording breaks a rule about job chains.
    #[error("the new recording breaks a rule: {0}")]
    Deep(#[from] DeepViolation),
}

/// What all functions of this crate return.
pub type Result<T> = std::result::Result<T, EditError>;

/// A gate that a change does not pass.
pub(crate) fn gate<T>(gate: &'static str, reason: String) -> Result<T> {
    Err(EditError::Gate { gate, reason })
}
