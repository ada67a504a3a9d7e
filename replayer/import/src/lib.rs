// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of the original GPUReplay (2022), read and converted.
//!
//! The original writes four files: the history of register accesses (`gr_io_history`), the page tables
//! (`gr_pgt`), pages of GPU memory (`gr_mem_contents`) and the ranges that the app synchronised between CPU and GPU
//! (`gr_sync_as`). They hold no weights and no names. [`read_directory`] reads them, noting every defect it finds as a
//! [`Diagnosis`] with a name; [`convert`] makes a recording of them. A [`Description`] adds what the files do not
//! know: which ranges are which tensors, and which jobs form a layer.
//!
//! Nothing here trusts the files: every count is checked against the bytes that are there.
#![forbid(unsafe_code)]

mod chains;
mod code;
mod convert;
mod description;
mod diagnosis;
mod files;
mod memory;
mod reach;

use std::path::{Path, PathBuf};

pub use chains::Chain;
pub use convert::{ConvertError, Imported, Options, convert};
pub use description::{
    Description, DescriptionError, SegmentEntry, TensorEntry, built_in, fingerprint,
};
pub use diagnosis::Diagnosis;
pub use files::contents::{Contents, MemoryRegion};
pub use files::history::{Access, Direction, History};
pub use files::ranges::{Range, Ranges};
pub use files::tables::{Leaf, PageTables};
pub use memory::{Image, MappedRun};

/// Names of the four files, in the order in which they are read.
pub const FILES: [&str; 4] = ["gr_io_history", "gr_pgt", "gr_mem_contents", "gr_sync_as"];

/// Longest file that is read, in bytes.
pub const MAX_FILE: u64 = 4 << 30;

/// Why an original recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing or unreadable.
    #[error(
        "{path}: {source}; an original recording is a directory with the files gr_io_history, gr_pgt, gr_mem_contents and gr_sync_as"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is longer than [`MAX_FILE`].
    #[error("{path} has {length} bytes, more than the {MAX_FILE} that an import reads")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// A file is so damaged that nothing can be made of it.
    #[error("{file}: {reason}")]
    Unusable {
        /// The file's name.
        file: &'static str,
        /// What is wrong and where.
        reason: String,
    },
}

/// The four files of an original recording.
#[derive(Debug)]
pub struct Original {
    /// Register accesses.
    pub history: History,
    /// Page tables.
    pub tables: PageTables,
    /// Pages of GPU memory.
    pub contents: Contents,
    /// Synchronised ranges.
    pub ranges: Ranges,
    /// What was found wrong, in file order.
    pub diagnoses: Vec<Diagnosis>,
}

/// Reads the four files in `directory`.
///
/// # Errors
/// A file is missing, unreadable or beyond use. Lesser defects are in [`Original::diagnoses`].
pub fn read_directory(directory: &Path) -> Result<Original, ReadError> {
    let read = |name: &str| -> Result<Vec<u8>, ReadError> {
        let path = directory.join(name);
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(source) => return Err(ReadError::File { path, source }),
        };
        if length > MAX_FILE {
            return Err(ReadError::TooLong { path, length });
        }
        std::fs::read(&path).map_err(|source| ReadError::File { path, source })
    };
    let [history, tables, contents, ranges] = FILES;
    read_files(
        &read(history)?,
        &read(tables)?,
        read(contents)?,
        &read(ranges)?,
    )
}

/// Reads the four files from memory: `gr_io_history`, `gr_pgt`, `gr_mem_contents`, `gr_sync_as`.
///
/// # Errors
/// As for [`read_directory`].
pub fn read_files(
    history: &[u8],
    tables: &[u8],
    contents: Vec<u8>,
    ranges: &[u8],
) -> Result<Original, ReadError> {
    let mut diagnoses = Vec::new();
    let history = History::parse(history, &mut diagnoses)?;
    let tables = PageTables::parse(tables, &mut diagnoses)?;
    let contents = Contents::parse(contents, &mut diagnoses);
    let ranges = Ranges::parse(ranges, &mut diagnoses);
    memory::cross_check(&history, &tables, &contents, &ranges, &mut diagnoses);
    Ok(Original {
        history,
        tables,
        contents,
        ranges,
        diagnoses,
    })
}
