// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a raw trace.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gpureplay_library::shown;

use crate::Result;
use crate::common::failure::Failure;

/// Removed on drop, unless asked for.
pub(super) struct Trace {
    pub(super) path: PathBuf,
    pub(super) destination: Option<PathBuf>,
}

impl Trace {
    pub(super) fn create(raw: Option<&Path>, run: &str) -> Result<Self> {
        let path = match raw {
            Some(raw) => {
                let name = raw.file_name().unwrap_or_default().to_string_lossy();
                raw.with_file_name(format!(".{name}.{}.part", std::process::id()))
            }
            None => {
                let name = format!("gpureplay-{}-{run}.trace", std::process::id());
                std::env::temp_dir().join(name)
            }
        };
        // Only for this user: it holds all of the GPU's memory.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| Failure::Output(format!("{}: {error}", shown(&path))))?;
        Ok(Self {
            path,
            destination: raw.map(Path::to_path_buf),
        })
    }

    pub(super) fn keep_if_named(&self) -> Result<()> {
        match &self.destination {
            Some(to) => fs::rename(&self.path, to)
                .map_err(|error| Failure::Output(format!("{}: {error}", shown(to)))),
            None => Ok(()),
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
