// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded launches of CUDA kernels on disk.
//!
//! A recording is a directory:
//!
//! | Path | Holds |
//! | --- | --- |
//! | `launches/K.toml` | one [`Launch`] |
//! | `launches/K.sig` | its signature, if any |
//! | `runs/K.toml` | one [`Run`] |
//! | `runs/K.sig` | its signature, if any |
//! | `turns/K/` | a recording of run K's second turn, until it is compared |
//! | `images/HASH` | a kernel image as the program gave it; a run may have a cubin among objects instead |
//! | `objects/HH/HASH` | a chunk of memory, or a list of hashes of chunks |
//!
//! `HASH` is SHA-256 in hexadecimal, before compression, so equal contents are kept once. Several processes may
//! write to one directory.
//!
//! No file or directory in it is a link: nothing outside is read or written.
//!
//! Recordings may be hostile: [`Recording::launch`] checks sizes, offsets and overlaps first, and every byte is
//! checked against its hash.
#![forbid(unsafe_code)]

mod check;
mod error;
mod format;
mod hash;
mod launch;
mod pack;
mod run;
mod store;
mod tuned;
mod write;

pub use check::{MAX_BYTES, MAX_REGIONS};
pub use error::RecordingError;
pub use format::FORMAT;
pub use hash::{Hash, Hasher};
pub use launch::{Device, ImageReference, Launch, Origin, Region, RegionKind, Variable};
pub use run::{
    Checked, Copy2d, Kernel, Memory, Number, Operation, Port, Range, Reduced, Rows, Run, RunImage,
    RunVariable, Side, Stream, StreamKind, Turn, UNKNOWN_SUM, WeightTensor, deepened, differing,
    put_word, structure, word_at,
};
pub use store::{CHUNK, Checker, Chunk, Store};
pub use tuned::{Change, Evidence, Tuned, Winner};
pub use write::Writer;

use std::io;
use std::path::{Path, PathBuf};

use gpureplay_host::{Existing, beneath};

/// In bytes.
const MAX_MANIFEST: u64 = 64 << 20;

pub(crate) const LAUNCHES: &str = "launches";

fn manifest_name(number: u32) -> PathBuf {
    Path::new(LAUNCHES).join(format!("{number}.toml"))
}

pub(crate) const RUNS: &str = "runs";

fn run_name(number: u32) -> PathBuf {
    Path::new(RUNS).join(format!("{number}.toml"))
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A launch.
    Launch,
    /// A whole run.
    Run,
}

impl Part {
    fn manifest(self, number: u32) -> PathBuf {
        match self {
            Self::Launch => manifest_name(number),
            Self::Run => run_name(number),
        }
    }

    fn signature(self, number: u32) -> PathBuf {
        self.manifest(number).with_extension("sig")
    }
}

/// Kept until it was compared with the run.
fn turn_folder(folder: &Path, number: u32) -> PathBuf {
    folder.join("turns").join(number.to_string())
}

/// A directory of recorded launches.
#[derive(Clone)]
pub struct Recording {
    folder: PathBuf,
    store: Store,
}

