// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens and writes files of a recording's directory, and nothing outside of it: no link is followed, whatever changes there meanwhile.
//!
//! The parts of a name are opened one by one, each in the one before it, so that none of them can be a link. The directory
//! itself is the caller's and may be reached through links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open as open_path, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use crate::file::{Existing, READABLE_BY_ALL};

/// A folder that is only a place in the file system.
const FOLDER: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

/// Names of unfinished files that are tried before a folder counts as unusable.
const MAX_ATTEMPTS: u32 = 64;

/// What becomes of a folder that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// It is an error.
    Fails,
    /// It is made.
    IsMade,
}

/// Opens a regular file of a directory for reading.
///
/// # Errors
/// What the system says, or of the kind [`ErrorKind::InvalidInput`]: the name leads out of the directory, one of its parts is
/// a link, or there is something else than a file.
pub fn open(directory: &Path, name: &Path) -> io::Result<File> {
    let (folder, name) = place(directory, name, Absent::Fails)?;
    // A device may do something when it is opened.
    let found = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => {}
        SFlag::S_IFLNK => return Err(linked(Errno::ELOOP)),
        _ => return Err(refused("it is no file")),
    }
    // A pipe that took its place is opened at once, and then found to be no file.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = openat(&folder, name, flags | OFlag::O_CLOEXEC, Mode::empty());
    let file = File::from(file.map_err(linked)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("it is no file")),
    }
}

