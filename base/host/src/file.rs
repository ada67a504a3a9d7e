// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::beneath::write_in;

/// As many as Linux follows.
const MAX_LINKS: u32 = 40;

/// Before the process's mask.
pub(crate) const READABLE_BY_ALL: u32 = 0o666;

/// What becomes of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays; writing fails with [`io::ErrorKind::AlreadyExists`].
    Keep,
    /// It is replaced.
    Replace,
}

/// Readers see the old file or the whole new one.
///
/// A symbolic link stays; its target is written. Devices, pipes and sockets are written directly.
///
/// # Errors
/// The system's; nothing is left behind.
pub fn write_whole(path: &Path, contents: &[u8], existing: Existing) -> io::Result<()> {
    write_unless(path, contents, existing, |_, _| false)
}

/// [`write_whole`], unless the file `stays`: asked with device and number, behind all links, just before
/// replacement. Links changed meanwhile have no effect.
///
/// # Errors
/// As for [`write_whole`]; [`io::ErrorKind::ResourceBusy`] if the file stays.
pub fn write_unless(
    path: &Path,
    contents: &[u8],
    existing: Existing,
    stays: impl Fn(u64, u64) -> bool,
) -> io::Result<()> {
    write_with_mode(&followed(path)?, contents, existing, READABLE_BY_ALL, stays)
}

/// [`write_whole`], but an existing link is replaced, not its target.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_here(path: &Path, contents: &[u8], existing: Existing) -> io::Result<()> {
    write_file(path, contents, existing, READABLE_BY_ALL, |_, _| false)
}

/// [`write_whole`] with [`Existing::Keep`], readable by its owner only.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_secret(path: &Path, contents: &[u8]) -> io::Result<()> {
    let path = followed(path)?;
    write_with_mode(&path, contents, Existing::Keep, 0o600, |_, _| false)
}

/// [`write_whole`] with [`Existing::Replace`].
///
/// # Errors
/// As for [`write_whole`].
pub fn write_atomic(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_whole(path, contents, Existing::Replace)
}

fn write_with_mode(
    destination: &Path,
    contents: &[u8],
    existing: Existing,
    mode: u32,
    stays: impl Fn(u64, u64) -> bool,
) -> io::Result<()> {
    match fs::metadata(destination) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => {
            let mut opened = File::options().write(true).open(destination)?;
            return match opened.metadata()?.is_file() {
                // A file took its place meanwhile.
                true => Err(io::ErrorKind::AlreadyExists.into()),
                false => opened.write_all(contents),
            };
        }
        Ok(_) if existing == Existing::Keep => return Err(io::ErrorKind::AlreadyExists.into()),
        _ => {}
    }
    write_file(destination, contents, existing, mode, stays)
}

fn write_file(
    destination: &Path,
    contents: &[u8],
    existing: Existing,
    mode: u32,
    stays: impl Fn(u64, u64) -> bool,
) -> io::Result<()> {
    let Some(name) = destination.file_name() else {
        let reason = "the path names no file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    };
    let folder = match destination.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    write_in(folder, name, contents, existing, mode, stays)
}

fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        // The kernel's link to a pipe or a removed file leads nowhere.
        let named = path.parent().unwrap_or(Path::new("")).join(target);
        if fs::metadata(&path).is_ok() && fs::metadata(&named).is_err() {
            return Ok(path);
        }
        path = named;
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (link, second) = (at("link"), at("second"));
        std::os::unix::fs::symlink("link", &second).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        for contents in ["new", "newer"] {
            write_atomic(&second, contents.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("file")).unwrap(), contents);
            assert!(link.is_symlink() && second.is_symlink());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        std::os::unix::fs::symlink("circle", at("circle")).unwrap();
        assert!(write_atomic(&at("circle"), b"x").is_err());
    }

    #[test]
    fn what_is_no_file_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // Like /dev/stdout.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("pipe", &link).unwrap();
        for path in [&pipe, &link] {
            let from = pipe.clone();
            let reader = std::thread::spawn(move || fs::read_to_string(from).unwrap());
            write_atomic(path, b"through").unwrap();
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
            assert!(link.is_symlink());
            assert_eq!(reader.join().unwrap(), "through");
        }
        let error = write_atomic(folder.path(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn what_exists_stays_unless_it_is_to_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write_whole(&path, b"old", Existing::Keep).unwrap();
        let error = write_whole(&path, b"new", Existing::Keep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_whole(&path, b"new", Existing::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn errors_leave_nothing_and_name_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomic(&folder.path().join("none/x"), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("part"), "{error}");
        assert!(write_atomic(&folder.path().join(".."), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_stays_is_not_replaced_whatever_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("input"), b"input").unwrap();
        std::os::unix::fs::symlink("input", at("link")).unwrap();
        let found = fs::metadata(at("input")).unwrap();
        let stays = |device, number| (device, number) == (found.dev(), found.ino());
        for name in ["input", "link"] {
            let written = write_unless(&at(name), b"output", Existing::Replace, stays);
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
            assert_eq!(fs::read(at("input")).unwrap(), b"input");
        }
        write_unless(&at("other"), b"output", Existing::Replace, stays).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_secret_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_secret(&path, b"x").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(write_secret(&path, b"y").is_err());
    }
}
