// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an edit failed.

use gpureplay_core::Violation;
use gpureplay_format::EncodeError;
use gpureplay_jobs::JobsError;
use gpureplay_library::explain;
use mali_jobs::walk::DeepViolation;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Its jobs cannot be listed.
    #[error("{0}")]
    Jobs(#[from] JobsError),
    /// The library could not replay it or use a file.
    #[error("{0}")]
    Library(#[from] gpureplay_library::Error),
    /// No such job.
    #[error("there is no job {job}; {known}")]
    NoJob {
        /// Number asked for.
        job: usize,
        /// Existing jobs.
        known: String,
    },
    /// Not a compute job.
    #[error("job {job} is a {kind} job; only compute jobs can be used like this")]
    NotCompute {
        /// Job.
        job: usize,
        /// Type.
        kind: String,
    },
    /// The job did not run to its end.
    #[error("job {job} {what} does not run to its end on the model: {reason}")]
    Failed {
        /// Job.
        job: usize,
        /// As it is, or changed.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The model did not reach the job.
    #[error("the replay on the model does not come to job {job}: {reason}")]
    NotReached {
        /// Job.
        job: usize,
        /// Why.
        reason: String,
    },
    /// No output can lie there.
    #[error(
        "job {job} writes to {address:#x}, which is no buffer; what it writes there cannot be an output"
    )]
    WritesElsewhere {
        /// Job.
        job: usize,
        /// First address.
        address: u64,
    },
    /// The job writes nothing.
    #[error("job {job} writes nothing, so there is nothing to compare with")]
    WritesNothing {
        /// Job.
        job: usize,
    },
    /// Other bytes than the job's.
    #[error(
        "the extracted job {job} gives another byte at {address:#x}: {found:#04x} instead of {expected:#04x}; it reads something that was not seen"
    )]
    NotReproduced {
        /// Job.
        job: usize,
        /// Where.
        address: u64,
        /// Job's byte.
        expected: u8,
        /// Extract's byte.
        found: u8,
    },
    /// A size does not fit GPU or job.
    #[error("{0}")]
    Size(String),
    /// A shader does not fit.
    #[error("{gate}: {reason}")]
    Gate {
        /// Check.
        gate: &'static str,
        /// Reason.
        reason: String,
    },
    /// The changed job computes something else.
    #[error("{0}")]
    Differs(String),
    /// Memory that neither the recorded job nor a tensor has.
    #[error("{0}")]
    Outside(String),
    /// Too little is known to try it.
    #[error("{0}")]
    NoInput(String),
    /// It cannot be encoded.
    #[error("the new recording cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// The new recording breaks a rule.
    #[error("the new recording breaks a rule: {}", explain::violation(.0))]
    Rule(Violation),
    /// Its job chains break a rule.
    #[error("the new recording breaks a rule: {0}")]
    Deep(#[from] DeepViolation),
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, EditError>;

pub(crate) fn gate<T>(gate: &'static str, reason: String) -> Result<T> {
    Err(EditError::Gate { gate, reason })
}
