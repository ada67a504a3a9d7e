// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of results: never a file that is read.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_library::files::{FILE_NAME, SIGNATURE_NAME};
use gpureplay_library::values::{OutputFormat, is_standard_output};
use gpureplay_library::{Existing, Files, Tensor, manifest, shown, values};

use crate::Result;
use crate::common::failure::Failure;

/// Whether files that exist may be replaced.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Force {
    /// Replace files that exist; never those that this command reads
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// A file under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Destinations {
    existing: Existing,
    read: HashMap<Identity, PathBuf>,
    claimed: HashSet<PathBuf>,
}

impl Destinations {
    pub(crate) fn new(force: bool) -> Self {
        Self {
            existing: match force {
                true => Existing::Replace,
                false => Existing::Keep,
            },
            read: HashMap::new(),
            claimed: HashSet::new(),
        }
    }

    pub(crate) fn again(&self) -> Self {
        Self {
            existing: self.existing,
            read: self.read.clone(),
            claimed: HashSet::new(),
        }
    }

    pub(crate) fn reads(&mut self, path: &Path) {
        let (file, _) = values::split(path);
        self.reads_file(file);
    }

    fn reads_file(&mut self, file: &Path) {
        if let Ok(metadata) = std::fs::metadata(file) {
            let path = || file.to_path_buf();
            self.read.entry((&metadata).into()).or_insert_with(path);
        }
    }

    pub(crate) fn reads_recording(&mut self, files: &Files) {
        self.reads_file(&files.path);
        let directory = files.original();
        self.reads_named(directory);
        for file in files.manifest.iter().flat_map(manifest::Manifest::files) {
            self.reads_file(&directory.join(file));
        }
    }

    /// A recording's own files are read, not those of its manifest.
    pub(crate) fn reads_named(&mut self, path: &Path) {
        self.reads_file(path);
        for name in [FILE_NAME, manifest::FILE_NAME, SIGNATURE_NAME] {
            self.reads_file(&path.join(name));
        }
    }

    /// In a recording's directory a link counts as an existing file.
    pub(crate) fn claim_here(&mut self, path: &Path) -> Result<()> {
        let is_link = path
            .symlink_metadata()
            .is_ok_and(|found| found.is_symlink());
        match is_link {
            true if self.existing == Existing::Keep => Err(exists(path)),
            true => {
                self.claimed.insert(path.to_path_buf());
                Ok(())
            }
            false => self.take(path),
        }
    }

    /// Call before any work.
    pub(crate) fn claim(&mut self, path: &Path) -> Result<()> {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(directory) = directory.filter(|it| !is_standard_output(path) && !it.is_dir()) {
            let problem = match directory.exists() {
                true => "is not a directory",
                false => "does not exist; create it first",
            };
            return Err(Failure::Output(format!(
                "{}: directory {} {problem}",
                shown(path),
                shown(directory)
            )));
        }
        self.take(path)
    }

    /// Also in a directory yet to be made.
    fn take(&mut self, path: &Path) -> Result<()> {
        if is_standard_output(path) {
            if self.takes_standard_output() {
                return Err(Failure::Usage(
                    "two results want standard output; give one of them a file".into(),
                ));
            }
            self.claimed.insert(path.to_path_buf());
            return Ok(());
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::Output(format!("{}: is a directory", shown(path))));
            }
            Ok(found) if found.is_file() => {
                let identity = Identity::from(&found);
                if let Some(read) = self.read.get(&identity) {
                    return Err(Failure::Usage(format!(
                        "{}: this command reads {}, which is the same file; choose another name",
                        shown(path),
                        shown(read)
                    )));
                }
                if self.existing == Existing::Keep {
                    return Err(exists(path));
                }
            }
            _ => {}
        }
        let place = place(path);
        if !self.claimed.insert(place) {
            return Err(Failure::Usage(format!(
                "{}: two results want this file",
                shown(path)
            )));
        }
        Ok(())
    }

    pub(crate) fn claim_tensor(&mut self, path: &Path) -> Result<()> {
        OutputFormat::of(path)?;
        self.claim(path)
    }

    pub(crate) fn takes_standard_output(&self) -> bool {
        self.claimed.iter().any(|path| is_standard_output(path))
    }

    /// A file appears whole or not at all.
    pub(crate) fn write(&self, path: &Path, contents: &[u8]) -> Result<()> {
        if is_standard_output(path) {
            let mut out = gpureplay_host::output();
            out.write_all(contents)?;
            return Ok(out.flush()?);
        }
        let reads = |device, inode| self.read.contains_key(&Identity { device, inode });
        gpureplay_host::write_unless(path, contents, self.existing, reads)
            .map_err(|error| not_written(path, &error))
    }

    /// In a recording's directory: replaces a link instead of following it.
    pub(crate) fn write_here(&self, path: &Path, contents: &[u8]) -> Result<()> {
        gpureplay_host::write_here(path, contents, self.existing)
            .map_err(|error| not_written(path, &error))
    }

    /// Makes missing directories, follows no link.
    pub(crate) fn write_beneath(
        &self,
        directory: &Path,
        name: &Path,
        contents: &[u8],
    ) -> Result<()> {
        gpureplay_host::beneath::write(directory, name, contents, self.existing)
            .map_err(|error| not_written(&directory.join(name), &error))
    }

    pub(crate) fn write_tensor(&self, path: &Path, tensor: &Tensor) -> Result<()> {
        self.write(path, &values::encode(path, tensor)?)
    }

    pub(crate) fn write_tensors(&self, path: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
        self.write(path, &values::encode_all(path, tensors)?)
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        ErrorKind::ResourceBusy => Failure::Output(format!(
            "{}: leads to a file that this command reads",
            shown(path)
        )),
        _ => Failure::Output(format!("{}: {error}", shown(path))),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::Output(format!(
        "{}: exists; choose another name, or replace it with --force",
        shown(path)
    ))
}

