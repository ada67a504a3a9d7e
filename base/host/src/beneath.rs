// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens and writes files inside a directory only; follows no link.
//!
//! A name's parts are opened one in the other, so none can be a link. The directory itself may be reached through
//! links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open as open_path, openat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};

mod write;

pub(crate) use write::write_in;
pub use write::{link, make_folder, write, write_soon};

const FOLDER: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    Fails,
    IsMade,
}

/// Opens a regular file for reading.
///
/// # Errors
/// The system's, or [`ErrorKind::InvalidInput`]: the name leads out, has a link, or is no file.
pub fn open(directory: &Path, name: &Path) -> io::Result<File> {
    let (folder, name) = place(directory, name, Absent::Fails)?;
    // Opening a device may have effects.
    match kind(&folder, name)? {
        SFlag::S_IFREG => {}
        SFlag::S_IFLNK => return Err(linked(Errno::ELOOP)),
        _ => return Err(refused("it is no file")),
    }
    // A pipe in its place opens at once, and is refused.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = openat(&folder, name, flags | OFlag::O_CLOEXEC, Mode::empty());
    let file = File::from(file.map_err(linked)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("it is no file")),
    }
}

/// Whether a name is a regular file, not a link.
///
/// # Errors
/// As for [`open`], of existing folders.
pub fn is_file(directory: &Path, name: &Path) -> io::Result<bool> {
    let found =
        place(directory, name, Absent::Fails).and_then(|(folder, name)| Ok(kind(&folder, name)?));
    match found {
        Ok(kind) => Ok(kind == SFlag::S_IFREG),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calls `found` for each name, unordered.
///
/// # Errors
/// As for [`open`], or the folder cannot be read.
pub fn names(directory: &Path, folder: &Path, mut found: impl FnMut(&OsStr)) -> io::Result<()> {
    let (outer, name) = place(directory, folder, Absent::Fails)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = openat(&outer, name, flags, Mode::empty()).map_err(linked)?;
    for entry in Dir::from_fd(opened)?.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            found(name);
        }
    }
    Ok(())
}

fn kind(folder: &OwnedFd, name: &OsStr) -> nix::Result<SFlag> {
    let found = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT)
}

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

/// Reads a file beneath a directory, at most `limit` bytes.
///
/// # Errors
/// As for [`open`], or it is longer.
pub fn read(directory: &Path, name: &Path, limit: u64) -> io::Result<Vec<u8>> {
    contents(open(directory, name)?, limit)
}

/// Reads an open file, at most `limit` bytes.
///
/// # Errors
/// The system's, or it is longer.
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
        symlink("rec", at("link")).unwrap();
        assert!(open(&at("link"), Path::new("inputs/x")).is_ok());
    }

    #[test]
    fn only_folders_of_the_directory_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("rec/inputs/deep")).unwrap();
        std::fs::write(at("rec/inputs/x"), "x").unwrap();
        symlink("x", at("rec/inputs/beside")).unwrap();
        symlink("inputs", at("rec/link")).unwrap();
        symlink("..", at("rec/up")).unwrap();
        let list = |name: &str| {
            let mut found = Vec::new();
            names(&at("rec"), Path::new(name), |name| {
                found.push(name.to_str().unwrap().to_owned());
            })?;
            found.sort();
            io::Result::Ok(found)
        };
        assert_eq!(list("inputs").unwrap(), ["beside", "deep", "x"]);
        assert!(list("inputs/deep").unwrap().is_empty());
        for wrong in [
            "link",
            "up",
            "up/rec",
            "link/deep",
            "..",
            "inputs/x",
            "/",
            "",
        ] {
            let error = list(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
        assert_eq!(list("none").unwrap_err().kind(), ErrorKind::NotFound);
        let is_file = |name: &str| is_file(&at("rec"), Path::new(name)).ok();
        assert_eq!(is_file("inputs/x"), Some(true));
        for other in ["inputs/beside", "inputs/deep", "inputs/none", "none/x"] {
            assert_eq!(is_file(other), Some(false), "{other}");
        }
        assert_eq!([is_file("link/x"), is_file("../rec")], [None; 2]);
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
        assert!(long(1 << 40).is_err());
    }
}
