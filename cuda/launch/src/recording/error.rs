// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a recording.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::recording::Hash;

/// Why a recording is not read or written.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The folder holds no launches.
    #[error("{} is no recording of CUDA launches", .0.display())]
    NotARecording(PathBuf),
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The manifest of a launch is not what it should be.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The manifest is of another version.
    #[error("the launch is of format {found}; this program reads format {known}")]
    Format {
        /// Its version.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// Something has a size that it may not have.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// What it may have.
        limit: u64,
    },
    /// A region of memory is empty, ends beyond the address space, or lies over another one.
    #[error("the region of {size} bytes at {address:#x} {reason}")]
    Region {
        /// Where it begins.
        address: u64,
        /// Its size in bytes.
        size: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A field has a value that it may not have.
    #[error("{field} {reason}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An object does not hold what its name says.
    #[error("the object {0} is damaged: its bytes have another hash")]
    Damaged(Hash),
    /// An object has another size than it should have.
    #[error("the object {hash} does not hold {size} bytes")]
    Size {
        /// Which object.
        hash: Hash,
        /// What it should hold.
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
