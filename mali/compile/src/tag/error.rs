// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a tensor is not found.

use super::Wanted;

/// Why a tensor was not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TagError {
    /// Nothing of it.
    #[error("{wanted}: its elements are nowhere in memory that {}; {hint}", wanted.role.writer())]
    NotFound {
        /// The tensor.
        wanted: Box<Wanted>,
        /// Advice.
        hint: String,
    },
    /// Some elements, but no layout.
    #[error("{wanted}: {found} of its elements were found in memory that {}, but no strides explain where they are: {detail}; {hint}", wanted.role.writer())]
    NoLayout {
        /// The tensor.
        wanted: Box<Wanted>,
        /// Elements seen.
        found: usize,
        /// Examples.
        detail: String,
        /// Advice.
        hint: String,
    },
    /// A part is also elsewhere.
    #[error(
        "input '{name}': elements {first} to {last} are also at {va:#x}, where the rest is not (a partial copy, before job {job}); a replay would not update them"
    )]
    PartialCopy {
        /// Tensor.
        name: String,
        /// First element.
        first: u64,
        /// Last element.
        last: u64,
        /// Its address.
        va: u64,
        /// A possible reader.
        job: usize,
    },
    /// The app writes the input again elsewhere.
    #[error(
        "input '{name}' is written again before job {job}, at {va:#x}; record one inference only"
    )]
    WrittenAgain {
        /// Tensor.
        name: String,
        /// It reappears before this job.
        job: usize,
        /// Where.
        va: u64,
    },
    /// The file cannot be a tensor.
    #[error("'{name}' cannot be a tensor: {why}")]
    Unsupported {
        /// Tensor name.
        name: String,
        /// Why not.
        why: String,
    },
}
