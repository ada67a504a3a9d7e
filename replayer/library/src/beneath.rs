// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens files of a recording's directory, and nothing outside of it: no link is followed, whatever changes there meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open as open_path, openat};
use nix::sys::stat::Mode;

/// Opens a regular file of a directory for reading. The name's parts are opened one by one, each in the one before it, so that
/// none of them can be a link; the directory itself is the caller's and may be reached through links.
///
/// # Errors
/// What the system says, or of the kind [`ErrorKind::InvalidInput`]: the name leads out of the directory, one of its parts is
/// a link, or there is something else than a file.
pub(crate) fn open(directory: &Path, name: &Path) -> io::Result<File> {
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
    let folder = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut place = open_path(directory, folder, Mode::empty())?;
    for part in folders {
        let inner = openat(&place, *part, folder | OFlag::O_NOFOLLOW, Mode::empty());
        place = inner.map_err(linked)?;
    }
    // A pipe without a writer is opened at once, and then found to be no file.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = openat(&place, *last, flags | OFlag::O_CLOEXEC, Mode::empty());
    let file = File::from(file.map_err(linked)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("it is no file")),
    }
}

/// The contents of a file of a directory, which has at most `limit` bytes.
///
/// # Errors
/// As for [`open`], or it is longer.
pub(crate) fn read(directory: &Path, name: &Path, limit: u64) -> io::Result<Vec<u8>> {
    contents(open(directory, name)?, limit)
}

/// The contents of a file that is open, of at most `limit` bytes. A file that says that it is longer is not read.
///
/// # Errors
/// What the system says, or it is longer.
pub(crate) fn contents(file: File, limit: u64) -> io::Result<Vec<u8>> {
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
