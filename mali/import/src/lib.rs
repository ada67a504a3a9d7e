// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and converts recordings of the original GPUReplay (2022).
//!
//! Its four files: register accesses (`gr_io_history`), page tables (`gr_pgt`), GPU memory (`gr_mem_contents`) and
//! ranges that the app synchronised between CPU and GPU (`gr_sync_as`). They hold no weights and no names.
//! [`read_directory`] reads them and notes each defect as a [`Diagnosis`]; [`convert`] makes a recording. A
//! [`Description`] adds tensors and layers.
//!
//! Files are not trusted: counts are checked against their bytes.
#![forbid(unsafe_code)]

mod chains;
mod code;
mod convert;
mod description;
mod diagnosis;
mod files;
mod meeting;
mod memory;
mod reach;

use std::path::{Path, PathBuf};

use gpureplay_host::beneath;

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

/// In the order of reading.
pub const FILES: [&str; 4] = ["gr_io_history", "gr_pgt", "gr_mem_contents", "gr_sync_as"];

/// Longest, in bytes.
pub const MAX_FILE: u64 = 4 << 30;

/// Why an original recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Missing, unreadable, or no plain file.
    #[error(
        "{path}: {source}; an original recording is a directory with the files gr_io_history, gr_pgt, gr_mem_contents and gr_sync_as"
    )]
    File {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Longer than [`MAX_FILE`].
    #[error("{path} has {length} bytes, more than the {MAX_FILE} that an import reads")]
    TooLong {
        /// File.
        path: PathBuf,
        /// Length.
        length: u64,
    },
    /// Nothing can be made of a file.
    #[error("{file}: {reason}")]
    Unusable {
        /// Name.
        file: &'static str,
        /// Why and where.
        reason: String,
    },
}

/// Four files of an original recording.
#[derive(Debug)]
pub struct Original {
    /// Register accesses.
    pub history: History,
    /// Page tables.
    pub tables: PageTables,
    /// GPU memory.
    pub contents: Contents,
    /// Synchronised ranges.
    pub ranges: Ranges,
    /// In file order.
    pub diagnoses: Vec<Diagnosis>,
}

/// Reads `directory`.
///
/// # Errors
/// A file is missing, unreadable or beyond use. Lesser defects are in [`Original::diagnoses`].
pub fn read_directory(directory: &Path) -> Result<Original, ReadError> {
    let read = |name: &str| read_file(directory, name, MAX_FILE);
    let [history, tables, contents, ranges] = FILES;
    read_files(
        &read(history)?,
        &read(tables)?,
        read(contents)?,
        &read(ranges)?,
    )
}

/// No link, and at most `limit` bytes.
fn read_file(directory: &Path, name: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
    let path = directory.join(name);
    let opened = beneath::open(directory, Path::new(name))
        .and_then(|file| Ok((file.metadata()?.len(), file)));
    match opened {
        Ok((length, _)) if length > limit => Err(ReadError::TooLong { path, length }),
        Ok((_, file)) => {
            beneath::contents(file, limit).map_err(|source| ReadError::File { path, source })
        }
        Err(source) => Err(ReadError::File { path, source }),
    }
}

/// Reads from memory, in the order of [`FILES`].
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_the_directory_are_read_and_none_beyond_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let [history, tables, contents, ranges] = FILES;
        std::fs::write(at(history), "12345678").unwrap();
        symlink("/dev/zero", at(tables)).unwrap();
        symlink(history, at(contents)).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at(ranges))
            .status();
        assert!(made.unwrap().success());
        let read = |name, limit| read_file(folder.path(), name, limit);
        assert_eq!(read(history, 8).unwrap(), b"12345678");
        let long = read(history, 7).unwrap_err();
        assert!(matches!(long, ReadError::TooLong { length: 8, .. }));
        for (name, reason) in [
            (tables, "a link"),
            (contents, "a link"),
            (ranges, "no file"),
            ("nothing", "No such file"),
        ] {
            let error = read(name, 8).unwrap_err();
            assert!(matches!(error, ReadError::File { .. }), "{name}: {error}");
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
        let long = File::create(at(history)).unwrap();
        long.set_len(MAX_FILE + 1).unwrap();
        let error = read_directory(folder.path()).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { length, .. } if length == MAX_FILE + 1));
    }
}
