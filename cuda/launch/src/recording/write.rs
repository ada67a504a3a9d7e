// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes launches, also beside other processes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use gpureplay_host::{Existing, beneath};
use serde::Serialize;

use crate::recording::{
    LAUNCHES, Launch, RUNS, RecordingError, Run, Store, check, manifest_name, run_name, turn_folder,
};

/// Writes launches.
pub struct Writer {
    folder: PathBuf,
    store: Store,
    /// One above the last given.
    next: AtomicU32,
}

impl Writer {
    /// Opens or makes it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(folder: &Path) -> Result<Self, RecordingError> {
        Self::sharing(folder, None)
    }

    /// As [`Writer::create`], linking chunks and images of `other` on the same file system; they outlive it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn sharing(folder: &Path, other: Option<PathBuf>) -> Result<Self, RecordingError> {
        fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
        for part in [LAUNCHES, RUNS, "images", "objects"] {
            beneath::make_folder(folder, &Path::new(part).join("any"))
                .map_err(|error| RecordingError::file(&folder.join(part), error))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            store: Store::sharing(folder, other),
            next: AtomicU32::new(0),
        })
    }

    /// Chunks and images.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whole or not at all; returns the lowest free number above this writer's.
    ///
    /// # Errors
    /// It breaks a rule, or cannot be written.
    pub fn add(&self, launch: &Launch) -> Result<u32, RecordingError> {
        check::check(launch)?;
        self.numbered(launch, &self.next, LAUNCHES, manifest_name)
    }

    /// Adds a run as [`Writer::add`].
    ///
    /// # Errors
    /// It breaks a rule, or cannot be written.
    pub fn add_run(&self, run: &Run) -> Result<u32, RecordingError> {
        run.check()?;
        self.numbered(run, &AtomicU32::new(0), RUNS, run_name)
    }

    /// Under that number.
    ///
    /// # Errors
    /// It breaks a rule, or cannot be written.
    pub fn replace_run(&self, number: u32, run: &Run) -> Result<(), RecordingError> {
        run.check()?;
        let (name, text) = (run_name(number), self.text(run, RUNS)?);
        beneath::write(&self.folder, &name, text.as_bytes(), Existing::Replace)
            .map_err(|error| RecordingError::file(&self.folder.join(name), error))
    }

    /// Writer of a run's second turn; shares contents.
    ///
    /// # Errors
    /// Its directory cannot be made.
    pub fn second(&self, number: u32) -> Result<Self, RecordingError> {
        let name = Path::new("turns").join(number.to_string()).join("any");
        beneath::make_folder(&self.folder, &name)
            .map_err(|error| RecordingError::file(&self.folder.join(&name), error))?;
        Self::sharing(
            &turn_folder(&self.folder, number),
            Some(self.folder.clone()),
        )
    }

    fn text<T: Serialize>(&self, manifest: &T, part: &str) -> Result<String, RecordingError> {
        toml::to_string(manifest).map_err(|error| RecordingError::Manifest {
            path: self.folder.join(part),
            reason: error.to_string(),
        })
    }

    fn numbered<T: Serialize>(
        &self,
        manifest: &T,
        next: &AtomicU32,
        part: &str,
        name_of: fn(u32) -> PathBuf,
    ) -> Result<u32, RecordingError> {
        let text = self.text(manifest, part)?;
        for number in next.load(Relaxed)..=u32::MAX {
            let name = name_of(number);
            let path = self.folder.join(&name);
            // Not written for nothing where many exist.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let parts = [text.as_bytes()];
            match beneath::write_soon(&self.folder, &name, &parts, Existing::Keep) {
                Ok(()) => {
                    next.fetch_max(number.saturating_add(1), Relaxed);
                    return Ok(number);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RecordingError::file(&path, error)),
            }
        }
        Err(RecordingError::TooLarge {
            what: "the number of manifests",
            limit: u64::from(u32::MAX),
        })
    }
}
