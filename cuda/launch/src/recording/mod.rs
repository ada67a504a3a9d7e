// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded CUDA launches on disk.
//!
//! A recording is a directory:
//!
//! | Path | Holds |
//! | --- | --- |
//! | `launches/K.toml` | a [`Launch`] |
//! | `launches/K.sig` | its signature |
//! | `runs/K.toml` | a [`Run`] |
//! | `runs/K.sig` | its signature |
//! | `turns/K/` | run K's second turn, until compared |
//! | `images/HASH` | an image as the program gave it; runs may have a cubin in objects instead |
//! | `objects/HH/HASH` | a chunk of memory, or a list of chunks' hashes |
//!
//! `HASH` is the SHA-256 before compression, in hexadecimal: equal contents are kept once. Several processes may
//! write at a time.
//!
//! Nothing in it is a link, so nothing outside is read or written.
//!
//! Recordings may be hostile: [`Recording::launch`] checks sizes, offsets, overlaps first; all bytes are checked
//! against hashes.
#![forbid(unsafe_code)]

mod check;
mod error;
mod format;
mod hash;
mod launch;
mod pack;
mod run;
mod selection;
mod store;
mod tuned;
mod write;

pub use check::{MAX_BYTES, MAX_REGIONS};
pub use error::RecordingError;
pub use format::FORMAT;
pub use hash::{Hash, Hasher};
pub use launch::{
    Device, ImageReference, Launch, Origin, Owner, Piece, Region, RegionKind, Variable, sm,
};
pub use run::{
    Checked, Copy2d, Kernel, Memory, Number, Operation, Port, Range, Reduced, Rows, Run, RunImage,
    RunVariable, Side, Stream, StreamKind, Turn, UNKNOWN_SUM, WeightTensor, deepened, differing,
    put_word, structure, word_at,
};
pub use selection::{Pick, RegionOf};
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

fn turn_folder(folder: &Path, number: u32) -> PathBuf {
    folder.join("turns").join(number.to_string())
}

/// A directory of recorded launches and runs.
#[derive(Clone)]
pub struct Recording {
    folder: PathBuf,
    store: Store,
}

impl Recording {
    /// A directory, or a run's pack.
    ///
    /// # Errors
    /// No recording.
    pub fn open(folder: &Path) -> Result<Self, RecordingError> {
        if folder.is_file() {
            let bytes =
                std::fs::read(folder).map_err(|error| RecordingError::file(folder, error))?;
            return Self::unpacked(&bytes);
        }
        // Git leaves out an empty `launches`.
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

    /// Its directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Chunks of memory and images.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Launches, ascending.
    ///
    /// # Errors
    /// An unreadable directory.
    pub fn numbers(&self) -> Result<Vec<u32>, RecordingError> {
        if self.store.is_held() {
            return Ok(Vec::new());
        }
        self.numbered(LAUNCHES, manifest_name)
    }

    /// Numbers of runs, ascending; none in recordings older than runs.
    ///
    /// # Errors
    /// An unreadable directory.
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
            // The fifth is `5.toml`, not `+5.toml` or `05.toml`.
            numbers.extend(number.filter(|number| Path::new(part).join(name) == name_of(*number)));
        });
        listed.map_err(|error| RecordingError::file(&self.folder.join(part), error))?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Recording of a run's second turn until it was compared.
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

    /// Removes a run's second turn if there is one.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_second(&self, number: u32) -> Result<(), RecordingError> {
        let Some(second) = self.second(number)? else {
            return Ok(());
        };
        std::fs::remove_dir_all(&second.folder)
            .map_err(|error| RecordingError::file(&second.folder, error))?;
        let _ = std::fs::remove_dir(self.folder.join("turns"));
        Ok(())
    }

    /// Removes unnamed images and chunks. No other process may write meanwhile.
    ///
    /// # Errors
    /// An unreadable manifest, or a file that stays.
    pub fn sweep(&self) -> Result<(), RecordingError> {
        let mut named = std::collections::HashSet::new();
        let mut lists = Vec::new();
        for number in self.numbers()? {
            let launch = self.launch(number)?;
            named.insert(launch.image.hash);
            lists.extend(launch.contents());
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

    /// Path of a part's signature, which may be missing.
    #[must_use]
    pub fn signature_path(&self, part: Part, number: u32) -> PathBuf {
        self.folder.join(part.signature(number))
    }

    /// Reads a part's signature, at most `limit` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]; [`io::ErrorKind::InvalidInput`] for a link, no file or a longer one; the
    /// system's.
    pub fn signature(&self, part: Part, number: u32, limit: u64) -> io::Result<Vec<u8>> {
        if self.store.is_held() {
            let read = self.store.file(&part.signature(number), limit);
            return read.map_err(|_| io::ErrorKind::NotFound.into());
        }
        beneath::read(&self.folder, &part.signature(number), limit)
    }

    /// Replaces a link, not its target.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if one is to be kept; [`io::ErrorKind::InvalidInput`] for a linked
    /// directory; the system's.
    pub fn write_signature(
        &self,
        part: Part,
        number: u32,
        bytes: &[u8],
        existing: Existing,
    ) -> io::Result<()> {
        beneath::write(&self.folder, &part.signature(number), bytes, existing)
    }

    /// Text of a manifest, unchecked.
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

    /// Reads and checks a run.
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

    /// Reads and checks a launch.
    ///
    /// # Errors
    /// None of that number, or an impossible value.
    pub fn launch(&self, number: u32) -> Result<Launch, RecordingError> {
        let name = manifest_name(number);
        Launch::parse(&self.text(&name)?).map_err(|error| self.of(&name, error))
    }
}