/// Writes a file of a directory, which appears whole or not at all; its folders are made. A link in its place is a file that
/// exists: it is replaced, and what it leads to stays as it is.
///
/// # Errors
/// As for [`open`]; or the file exists, and is to be kept.
pub fn write(directory: &Path, name: &Path, contents: &[u8], existing: Existing) -> io::Result<()> {
    let (folder, name) = place(directory, name, Absent::IsMade)?;
    let (mut file, unfinished) = create(&folder)?;
    let written = file
        .write_all(contents)
        .and_then(|()| file.sync_all())
        .and_then(|()| match existing {
            Existing::Replace => Ok(renameat(&folder, unfinished.as_str(), &folder, name)?),
            Existing::Keep => keep(&folder, &unfinished, name),
        });
    if written.is_err() {
        // The first error says more than one of the removal.
        let _ = unlinkat(&folder, unfinished.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}

/// Gives an unfinished file its name, which no other file has.
fn keep(folder: &OwnedFd, unfinished: &str, name: &OsStr) -> io::Result<()> {
    match linkat(folder, unfinished, folder, name, AtFlags::empty()) {
        Ok(()) => Ok(unlinkat(folder, unfinished, UnlinkatFlags::NoRemoveDir)?),
        // A file system without hard links: the name is taken first.
        Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            openat(folder, name, flags, mode())?;
            Ok(renameat(folder, unfinished, folder, name)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// A new file in a folder, and its name there.
fn create(folder: &OwnedFd) -> io::Result<(File, String)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    for _ in 0..MAX_ATTEMPTS {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".gpureplay-{}-{number}.part", std::process::id());
        match openat(folder, name.as_str(), flags, mode()) {
            Ok(file) => return Ok((file.into(), name)),
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EEXIST.into())
}

/// Rights of a new file, of which the process's mask is taken away.
fn mode() -> Mode {
    Mode::from_bits_truncate(READABLE_BY_ALL)
}

/// The folder of a file, and its name there.
fn place<'a>(directory: &Path, name: &'a Path, absent: Absent) -> io::Result<(OwnedFd, &'a OsStr)> {
    let parts = name.components().map(|part| match part {
        Component::Normal(part) => Ok(part),
        _ => Err(refused("the name leads out of the recording's directory")),
    });
    let parts = parts.collect::<io::Result<Vec<_>>>()?;
    let Some((last, folders)) = parts.split_last() else {
        return Err(refused("no file is named"));
    };
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let mut place = open_path(directory, FOLDER, Mode::empty())?;
    for part in folders {
        if absent == Absent::IsMade {
            match mkdirat(&place, *part, Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let inner = openat(&place, *part, FOLDER | OFlag::O_NOFOLLOW, Mode::empty());
        place = inner.map_err(linked)?;
    }
    Ok((place, last))
}

/// The contents of a file of a directory, which has at most `limit` bytes.
///
/// # Errors
/// As for [`open`], or it is longer.
pub fn read(directory: &Path, name: &Path, limit: u64) -> io::Result<Vec<u8>> {
    contents(open(directory, name)?, limit)
}

/// The contents of a file that is open, of at most `limit` bytes. A file that says that it is longer is not read.
///
/// # Errors
/// What the system says, or it is longer.
pub fn contents(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let long = || refused(&format!("longer than {limit} bytes"));
    let found = file.metadata()?;
    if found.is_file() && found.len() > limit {
        return Err(long());
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(long());
    }
    Ok(bytes)
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

/// The system's error for a link that is not followed, in words.
fn linked(error: Errno) -> io::Error {
    match error {
        Errno::ELOOP | Errno::ENOTDIR => refused(
            "it is, or lies behind, a link; nothing outside of a recording's directory belongs to it",
        ),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_the_directory_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("rec/inputs")).unwrap();
        std::fs::write(at("rec/inputs/x"), "x").unwrap();
        std::fs::write(at("secret"), "secret").unwrap();
        symlink(at("secret"), at("rec/inputs/absolute")).unwrap();
        symlink("../../secret", at("rec/inputs/relative")).unwrap();
        symlink("x", at("rec/inputs/beside")).unwrap();
        symlink("../..", at("rec/inputs/up")).unwrap();
        symlink(at(""), at("rec/out")).unwrap();
        nix::unistd::mkfifo(&at("rec/pipe"), Mode::S_IRWXU).unwrap();
        let read = |name: &str| read(&at("rec"), Path::new(name), 8);
        assert_eq!(read("inputs/x").unwrap(), b"x");
        for wrong in [
            "inputs/absolute",
            "inputs/relative",
            "inputs/beside",
            "inputs/up/secret",
            "out/secret",
            "../secret",
            "inputs/../../secret",
            "/etc/passwd",
            "inputs",
            "pipe",
            "",
        ] {
            assert_eq!(
                read(wrong).unwrap_err().kind(),
                ErrorKind::InvalidInput,
                "{wrong}"
            );
        }
        assert_eq!(read("inputs/y").unwrap_err().kind(), ErrorKind::NotFound);
        // The directory itself is the caller's.
        symlink("rec", at("link")).unwrap();
        assert!(open(&at("link"), Path::new("inputs/x")).is_ok());
    }

    #[test]
    fn only_files_of_the_directory_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("rec/inputs")).unwrap();
        std::fs::create_dir(at("outside")).unwrap();
        std::fs::write(at("secret"), "secret").unwrap();
        symlink("../outside", at("rec/out")).unwrap();
        symlink("../../secret", at("rec/inputs/link")).unwrap();
        symlink("../../nothing", at("rec/inputs/dangling")).unwrap();
        let write = |name: &str, text: &str, existing| {
            write(&at("rec"), Path::new(name), text.as_bytes(), existing)
        };
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        write("new/deep/x", "one", Existing::Keep).unwrap();
        assert_eq!(text("rec/new/deep/x"), "one");
        let kept = write("new/deep/x", "two", Existing::Keep).unwrap_err();
        assert_eq!(kept.kind(), ErrorKind::AlreadyExists);
        assert_eq!(text("rec/new/deep/x"), "one");
        write("new/deep/x", "two", Existing::Replace).unwrap();
        assert_eq!(text("rec/new/deep/x"), "two");
        for link in ["inputs/link", "inputs/dangling"] {
            let kept = write(link, "mine", Existing::Keep).unwrap_err();
            assert_eq!(kept.kind(), ErrorKind::AlreadyExists, "{link}");
            write(link, "mine", Existing::Replace).unwrap();
            assert_eq!(text(&format!("rec/{link}")), "mine");
        }
        assert_eq!(text("secret"), "secret");
        assert!(!at("nothing").exists());
        for wrong in ["out/x", "out/sub/x", "../x", "new/../../x", "/x", ""] {
            let error = write(wrong, "mine", Existing::Replace).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
        assert_eq!(std::fs::read_dir(at("outside")).unwrap().count(), 0);
        let left = |name: &str| std::fs::read_dir(at(name)).unwrap().count();
        assert_eq!([left("rec/new/deep"), left("rec/inputs")], [1, 2]);
    }

    #[test]
    fn a_file_is_as_long_as_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let long = |length: u64| {
            let file = File::create(folder.path().join("long")).unwrap();
            file.set_len(length).unwrap();
            read(folder.path(), Path::new("long"), 4096).map(|bytes| bytes.len())
        };
        assert_eq!(long(4096).unwrap(), 4096);
        assert!(long(4097).is_err());
        // Not a byte of it is read.
        assert!(long(1 << 40).is_err());
    }
}
