// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed to a destination, as many as Linux follows.
const MAX_LINKS: u32 = 40;

/// A file that is written beside its destination and renamed onto it when complete.
///
/// A destination that is a symbolic link stays one: what it leads to is replaced. A device, a pipe or a socket is written as
/// it is, never replaced. Dropping it without [`AtomicFile::commit`] removes what was written.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    /// Temporary name and destination; `None` for what is written as it is.
    rename: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Starts a file that will become `destination`, in the same folder.
    pub fn create(destination: &Path) -> io::Result<AtomicFile> {
        let destination = followed(destination)?;
        match fs::metadata(&destination) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&destination)?;
                return Ok(AtomicFile {
                    writer: Some(BufWriter::new(file)),
                    rename: None,
                });
            }
            _ => {}
        }
        let name = destination
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        // The process id tells concurrent writers apart, the counter those of one process.
        for attempt in 0..1000u32 {
            let mut temporary_name = std::ffi::OsString::from(".");
            temporary_name.push(name);
            temporary_name.push(format!(".{}.{attempt}.part", std::process::id()));
            let temporary = destination.with_file_name(temporary_name);
            match File::options()
                .write(true)
                .create_new(true)
                .open(&temporary)
            {
                Ok(file) => {
                    return Ok(AtomicFile {
                        writer: Some(BufWriter::new(file)),
                        rename: Some((temporary, destination)),
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "too many unfinished files of this name",
        ))
    }

    /// Flushes to the disk and renames onto the destination.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            let file = writer.into_inner().map_err(|e| e.into_error())?;
            // Devices and pipes have nothing to flush, and say so with an error.
            if self.rename.is_some() {
                file.sync_all()?;
            }
        }
        match &self.rename {
            Some((temporary, destination)) => fs::rename(temporary, destination),
            None => Ok(()),
        }
    }
}

/// Where a path leads; the path itself if it is no symbolic link.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(path);
        };
        // A link of the kernel's to an open pipe or a removed file leads to a name that does not exist.
        let named = path.parent().unwrap_or(Path::new("")).join(target);
        if fs::metadata(&path).is_ok() && fs::metadata(&named).is_err() {
            return Ok(path);
        }
        path = named;
    }
    Err(io::Error::other("too many symbolic links"))
}

impl Write for AtomicFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(buffer),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), |w| w.flush())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            // After a commit the temporary name is gone and this does nothing.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Writes `contents` to `path` such that a reader of a file sees the old one or the whole new one.
pub fn write_atomic(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(contents)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("gpureplay-atomic-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn links_stay_links() {
        let folder = Folder::new("links");
        let (link, second) = (folder.0.join("link"), folder.0.join("second"));
        std::os::unix::fs::symlink("link", &second).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        // The link leads to nothing at first, then to a file.
        for contents in ["new", "newer"] {
            write_atomic(&second, contents.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(folder.0.join("file")).unwrap(), contents);
            assert!(link.is_symlink() && second.is_symlink());
        }
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3);
        std::os::unix::fs::symlink("circle", folder.0.join("circle")).unwrap();
        assert!(write_atomic(&folder.0.join("circle"), b"x").is_err());
    }

    #[test]
    fn what_is_no_file_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        // By a link too, as /dev/stdout is one.
        let link = folder.0.join("link");
        std::os::unix::fs::symlink("pipe", &link).unwrap();
        for path in [&pipe, &link] {
            let from = pipe.clone();
            let reader = std::thread::spawn(move || fs::read_to_string(from).unwrap());
            write_atomic(path, b"through").unwrap();
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
            assert!(link.is_symlink());
            assert_eq!(reader.join().unwrap(), "through");
        }
        let error = write_atomic(&folder.0, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = Folder::new("dropped");
        let path = folder.0.join("x");
        write_atomic(&path, b"old").unwrap();
        let mut unfinished = AtomicFile::create(&path).unwrap();
        unfinished.write_all(b"new").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}
