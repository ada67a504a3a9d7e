// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a tensor is not found where its file says that it must be.

use super::Wanted;

/// Why a tensor was not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TagError {
    /// Nothing of it is there.
    #[error("{wanted}: its elements are nowhere in memory that {}; {hint}", wanted.role.writer())]
    NotFound {
        /// What was looked for.
        wanted: Box<Wanted>,
        /// What the user can do.
        hint: String,
    },
    /// Some elements are there, but no layout explains them.
    #[error("{wanted}: {found} of its elements were found in memory that {}, but no strides explain where they are: {detail}; {hint}", wanted.role.writer())]
    NoLayout {
        /// What was looked for.
        wanted: Box<Wanted>,
        /// Elements of which the pattern was seen.
        found: usize,
        /// Examples of what was found.
        detail: String,
        /// What the user can do.
        hint: String,
    },
    /// A part of the tensor is also somewhere else.
    #[error(
        "input '{name}': elements {first} to {last} are also at {va:#x}, where the rest is not (a partial copy, before job {job}); a replay would not update them"
    )]
    PartialCopy {
        /// Name of the tensor.
        name: String,
        /// First element of the part.
        first: u64,
        /// Last element of the part.
        last: u64,
        /// Where it lies.
        va: u64,
        /// The job that may read it.
        job: usize,
    },
    /// The app writes the input again to another place.
    #[error(
        "input '{name}' is written again before job {job}, at {va:#x}; record one inference only"
    )]
    WrittenAgain {
        /// Name of the tensor.
        name: String,
        /// The job before which it appears again.
        job: usize,
        /// Where.
        va: u64,
    },
    /// The file cannot be a tensor of a recording.
    #[error("'{name}' cannot be a tensor: {why}")]
    Unsupported {
        /// Name of the tensor.
        name: String,
        /// Why not.
        why: String,
    },
}
