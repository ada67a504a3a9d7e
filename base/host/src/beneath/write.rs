// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes files inside a directory only.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open as open_path, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::{Absent, FOLDER, kind, place, refused};
use crate::file::{Existing, READABLE_BY_ALL};

const MAX_ATTEMPTS: u32 = 64;

/// Makes a file's folders.
///
/// # Errors
/// As for [`super::open`], or one cannot be made.
pub fn make_folder(directory: &Path, name: &Path) -> io::Result<()> {
    place(directory, name, Absent::IsMade).map(drop)
}

/// A whole file or nothing; makes folders. An existing link is replaced, not its target.
///
/// # Errors
/// As for [`super::open`]; or the file exists, and is to be kept.
pub fn write(directory: &Path, name: &Path, contents: &[u8], existing: Existing) -> io::Result<()> {
    finish(directory, name, existing, |file| {
        file.write_all(contents)?;
        file.sync_all()
    })
}

/// [`write()`] without waiting for the disk; contents in parts.
///
/// # Errors
/// As for [`write()`].
pub fn write_soon(
    directory: &Path,
    name: &Path,
    parts: &[&[u8]],
    existing: Existing,
) -> io::Result<()> {
    finish(directory, name, existing, |file| {
        parts.iter().try_for_each(|part| file.write_all(part))
    })
}

/// Hard-links another directory's file under the same name; makes folders.
///
/// # Errors
/// As for [`super::open`], in either directory; the name is taken; or another file system.
pub fn link(other: &Path, directory: &Path, name: &Path) -> io::Result<()> {
    let (from, _) = place(other, name, Absent::Fails)?;
    let (folder, name) = place(directory, name, Absent::IsMade)?;
    let is_file = |place| kind(place, name).map(|kind| kind == SFlag::S_IFREG);
    if !is_file(&from)? {
        return Err(refused("it is no file"));
    }
    linkat(&from, name, &folder, name, AtFlags::empty())?;
    // A link in the file's place was linked itself.
    if !is_file(&folder)? {
        let _ = unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir);
        return Err(refused("it is no file"));
    }
    Ok(())
}

/// The folder may be a link. A file that `stays`, asked with device and number, is not replaced.
pub(crate) fn write_in(
    folder: &Path,
    name: &OsStr,
    contents: &[u8],
    existing: Existing,
    mode: u32,
    stays: impl Fn(u64, u64) -> bool,
) -> io::Result<()> {
    let folder = open_path(folder, FOLDER, Mode::empty())?;
    finish_in(&folder, name, existing, mode, |file| {
        file.write_all(contents)?;
        file.sync_all()?;
        match fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) if stays(found.st_dev, found.st_ino) => Err(ErrorKind::ResourceBusy.into()),
            _ => Ok(()),
        }
    })
}

fn finish(
    directory: &Path,
    name: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, name) = place(directory, name, Absent::IsMade)?;
    finish_in(&folder, name, existing, READABLE_BY_ALL, fill)
}

fn finish_in(
    folder: &OwnedFd,
    name: &OsStr,
    existing: Existing,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mode = Mode::from_bits_truncate(mode);
    let (mut file, unfinished) = create(folder, mode)?;
    let written = fill(&mut file).and_then(|()| match existing {
        Existing::Replace => Ok(renameat(folder, unfinished.as_str(), folder, name)?),
        Existing::Keep => keep(folder, &unfinished, name, mode),
    });
    if written.is_err() {
        // The first error says more.
        let _ = unlinkat(folder, unfinished.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}

fn keep(folder: &OwnedFd, unfinished: &str, name: &OsStr, mode: Mode) -> io::Result<()> {
    match linkat(folder, unfinished, folder, name, AtFlags::empty()) {
        Ok(()) => Ok(unlinkat(folder, unfinished, UnlinkatFlags::NoRemoveDir)?),
        // No hard links, by file system or policy: takes the name first.
        Err(Errno::EPERM | Errno::EACCES | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            openat(folder, name, flags, mode)?;
            renameat(folder, unfinished, folder, name).map_err(|error| {
                let _ = unlinkat(folder, name, UnlinkatFlags::NoRemoveDir);
                error.into()
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn create(folder: &OwnedFd, mode: Mode) -> io::Result<(File, String)> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    for _ in 0..MAX_ATTEMPTS {
        // Random hash keys: not guessable.
        let number = RandomState::new().hash_one(0);
        let name = format!(".gpureplay-{number:016x}.part");
        match openat(folder, name.as_str(), flags, mode) {
            Ok(file) => return Ok((file.into(), name)),
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EEXIST.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

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
    fn what_is_written_soon_is_written_as_other_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("rec")).unwrap();
        symlink("..", at("rec/out")).unwrap();
        let write = |name: &str, text: &str, existing| {
            let (one, two) = text.as_bytes().split_at(1);
            write_soon(&at("rec"), Path::new(name), &[one, two], existing)
        };
        write("a/x", "one", Existing::Keep).unwrap();
        let kept = write("a/x", "two", Existing::Keep).unwrap_err();
        assert_eq!(kept.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(at("rec/a/x")).unwrap(), b"one");
        write("a/x", "two", Existing::Replace).unwrap();
        assert_eq!(std::fs::read(at("rec/a/x")).unwrap(), b"two");
        let error = write("out/x", "three", Existing::Replace).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        make_folder(&at("rec"), Path::new("b/c/any")).unwrap();
        assert!(at("rec/b/c").is_dir());
        assert!(make_folder(&at("rec"), Path::new("out/d/any")).is_err());
        assert!(!at("d").exists());
        assert_eq!(std::fs::read_dir(at("rec/a")).unwrap().count(), 1);
    }

    #[test]
    fn only_files_of_the_other_directory_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["rec", "other/in", "outside"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["other/in/x", "other/y", "outside/z"] {
            std::fs::write(at(name), "x").unwrap();
        }
        symlink("../../outside/z", at("other/in/link")).unwrap();
        symlink("../outside", at("other/out")).unwrap();
        symlink("../outside", at("rec/up")).unwrap();
        let link = |name: &str| link(&at("other"), &at("rec"), Path::new(name));
        link("in/x").unwrap();
        let number = |name: &str| std::fs::metadata(at(name)).unwrap().ino();
        assert_eq!(number("rec/in/x"), number("other/in/x"));
        assert_eq!(link("in/x").unwrap_err().kind(), ErrorKind::AlreadyExists);
        for wrong in ["in/link", "out/z", "../outside/z", "in"] {
            let error = link(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
        std::fs::create_dir(at("other/up")).unwrap();
        std::fs::write(at("other/up/w"), "x").unwrap();
        assert_eq!(link("up/w").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(std::fs::read_dir(at("outside")).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(at("rec/in")).unwrap().count(), 1);
    }
}
