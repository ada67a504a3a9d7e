// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads users' files within bounds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use gpureplay_format::layout::MAGIC;
use gpureplay_host::beneath;
use gpureplay_sign::Pack;
use tempfile::TempDir;

use crate::seal::Seal;

/// Bytes of a recording, and of a file beside it.
pub(crate) const MAX_BYTES: u64 = 1 << 32;

/// Bytes that tell the kind and, at [`LENGTH`], the length.
const HEAD: usize = 64;
/// Place of the whole file's length.
const LENGTH: std::ops::Range<usize> = 16..24;

/// Reads a file that the user names, of at most `most` bytes; no device. A pipe is read to its end, or until too
/// long.
///
/// # Errors
/// The system's, or the file is too long.
pub fn read_named(path: &Path, most: u64) -> crate::Result<Vec<u8>> {
    let read = open_named(path).and_then(|file| beneath::contents(file, most));
    read.map_err(|error| crate::Error::file(path, error))
}

pub(crate) fn open_named(path: &Path) -> io::Result<fs::File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is a device"));
    }
    fs::File::open(path)
}

/// Reads a recording or a pack; of a file with another length or kind only the start, which says what is wrong.
pub(crate) fn read_recording(file: fs::File) -> io::Result<Vec<u8>> {
    read_within(file, MAX_BYTES)
}

pub(crate) fn read_within(file: fs::File, limit: u64) -> io::Result<Vec<u8>> {
    let long = || {
        let reason = format!("longer than {limit} bytes");
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    };
    let mut head = Vec::new();
    let found = file.metadata()?;
    (&file).take(HEAD as u64).read_to_end(&mut head)?;
    let stated = head.get(LENGTH).and_then(|bytes| bytes.try_into().ok());
    let stated = stated.map(u64::from_le_bytes);
    let known = head.starts_with(&MAGIC) || Pack::is_pack(&head);
    if !known || found.is_file() && stated != Some(found.len()) {
        return Ok(head);
    }
    if found.is_file() && found.len() > limit {
        return Err(long());
    }
    // One byte more shows that it is longer.
    let rest = limit.saturating_add(1).saturating_sub(head.len() as u64);
    file.take(rest).read_to_end(&mut head)?;
    match head.len() as u64 > limit {
        true => Err(long()),
        false => Ok(head),
    }
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) variants: BTreeMap<String, Vec<u8>>,
    pub(crate) seal: Option<Seal>,
}

/// Files in a directory that only this user can enter.
#[derive(Debug)]
pub(crate) struct PrivateCopy {
    pub(crate) _directory: TempDir,
    pub(crate) original: PathBuf,
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    fn read(magic: &[u8], stated: u64, length: u64) -> usize {
        read_up_to(MAX_BYTES, magic, stated, length).unwrap_or(0)
    }

    fn read_up_to(limit: u64, magic: &[u8], stated: u64, length: u64) -> io::Result<usize> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let head = [magic, &[0; 8], &stated.to_le_bytes(), &[0; 40]].concat();
        fs::write(&path, head).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        let file = open_named(&path).unwrap();
        let bytes = match limit {
            MAX_BYTES => read_recording(file),
            other => read_within(file, other),
        };
        bytes.map(|bytes| bytes.len())
    }

    #[test]
    fn only_a_file_as_long_as_it_says_is_read() {
        for magic in [&MAGIC, b"GPUREPAK"] {
            assert_eq!(read(magic, 4096, 4096), 4096);
            assert_eq!(read(magic, 4096, 4097), HEAD);
            assert_eq!(read(magic, 4096, 5 << 30), HEAD);
        }
        assert_eq!(read(b"anything", 4096, 4096), HEAD);
        assert_eq!(read(&MAGIC, MAX_BYTES + 1, MAX_BYTES + 1), 0);
    }

    #[test]
    fn a_recording_or_a_pack_is_as_long_as_it_may_be() {
        assert_eq!(MAX_BYTES, 4 << 30);
        for magic in [&MAGIC, b"GPUREPAK"] {
            let read = |length| read_up_to(4096, magic, length, length);
            assert_eq!(read(4096).unwrap(), 4096);
            let error = read(4097).unwrap_err().to_string();
            assert!(error.contains("longer than 4096 bytes"), "{error}");
        }
        let piped = |length: usize| {
            let (reader, mut writer) = io::pipe().unwrap();
            let bytes = [&MAGIC[..], &vec![0; length - MAGIC.len()]].concat();
            writer.write_all(&bytes).unwrap();
            drop(writer);
            read_within(fs::File::from(OwnedFd::from(reader)), 4096).map(|bytes| bytes.len())
        };
        assert_eq!(piped(4096).unwrap(), 4096);
        assert!(piped(4097).is_err());
    }
}