impl Recording {
    /// Opens a directory, or a pack of a run.
    ///
    /// # Errors
    /// No recording.
    pub fn open(folder: &Path) -> Result<Self, RecordingError> {
        if folder.is_file() {
            let bytes =
                std::fs::read(folder).map_err(|error| RecordingError::file(folder, error))?;
            return Self::unpacked(&bytes);
        }
        // Copies such as Git's leave out an empty directory of launches.
        let is_there = |part: &&str| folder.join(part).symlink_metadata().is_ok();
        if ![LAUNCHES, RUNS].iter().any(is_there) {
            return Err(RecordingError::NotARecording(folder.to_owned()));
        }
        for (part, first) in [(LAUNCHES, manifest_name(0)), (RUNS, run_name(0))] {
            beneath::is_file(folder, &first)
                .map_err(|error| RecordingError::file(&folder.join(part), error))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            store: Store::new(folder),
        })
    }

    /// The directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Chunks of memory and images.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Numbers of launches, ascending.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn numbers(&self) -> Result<Vec<u32>, RecordingError> {
        if self.store.is_held() {
            return Ok(Vec::new());
        }
        self.numbered(LAUNCHES, manifest_name)
    }

    /// Numbers of runs, ascending; none in recordings older than runs.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn runs(&self) -> Result<Vec<u32>, RecordingError> {
        if self.store.is_held() {
            return Ok(vec![0]);
        }
        self.numbered(RUNS, run_name)
    }

    fn numbered(
        &self,
        part: &str,
        name_of: fn(u32) -> PathBuf,
    ) -> Result<Vec<u32>, RecordingError> {
        let mut numbers = Vec::new();
        if self.folder.join(part).symlink_metadata().is_err() {
            return Ok(numbers);
        }
        let listed = beneath::names(&self.folder, Path::new(part), |name| {
            let number = name.to_str().and_then(|name| name.strip_suffix(".toml"));
            let number = number.and_then(|number| number.parse::<u32>().ok());
            // `+5.toml` and `05.toml` are none: the fifth lies in `5.toml`.
            numbers.extend(number.filter(|number| Path::new(part).join(name) == name_of(*number)));
        });
        listed.map_err(|error| RecordingError::file(&self.folder.join(part), error))?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A run's second turn, if it was not compared yet.
    ///
    /// # Errors
    /// Its directory, or the one above, is a link.
    pub fn second(&self, number: u32) -> Result<Option<Self>, RecordingError> {
        let folder = turn_folder(&self.folder, number);
        for path in [&self.folder.join("turns"), &folder] {
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    let error = io::Error::new(io::ErrorKind::InvalidInput, "is no folder");
                    return Err(RecordingError::file(path, error));
                }
                Err(_) => return Ok(None),
            }
        }
        Self::open(&folder).map(Some)
    }

    /// Removes a run's second turn, if any.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_second(&self, number: u32) -> Result<(), RecordingError> {
        let Some(second) = self.second(number)? else {
            return Ok(());
        };
        std::fs::remove_dir_all(&second.folder)
            .map_err(|error| RecordingError::file(&second.folder, error))?;
        // Goes with the last one.
        let _ = std::fs::remove_dir(self.folder.join("turns"));
        Ok(())
    }

    /// Removes images and chunks that no launch or run names. No other process may write meanwhile.
    ///
    /// # Errors
    /// A manifest cannot be read, or a file cannot be removed.
    pub fn sweep(&self) -> Result<(), RecordingError> {
        let mut named = std::collections::HashSet::new();
        let mut lists = Vec::new();
        for number in self.numbers()? {
            let launch = self.launch(number)?;
            named.insert(launch.image.hash);
            let regions = launch.regions.iter().map(|r| (r.size, r.before, r.after));
            let variables = launch.variables.iter().map(|v| (v.size, v.before, v.after));
            for (size, before, after) in regions.chain(variables) {
                lists.extend(
                    std::iter::once(before)
                        .chain(after)
                        .map(|hash| (size, hash)),
                );
            }
        }
        for number in self.runs()? {
            let run = self.run(number)?;
            let whole = run.images.iter().filter(|image| image.reduced.is_none());
            named.extend(whole.map(|image| image.hash));
            lists.extend(run.pieces());
        }
        for (size, hash) in lists {
            named.insert(hash);
            named.extend(self.store.list(hash, size)?);
        }
        self.store.keep_only(&|hash| named.contains(&hash))
    }

    /// Place of a signature, if any.
    #[must_use]
    pub fn signature_path(&self, part: Part, number: u32) -> PathBuf {
        self.folder.join(part.signature(number))
    }

    /// A signature of at most `limit` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] without one, [`io::ErrorKind::InvalidInput`] for a link, no file or a longer
    /// one; else the system's.
    pub fn signature(&self, part: Part, number: u32, limit: u64) -> io::Result<Vec<u8>> {
        if self.store.is_held() {
            let read = self.store.file(&part.signature(number), limit);
            return read.map_err(|_| io::ErrorKind::NotFound.into());
        }
        beneath::read(&self.folder, &part.signature(number), limit)
    }

    /// Writes a signature. Replaces a link, and leaves what it leads to.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if one is to be kept, [`io::ErrorKind::InvalidInput`] if the directory is a
    /// link; else the system's.
    pub fn write_signature(
        &self,
        part: Part,
        number: u32,
        bytes: &[u8],
        existing: Existing,
    ) -> io::Result<()> {
        beneath::write(&self.folder, &part.signature(number), bytes, existing)
    }

    /// A manifest's text, not checked.
    ///
    /// # Errors
    /// None of that number, or too long.
    pub fn manifest(&self, part: Part, number: u32) -> Result<String, RecordingError> {
        self.text(&part.manifest(number))
    }

    fn text(&self, name: &Path) -> Result<String, RecordingError> {
        let failed = |error| RecordingError::file(&self.folder.join(name), error);
        let bytes = self.store.file(name, MAX_MANIFEST)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        if text.len() as u64 > MAX_MANIFEST {
            return Err(RecordingError::TooLarge {
                what: "the manifest",
                limit: MAX_MANIFEST,
            });
        }
        Ok(text)
    }

    /// One run, checked.
    ///
    /// # Errors
    /// None of that number, or an impossible value.
    pub fn run(&self, number: u32) -> Result<Run, RecordingError> {
        let name = run_name(number);
        Run::parse(&self.text(&name)?).map_err(|error| self.of(&name, error))
    }

    fn of(&self, name: &Path, error: RecordingError) -> RecordingError {
        match error {
            RecordingError::Manifest { reason, .. } => RecordingError::Manifest {
                path: self.folder.join(name),
                reason,
            },
            other => other,
        }
    }

    /// One launch, checked.
    ///
    /// # Errors
    /// None of that number, or an impossible value.
    pub fn launch(&self, number: u32) -> Result<Launch, RecordingError> {
        let name = manifest_name(number);
        Launch::parse(&self.text(&name)?).map_err(|error| self.of(&name, error))
    }
}