/// The path in one spelling, as far as it exists.
fn place(path: &Path) -> PathBuf {
    if let Ok(place) = path.canonicalize() {
        return place;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    folder.join(path.file_name().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_read_is_never_a_destination_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("read"), "x").unwrap();
        symlink("read", at("link")).unwrap();
        fs::hard_link(at("read"), at("hard")).unwrap();
        fs::create_dir(at("sub")).unwrap();
        for force in [false, true] {
            let mut destinations = Destinations::new(force);
            destinations.reads(&at("link"));
            for name in ["read", "link", "hard", "sub/../read"] {
                let failure = destinations.claim(&at(name)).unwrap_err();
                assert_eq!(failure.exit_code(), 2, "{name}: {failure}");
            }
        }
    }

    #[test]
    fn a_destination_that_becomes_a_link_to_what_is_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("read.npy"), "x").unwrap();
        fs::write(at("out.npy"), "old").unwrap();
        let mut destinations = Destinations::new(true);
        destinations.reads(&at("read.npy"));
        destinations.claim_tensor(&at("out.npy")).unwrap();
        fs::remove_file(at("out.npy")).unwrap();
        symlink("read.npy", at("out.npy")).unwrap();
        let tensor = Tensor::zeros(gpureplay_library::ElementType::U8, &[4]).unwrap();
        let written = destinations.write_tensor(&at("out.npy"), &tensor);
        assert_eq!(written.unwrap_err().exit_code(), 6);
        assert_eq!(fs::read(at("read.npy")).unwrap(), b"x");
    }

    #[test]
    fn a_missing_directory_is_named_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        for (name, problem) in [
            ("none/x.npy", "none does not exist; create it first"),
            ("file/x.npy", "file is not a directory"),
        ] {
            let mut destinations = Destinations::new(true);
            let failure = destinations.claim(&folder.path().join(name)).unwrap_err();
            assert_eq!(failure.exit_code(), 6);
            assert!(failure.to_string().ends_with(problem), "{failure}");
        }
        let mut destinations = Destinations::new(false);
        let made = folder.path().join("new/recording.gpr");
        destinations.claim_here(&made).unwrap();
    }

    #[test]
    fn what_exists_is_replaced_by_force_only_and_each_place_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "x").unwrap();
        let mut kept = Destinations::new(false);
        assert_eq!(kept.claim(&at("old")).unwrap_err().exit_code(), 6);
        kept.claim(&at("new")).unwrap();
        let twice = folder.path().join(".").join("new");
        assert_eq!(kept.claim(&twice).unwrap_err().exit_code(), 2);
        // Another process was faster.
        fs::write(at("new"), "theirs").unwrap();
        assert_eq!(kept.write(&at("new"), b"ours").unwrap_err().exit_code(), 6);
        assert_eq!(fs::read(at("new")).unwrap(), b"theirs");
        let mut forced = Destinations::new(true);
        forced.claim(&at("old")).unwrap();
        forced.write(&at("old"), b"new").unwrap();
        assert_eq!(fs::read(at("old")).unwrap(), b"new");
        assert!(!forced.takes_standard_output());
        forced.claim(Path::new("-")).unwrap();
        assert!(forced.claim(Path::new("/dev/stdout")).is_err());
    }
}
