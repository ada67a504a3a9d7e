// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of recordings.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::recording::Hash;

/// Why a recording is not read or written.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The directory holds no launches.
    #[error("{} is no recording of CUDA launches", .0.display())]
    NotARecording(PathBuf),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// File.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A bad manifest.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// File.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A manifest of another version.
    #[error("the launch is of format {found}; this program reads format {known}")]
    Format {
        /// Its version.
        found: u32,
        /// The supported version.
        known: u32,
    },
    /// Something is too large.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Limit.
        limit: u64,
    },
    /// A region is empty, too high, or overlaps.
    #[error("the region of {size} bytes at {address:#x} {reason}")]
    Region {
        /// Start.
        address: u64,
        /// Bytes.
        size: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A field has a forbidden value.
    #[error("{field} {reason}")]
    Field {
        /// Field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An object does not fit its name.
    #[error("the object {0} is damaged: its bytes have another hash")]
    Damaged(Hash),
    /// An object has another size.
    #[error("the object {hash} does not hold {size} bytes")]
    Size {
        /// Object.
        hash: Hash,
        /// Wanted bytes.
        size: u64,
    },
}

impl RecordingError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
