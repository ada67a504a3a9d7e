// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds, reads and checks a recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpureplay_core::{Limits, Verified, verify};
use gpureplay_format::Recording;

use crate::error::Error;
use crate::manifest::{Case, Manifest};

/// Name of the recording in its directory.
pub const FILE_NAME: &str = "recording.gpr";

/// A recording's bytes, and what lies beside them.
#[derive(Debug)]
pub struct Files {
    /// Path of the recording itself.
    pub path: PathBuf,
    /// Directory of manifest, inputs and expected outputs.
    pub directory: PathBuf,
    /// The recording.
    pub bytes: Vec<u8>,
    /// The manifest, when there is one.
    pub manifest: Option<Manifest>,
}

impl Files {
    /// Reads a recording: a directory that contains `recording.gpr`, or such a file by itself.
    ///
    /// # Errors
    /// There is no recording, or its manifest cannot be used.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let missing = |reason: &str| Error::NoRecording {
            path: path.to_path_buf(),
            reason: reason.to_owned(),
        };
        let metadata = std::fs::metadata(path).map_err(|error| missing(&error.to_string()))?;
        let (file, directory) = if metadata.is_dir() {
            (path.join(FILE_NAME), path.to_path_buf())
        } else {
            (
                path.to_path_buf(),
                path.parent().unwrap_or(Path::new("")).to_path_buf(),
            )
        };
        if metadata.is_dir() && !file.is_file() {
            return Err(missing(&format!("contains no {FILE_NAME}")));
        }
        let bytes = std::fs::read(&file).map_err(|error| Error::NoRecording {
            path: file.clone(),
            reason: error.to_string(),
        })?;
        let manifest = Manifest::read(&directory)?;
        Ok(Self {
            path: file,
            directory,
            bytes,
            manifest,
        })
    }

    /// Name of the recording.
    pub fn name(&self) -> String {
        if let Some(manifest) = &self.manifest {
            return manifest.name.clone();
        }
        let path = self
            .directory
            .canonicalize()
            .unwrap_or_else(|_| self.directory.clone());
        path.file_name()
            .map_or_else(|| "recording".into(), |name| name.to_string_lossy().into())
    }

    /// The manifest's first case.
    pub fn case(&self) -> Option<&Case> {
        self.manifest.as_ref()?.cases.first()
    }

    /// The manifest's case whose inputs are exactly these files.
    pub fn case_for(&self, inputs: &BTreeMap<String, PathBuf>) -> Option<&Case> {
        self.manifest.as_ref()?.case_for(&self.directory, inputs)
    }

    /// Checks the bytes.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(&self) -> Result<Recording<'_>, Error> {
        Recording::parse(&self.bytes).map_err(|error| Error::Damaged {
            path: self.path.clone(),
            error,
        })
    }

    /// Checks the bytes and the rules.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn verify(&self) -> Result<Verified<'_>, Error> {
        verify(self.parse()?, &Limits::DEFAULT).map_err(|violation| Error::NotAllowed {
            path: self.path.clone(),
            violation,
        })
    }
}
