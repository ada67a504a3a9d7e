// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects by hash: chunks of memory, lists of chunks, images.
//!
//! A piece of memory is cut into chunks of [`CHUNK`] bytes; its name is the hash of the list of their hashes. An object file
//! begins with a byte that says how the rest is kept: 0 as it is, 1 as an LZ4 block.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Hash, RecordingError};

/// Bytes of a chunk.
pub const CHUNK: usize = 256 << 10;

const RAW: u8 = 0;
const LZ4: u8 = 1;
/// Bytes of a hash in a list.
const HASH: usize = 32;

/// The objects of a recording.
pub struct Store {
    folder: PathBuf,
    /// Another recording, whose files are linked instead of written again.
    other: Option<PathBuf>,
}

impl Store {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::sharing(folder, None)
    }

    pub(crate) fn sharing(folder: &Path, other: Option<PathBuf>) -> Self {
        Self {
            folder: folder.to_owned(),
            other,
        }
    }

    fn object(&self, hash: Hash) -> PathBuf {
        self.folder.join(object_path(hash))
    }

    fn image_path(&self, hash: Hash) -> PathBuf {
        self.folder.join("images").join(hash.to_string())
    }

    /// Links a file from the other recording, if it has it. A file that is damaged there is told when it is read.
    fn linked(&self, path: &Path) -> bool {
        let Some(other) = &self.other else {
            return false;
        };
        let Ok(name) = path.strip_prefix(&self.folder) else {
            return false;
        };
        let folder_is_there = path
            .parent()
            .is_some_and(|folder| fs::create_dir_all(folder).is_ok());
        folder_is_there && fs::hard_link(other.join(name), path).is_ok()
    }

    /// Keeps an image and says its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_image(&self, image: &[u8]) -> Result<Hash, RecordingError> {
        let hash = Hash::of(image);
        let path = self.image_path(hash);
        if !self.linked(&path) {
            write_once(&path, &[image])?;
        }
        Ok(hash)
    }

    /// An image.
    ///
    /// # Errors
    /// If it is not there, or is not what its name says.
    pub fn image(&self, hash: Hash, size: u64) -> Result<Vec<u8>, RecordingError> {
        let bytes = read_at_most(&self.image_path(hash), size)?;
        if bytes.len() as u64 != size {
            return Err(RecordingError::Size { hash, size });
        }
        if Hash::of(&bytes) != hash {
            Err(RecordingError::Damaged(hash))
        } else {
            Ok(bytes)
        }
    }

    /// Keeps a piece of memory and says its name. Works on all cores.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Hash, RecordingError> {
        let chunks: Vec<&[u8]> = bytes.chunks(CHUNK).collect();
        let hashes = in_parallel(&chunks, |chunk| {
            let hash = Hash::of(chunk);
            self.put_object(hash, chunk)?;
            Ok(hash)
        })?;
        let list: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
        let name = Hash::of(&list);
        self.put_object(name, &list)?;
        Ok(name)
    }

    /// The name that [`Store::put`] would give, without keeping anything.
    #[must_use]
    pub fn name(bytes: &[u8]) -> Hash {
        let list: Vec<u8> = bytes
            .chunks(CHUNK)
            .flat_map(|chunk| Hash::of(chunk).0)
            .collect();
        Hash::of(&list)
    }

    /// A piece of memory of a known size. Works on all cores.
    ///
    /// # Errors
    /// If an object is missing, is not what its name says, or has another size.
    pub fn get(&self, name: Hash, size: u64) -> Result<Vec<u8>, RecordingError> {
        let wrong_size = RecordingError::Size { hash: name, size };
        let Ok(size) = usize::try_from(size) else {
            return Err(wrong_size);
        };
        let chunks = size.div_ceil(CHUNK);
        let mut list = vec![0; chunks * HASH];
        self.get_object(name, &mut list)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| wrong_size)?;
        bytes.resize(size, 0);
        let parts: Vec<_> = list
            .as_chunks::<HASH>()
            .0
            .iter()
            .zip(bytes.chunks_mut(CHUNK))
            .collect();
        let parts: Vec<_> = parts.into_iter().map(std::sync::Mutex::new).collect();
        in_parallel(&parts, |part| {
            let mut part = part
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let hash = Hash(*part.0);
            self.get_object(hash, part.1)
        })?;
        Ok(bytes)
    }

    fn put_object(&self, hash: Hash, bytes: &[u8]) -> Result<(), RecordingError> {
        let path = self.object(hash);
        if path.exists() || self.linked(&path) {
            return Ok(());
        }
        let compressed = lz4_flex::block::compress(bytes);
        if compressed.len() < bytes.len() {
            write_once(&path, &[&[LZ4], &compressed])
        } else {
            write_once(&path, &[&[RAW], bytes])
        }
    }

    /// Reads an object that holds exactly as many bytes as `out` has.
    fn get_object(&self, hash: Hash, out: &mut [u8]) -> Result<(), RecordingError> {
        // A chunk that does not compress is kept as it is, so a file is never longer than that.
        let file = read_at_most(&self.object(hash), out.len() as u64 + 1)?;
        let wrong_size = RecordingError::Size {
            hash,
            size: out.len() as u64,
        };
        match file.split_first() {
            Some((&RAW, bytes)) if bytes.len() == out.len() => out.copy_from_slice(bytes),
            Some((&LZ4, bytes)) => match lz4_flex::block::decompress_into(bytes, out) {
                Ok(written) if written == out.len() => {}
                _ => return Err(wrong_size),
            },
            _ => return Err(wrong_size),
        }
        if Hash::of(out) != hash {
            Err(RecordingError::Damaged(hash))
        } else {
            Ok(())
        }
    }
}

/// Where an object lies in a recording.
fn object_path(hash: Hash) -> PathBuf {
    let name = hash.to_string();
    Path::new("objects").join(&name[..2]).join(name)
}

/// Does `work` on every item, on all cores, and answers in order.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, RecordingError> + Sync,
) -> Result<Vec<R>, RecordingError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(8);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    let work = &work;
    let shares: Vec<Result<Vec<R>, RecordingError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(share)
            .map(|items| scope.spawn(move || items.iter().map(work).collect::<Result<Vec<R>, _>>()))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut all = Vec::with_capacity(items.len());
    for share in shares {
        all.extend(share?);
    }
    Ok(all)
}

fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>, RecordingError> {
    let failed = |error| RecordingError::file(path, error);
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}

/// Writes a file under another name and gives it its own when it is whole; a file that is there already stays.
pub(crate) fn write_once(path: &Path, parts: &[&[u8]]) -> Result<(), RecordingError> {
    if path.exists() {
        return Ok(());
    }
    let temporary = write_temporary(path, parts)?;
    let renamed = fs::rename(&temporary, path);
    if renamed.is_err() {
        // The error of the renaming is the one that counts.
        let _ = fs::remove_file(&temporary);
    }
    renamed.map_err(|error| RecordingError::file(path, error))
}

/// Writes a file under a name that no other process or thread uses.
pub(crate) fn write_temporary(path: &Path, parts: &[&[u8]]) -> Result<PathBuf, RecordingError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{number}.part", std::process::id()));
    let folder = temporary.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| RecordingError::file(folder, error))?;
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        parts.iter().try_for_each(|part| file.write_all(part))
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        RecordingError::file(&temporary, error)
    })?;
    Ok(temporary)
}
