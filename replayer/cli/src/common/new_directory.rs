// SPDX-License-Identifier: MIT OR Apache-2.0
//! A directory of results that appears whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpureplay_library::shown;

use crate::Result;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::Failure;

/// A place for a directory, looked at before any work is done.
pub(crate) struct NewDirectory {
    path: PathBuf,
    name: String,
    exists: bool,
}

impl NewDirectory {
    /// Takes the place.
    ///
    /// # Errors
    /// There are files, and none may be replaced; or the path has no name.
    pub(crate) fn new(path: PathBuf, force: Force) -> Result<Self> {
        let wrong = |text: String| format!("{}: {text}", shown(&path));
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.map(str::to_owned) else {
            return Err(Failure::Usage(wrong(
                "expected a directory with a name".into(),
            )));
        };
        let exists = path.exists();
        if exists && !force.force {
            let mut entries =
                fs::read_dir(&path).map_err(|error| Failure::Output(wrong(error.to_string())))?;
            if entries.next().is_some() {
                return Err(Failure::Output(wrong(
                    "is not empty; choose another name, or replace its files with --force".into(),
                )));
            }
        }
        Ok(Self { path, name, exists })
    }

    /// Where it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes files by their names in it.
    ///
    /// # Errors
    /// One cannot be written, or is one that the command reads.
    pub(crate) fn write(
        self,
        contents: &BTreeMap<String, Vec<u8>>,
        destinations: &Destinations,
    ) -> Result<()> {
        let wrong =
            |error: std::io::Error| Failure::Output(format!("{}: {error}", shown(&self.path)));
        if self.exists {
            return fill(&self.path, contents, destinations);
        }
        if let Some(parent) = self.path.parent().filter(|one| !one.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(wrong)?;
        }
        let unfinished = format!(".{}.{}.part", self.name, std::process::id());
        let unfinished = self.path.with_file_name(unfinished);
        fs::create_dir(&unfinished).map_err(wrong)?;
        let written = fill(&unfinished, contents, destinations)
            .and_then(|()| fs::rename(&unfinished, &self.path).map_err(wrong));
        if written.is_err() {
            // What is left is of no use; the first error says more than one of the removal.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }
}

/// All places are free before the first file is written.
fn fill(
    directory: &Path,
    contents: &BTreeMap<String, Vec<u8>>,
    destinations: &Destinations,
) -> Result<()> {
    let mut destinations = destinations.again();
    for name in contents.keys() {
        destinations.claim(&directory.join(name))?;
    }
    for (name, bytes) in contents {
        let path = directory.join(name);
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .map_err(|error| Failure::Output(format!("{}: {error}", shown(&path))))?;
        destinations.write(&path, bytes)?;
    }
    Ok(())
}
