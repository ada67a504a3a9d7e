// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result directory that appears whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gpureplay_library::shown;

use crate::Result;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::Failure;

/// Checked before any work.
pub(crate) struct NewDirectory {
    path: PathBuf,
    name: String,
    exists: bool,
}

impl NewDirectory {
    pub(crate) fn new(path: PathBuf, force: Force) -> Result<Self> {
        let spelled = match path.file_name() {
            Some(_) => path.clone(),
            // `.` and `..` have a name in another spelling.
            None => path.canonicalize().unwrap_or_default(),
        };
        let name = spelled.file_name().and_then(|name| name.to_str());
        let Some(name) = name.map(str::to_owned) else {
            return Err(Failure::Usage(format!(
                "{}: expected a directory with a name",
                shown(&path)
            )));
        };
        let exists = path.symlink_metadata().is_ok();
        if exists {
            let mut entries = fs::read_dir(&path).map_err(|error| failed(&path, &error))?;
            if !force.force && entries.next().is_some() {
                return Err(Failure::Output(format!(
                    "{}: is not empty; choose another name, or replace its files with --force",
                    shown(&path)
                )));
            }
        }
        Ok(Self { path, name, exists })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn write<P: AsRef<Path>>(
        &self,
        contents: &BTreeMap<P, Vec<u8>>,
        destinations: &Destinations,
    ) -> Result<()> {
        let wrong = |error: io::Error| failed(&self.path, &error);
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
            // The first error says more.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }
}

/// All places are free before the first write. Equal files stay: the command may read them.
fn fill<P: AsRef<Path>>(
    directory: &Path,
    contents: &BTreeMap<P, Vec<u8>>,
    destinations: &Destinations,
) -> Result<()> {
    let mut destinations = destinations.again();
    let mut files = Vec::new();
    for (name, bytes) in contents {
        let name = name.as_ref();
        stays_inside(directory, name)?;
        let path = directory.join(name);
        if !holds(&path, bytes) {
            destinations.claim_here(&path)?;
            files.push((name, bytes));
        }
    }
    let mut files = files.into_iter();
    files.try_for_each(|(name, bytes)| destinations.write_beneath(directory, name, bytes))
}

/// A link to such a file does not count.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let length = u64::try_from(bytes.len()).ok();
    path.symlink_metadata()
        .is_ok_and(|found| found.is_file() && Some(found.len()) == length)
        && fs::read(path).is_ok_and(|there| there == bytes)
}

fn stays_inside(directory: &Path, name: &Path) -> Result<()> {
    let folders = name.ancestors().skip(1);
    for folder in folders.filter(|one| !one.as_os_str().is_empty()) {
        let folder = directory.join(folder);
        if folder.is_symlink() {
            return Err(Failure::Output(format!(
                "{}: is a link, and nothing is written outside of the directory; remove it, or choose another name",
                shown(&folder)
            )));
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Output(format!("{}: {error}", shown(path)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn contents() -> BTreeMap<String, Vec<u8>> {
        BTreeMap::from([
            ("a".to_owned(), b"one".to_vec()),
            ("expected/b".to_owned(), b"two".to_vec()),
        ])
    }

    #[test]
    fn a_directory_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/new");
        let place = NewDirectory::new(path.clone(), Force { force: false }).unwrap();
        assert_eq!(place.name(), "new");
        let mut read = Destinations::new(false);
        place.write(&contents(), &read).unwrap();
        assert_eq!(fs::read(path.join("expected/b")).unwrap(), b"two");
        // --force does not replace what the command reads.
        assert!(NewDirectory::new(path.clone(), Force { force: false }).is_err());
        let again = NewDirectory::new(path.clone(), Force { force: true }).unwrap();
        read = Destinations::new(true);
        read.reads(&path.join("a"));
        again.write(&contents(), &read).unwrap();
        let mut other = contents();
        other.insert("a".to_owned(), b"three".to_vec());
        assert!(again.write(&other, &read).is_err());
        assert_eq!(fs::read(path.join("a")).unwrap(), b"one");
        let left: Vec<_> = fs::read_dir(folder.path().join("deep")).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_a_linked_folder_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [path, outside] = ["new", "outside"].map(|name| folder.path().join(name));
        fs::create_dir(&path).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "mine").unwrap();
        symlink(outside.join("precious"), path.join("a")).unwrap();
        let place = NewDirectory::new(path.clone(), Force { force: true }).unwrap();
        let forced = Destinations::new(true);
        place.write(&contents(), &forced).unwrap();
        assert_eq!(fs::read(outside.join("precious")).unwrap(), b"mine");
        assert_eq!(fs::read(path.join("a")).unwrap(), b"one");
        fs::remove_dir_all(path.join("expected")).unwrap();
        symlink(&outside, path.join("expected")).unwrap();
        assert!(place.write(&contents(), &forced).is_err());
        assert!(!outside.join("b").exists());
    }
}
