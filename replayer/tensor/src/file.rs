// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is written beside its destination and renamed onto it when complete.
///
/// Dropping it without [`AtomicFile::commit`] removes what was written.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    destination: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will become `destination`, in the same folder.
    pub fn create(destination: &Path) -> io::Result<AtomicFile> {
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
                        temporary,
                        destination: destination.to_path_buf(),
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
            file.sync_all()?;
        }
        fs::rename(&self.temporary, &self.destination)
    }
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
        // After a commit the temporary name is gone and this does nothing.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes `contents` to `path` such that a reader sees the old file or the whole new one.
pub fn write_atomic(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(contents)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("gpureplay-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x");
        write_atomic(&path, b"old").unwrap();
        let mut unfinished = AtomicFile::create(&path).unwrap();
        unfinished.write_all(b"new").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
