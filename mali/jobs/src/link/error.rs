// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why chains cannot be changed.

use crate::walk::{DeepViolation, Full, MAX_LISTED_JOBS};
use gpureplay_format::EncodeError;

/// Why chains cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A broken rule.
    #[error("{0}")]
    Deep(#[from] DeepViolation),
    /// More jobs than listed.
    #[error("more than {MAX_LISTED_JOBS} jobs are submitted, too many to change their chains")]
    TooManyJobs,
    /// Too many descriptors.
    #[error(
        "the chains would need more than {most} pages for descriptors of their own: they stay as they are"
    )]
    TooManyCopies {
        /// Limit.
        most: usize,
    },
    /// Too much is uploaded.
    #[error("action {action} uploads to {address:#x} more than is kept of a recording's memory")]
    Memory {
        /// Action's index.
        action: u32,
        /// Destination.
        address: u64,
    },
    /// The result cannot be stored.
    #[error("the new recording cannot be stored: {0}")]
    Encode(#[from] EncodeError),
    /// Defect of this crate.
    #[error("the new recording is not the same computation: {0}")]
    Different(String),
}

impl From<Full> for LinkError {
    fn from(full: Full) -> Self {
        Self::Memory {
            action: full.action,
            address: full.address,
        }
    }
}
