// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds, reads and checks a recording.

use std::path::{Path, PathBuf};

use gpureplay_core::{Limits, Verified, verify};
use gpureplay_format::Recording;

use crate::explain;
use crate::failure::Failure;
use crate::manifest::Manifest;

/// Name of the recording in its directory.
pub(crate) const FILE_NAME: &str = "recording.gpr";

/// A recording's bytes, and what lies beside them.
#[derive(Debug)]
pub(crate) struct Files {
    /// Path of the recording itself.
    pub(crate) path: PathBuf,
    /// Directory of manifest, inputs and expected outputs.
    pub(crate) directory: PathBuf,
    /// The recording.
    pub(crate) bytes: Vec<u8>,
    /// The manifest, when there is one.
    pub(crate) manifest: Option<Manifest>,
}

impl Files {
    /// Reads a recording: a directory that contains `recording.gpr`, or such a file by itself.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let missing = |reason: &str| {
            Failure::Recording(format!(
                "{}: {reason}; give a directory with a {FILE_NAME}, or such a file",
                path.display()
            ))
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
        let bytes = std::fs::read(&file)
            .map_err(|error| Failure::Recording(format!("{}: {error}", file.display())))?;
        let manifest = Manifest::read(&directory)?;
        Ok(Self {
            path: file,
            directory,
            bytes,
            manifest,
        })
    }

    /// Name of the recording.
    pub(crate) fn name(&self) -> String {
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

    /// Checks the bytes.
    pub(crate) fn parse(&self) -> Result<Recording<'_>, Failure> {
        Recording::parse(&self.bytes).map_err(|error| {
            Failure::Recording(format!(
                "{}: {}",
                self.path.display(),
                explain::parse_error(&error)
            ))
        })
    }

    /// Checks the bytes and the rules.
    pub(crate) fn verify(&self) -> Result<Verified<'_>, Failure> {
        verify(self.parse()?, &Limits::DEFAULT).map_err(|violation| {
            Failure::Recording(format!(
                "{}: {}",
                self.path.display(),
                explain::violation(&violation)
            ))
        })
    }
}
