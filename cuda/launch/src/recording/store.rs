// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's objects, named by hashes.
//!
//! Memory has chunks of [`CHUNK`] bytes; the hash of their hashes' list is its name. An object's first byte: 0 as
//! it is, 1 an LZ4 block.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use gpureplay_host::{Existing, beneath};

use crate::recording::check::MAX_BYTES;
use crate::recording::{Hash, RecordingError};

/// Bytes of a chunk.
pub const CHUNK: usize = 256 << 10;

const RAW: u8 = 0;
const LZ4: u8 = 1;
const LZ4_MAX_RATIO: usize = 255;
const HASH_BYTES: usize = 32;

/// A chunk of memory.
pub struct Chunk {
    /// Offset in the piece.
    pub at: u64,
    hash: Hash,
    size: usize,
}

static ZEROS: LazyLock<Hash> = LazyLock::new(|| Hash::of(&[0; CHUNK]));

impl Chunk {
    /// Whether it is known to be zeros without reading.
    #[must_use]
    pub fn is_zeros(&self) -> bool {
        self.size == CHUNK && self.hash == *ZEROS
    }
}

/// A recording's objects.
#[derive(Clone)]
pub struct Store {
    folder: PathBuf,
    other: Option<PathBuf>,
    held: Option<Arc<BTreeMap<PathBuf, Vec<u8>>>>,
}

impl Store {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::sharing(folder, None)
    }

    pub(crate) fn sharing(folder: &Path, other: Option<PathBuf>) -> Self {
        Self {
            folder: folder.to_owned(),
            other,
            held: None,
        }
    }

    pub(crate) fn held(files: Arc<BTreeMap<PathBuf, Vec<u8>>>) -> Self {
        Self {
            folder: PathBuf::new(),
            other: None,
            held: Some(files),
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// At most `limit` + 1 bytes.
    pub(crate) fn file(&self, name: &Path, limit: u64) -> Result<Vec<u8>, RecordingError> {
        let Some(held) = &self.held else {
            return read_at_most(&self.folder, name, limit);
        };
        let missing = || RecordingError::file(name, std::io::ErrorKind::NotFound.into());
        let bytes = held.get(name).ok_or_else(missing)?;
        let end = usize::try_from(limit.saturating_add(1)).unwrap_or(usize::MAX);
        Ok(bytes.get(..end).unwrap_or(bytes).to_vec())
    }

    /// Fails for symbolic links. The bytes stay unchecked: damage shows at reading.
    fn link_from_other(&self, name: &Path) -> bool {
        let other = self.other.as_ref();
        other.is_some_and(|other| beneath::link(other, &self.folder, name).is_ok())
    }

    /// Returns its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put_image(&self, image: &[u8]) -> Result<Hash, RecordingError> {
        let hash = Hash::of(image);
        let name = image_path(hash);
        if !self.link_from_other(&name) {
            write_once(&self.folder, &name, &[image])?;
        }
        Ok(hash)
    }

    /// # Errors
    /// Missing, or not what its name says.
    pub fn image(&self, hash: Hash, size: u64) -> Result<Vec<u8>, RecordingError> {
        let bytes = self.file(&image_path(hash), size)?;
        if bytes.len() as u64 != size {
            return Err(RecordingError::Size { hash, size });
        }
        if Hash::of(&bytes) != hash {
            Err(RecordingError::Damaged(hash))
        } else {
            Ok(bytes)
        }
    }

    /// Returns its name; on all cores.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Hash, RecordingError> {
        let chunks: Vec<&[u8]> = bytes.chunks(CHUNK).collect();
        let hashes = in_parallel(&chunks, |chunk| {
            let hash = Hash::of(chunk);
            self.put_object(hash, chunk)?;
            Ok(hash)
        })?;
        let list: Vec<u8> = hashes.iter().flat_map(|hash| hash.0).collect();
        let name = Self::name_of(&hashes);
        self.put_object(name, &list)?;
        Ok(name)
    }

    /// Name that [`Store::put`] would give.
    #[must_use]
    pub fn name(bytes: &[u8]) -> Hash {
        let hashes: Vec<Hash> = bytes.chunks(CHUNK).map(Hash::of).collect();
        Self::name_of(&hashes)
    }

    /// Name of contents with these chunks.
    #[must_use]
    pub fn name_of(chunks: &[Hash]) -> Hash {
        let list: Vec<u8> = chunks.iter().flat_map(|hash| hash.0).collect();
        Hash::of(&list)
    }

    /// Reads a piece of memory on all cores.
    ///
    /// # Errors
    /// Missing, damaged, or of another size.
    pub fn get(&self, name: Hash, size: u64) -> Result<Vec<u8>, RecordingError> {
        self.read(name, size, &[], &[])
    }

    /// [`Store::get`] with shared chunks from an earlier result.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn get_changed(
        &self,
        name: Hash,
        size: u64,
        other: Hash,
        bytes: &[u8],
    ) -> Result<Vec<u8>, RecordingError> {
        let known = self.list(other, bytes.len() as u64)?;
        self.read(name, size, &known, bytes)
    }

    /// Takes chunks that `known` lists from the bytes `of`, and reads the others.
    fn read(
        &self,
        name: Hash,
        size: u64,
        known: &[Hash],
        of: &[u8],
    ) -> Result<Vec<u8>, RecordingError> {
        let wrong_size = || RecordingError::Size { hash: name, size };
        let list = self.list(name, size)?;
        let size = usize::try_from(size).map_err(|_| wrong_size())?;
        // Fails without room, where `vec!` aborts. Each core first touches the zeros where it reads.
        let mut room: Vec<u8> = Vec::new();
        room.try_reserve_exact(size).map_err(|_| wrong_size())?;
        drop(room);
        let mut bytes = vec![0; size];
        let there: Vec<&[u8]> = of.chunks(CHUNK).collect();
        let parts = list.iter().zip(bytes.chunks_mut(CHUNK)).enumerate();
        let parts: Vec<_> = parts.map(std::sync::Mutex::new).collect();
        in_parallel(&parts, |part| {
            let mut part = part
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let (at, (hash, out)) = &mut *part;
            match (known.get(*at), there.get(*at)) {
                (Some(known), Some(there)) if known == *hash && there.len() == out.len() => {
                    out.copy_from_slice(there);
                    Ok(())
                }
                _ => self.get_object(**hash, out),
            }
        })?;
        Ok(bytes)
    }

    /// Chunks of a piece, to be read one by one.
    ///
    /// # Errors
    /// The list is missing, damaged, or of another size.
    pub fn chunks(&self, name: Hash, size: u64) -> Result<Vec<Chunk>, RecordingError> {
        let list = self.list(name, size)?;
        let chunks = list.into_iter().zip((0..).step_by(CHUNK));
        let chunks = chunks.map(|(hash, at)| {
            let rest = usize::try_from(size.saturating_sub(at)).unwrap_or(CHUNK);
            Chunk {
                at,
                hash,
                size: rest.min(CHUNK),
            }
        });
        Ok(chunks.collect())
    }

    /// Ranges of bytes outside which two pieces of one size are equal.
    ///
    /// # Errors
    /// As [`Store::chunks`].
    pub fn changed(
        &self,
        one: Hash,
        other: Hash,
        size: u64,
    ) -> Result<Vec<Range<usize>>, RecordingError> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let others = self.list(other, size)?;
        for (chunk, other) in self.chunks(one, size)?.into_iter().zip(others) {
            let start = usize::try_from(chunk.at).unwrap_or(usize::MAX);
            let end = start.saturating_add(chunk.size);
            match ranges.last_mut() {
                _ if chunk.hash == other => {}
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        Ok(ranges)
    }

    /// Reads and checks a chunk.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn chunk(&self, chunk: &Chunk) -> Result<Vec<u8>, RecordingError> {
        let mut bytes = vec![0; chunk.size];
        self.get_object(chunk.hash, &mut bytes)?;
        Ok(bytes)
    }

    /// Checks objects without keeping them in memory.
    #[must_use]
    pub fn checker(&self) -> Checker<'_> {
        Checker {
            store: self,
            right: HashSet::new(),
            pieces: HashSet::new(),
        }
    }

    pub(crate) fn list(&self, name: Hash, size: u64) -> Result<Vec<Hash>, RecordingError> {
        let wrong_size = || RecordingError::Size { hash: name, size };
        let bytes = usize::try_from(size.div_ceil(CHUNK as u64))
            .ok()
            .and_then(|chunks| chunks.checked_mul(HASH_BYTES))
            .filter(|_| size <= MAX_BYTES)
            .ok_or_else(wrong_size)?;
        let file = self.file(&object_path(name), bytes as u64 + 1)?;
        // No memory for a list that its file cannot hold.
        if bytes / LZ4_MAX_RATIO > file.len() {
            return Err(wrong_size());
        }
        let mut list = vec![0; bytes];
        unpack(name, &file, &mut list)?;
        Ok(list.as_chunks().0.iter().copied().map(Hash).collect())
    }

    pub(crate) fn keep_only(&self, wanted: &dyn Fn(Hash) -> bool) -> Result<(), RecordingError> {
        let mut folders = vec![PathBuf::from("images")];
        let listed = beneath::names(&self.folder, Path::new("objects"), |name| {
            folders.push(Path::new("objects").join(name));
        });
        listed.map_err(|error| RecordingError::file(&self.folder.join("objects"), error))?;
        for folder in folders {
            let mut names = Vec::new();
            let listed = beneath::names(&self.folder, &folder, |name| names.push(name.to_owned()));
            listed.map_err(|error| RecordingError::file(&self.folder.join(&folder), error))?;
            for name in names {
                let hash = name.to_str().and_then(|name| name.parse().ok());
                if hash.is_some_and(|hash| !wanted(hash)) {
                    let path = self.folder.join(&folder).join(name);
                    std::fs::remove_file(&path)
                        .map_err(|error| RecordingError::file(&path, error))?;
                }
            }
        }
        Ok(())
    }

    fn put_object(&self, hash: Hash, bytes: &[u8]) -> Result<(), RecordingError> {
        let name = object_path(hash);
        let there = beneath::is_file(&self.folder, &name);
        if there.map_err(|error| RecordingError::file(&self.folder.join(&name), error))?
            || self.link_from_other(&name)
        {
            return Ok(());
        }
        let compressed = lz4_flex::block::compress(bytes);
        if compressed.len() < bytes.len() {
            write_once(&self.folder, &name, &[&[LZ4], &compressed])
        } else {
            write_once(&self.folder, &name, &[&[RAW], bytes])
        }
    }

    fn get_object(&self, hash: Hash, out: &mut [u8]) -> Result<(), RecordingError> {
        // Incompressible chunks stay raw: no file is longer.
        let file = self.file(&object_path(hash), out.len() as u64 + 1)?;
        unpack(hash, &file, out)
    }
}

fn unpack(hash: Hash, file: &[u8], out: &mut [u8]) -> Result<(), RecordingError> {
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

/// Checks each object and list once: cost follows files.
pub struct Checker<'a> {
    store: &'a Store,
    right: HashSet<(Hash, usize)>,
    pieces: HashSet<(Hash, u64)>,
}

impl Checker<'_> {
    /// Checks as [`Store::get`], holding one chunk per core.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn check(&mut self, name: Hash, size: u64) -> Result<(), RecordingError> {
        if self.pieces.contains(&(name, size)) {
            return Ok(());
        }
        let list = self.store.list(name, size)?;
        let last = list.len().saturating_sub(1);
        let rest = usize::try_from(size.saturating_sub(last as u64 * CHUNK as u64));
        let rest = rest.map_err(|_| RecordingError::Size { hash: name, size })?;
        let chunks = list.into_iter().enumerate();
        let chunks = chunks.map(|(at, hash)| (hash, if at == last { rest } else { CHUNK }));
        // In the order of the piece: the first error is told.
        let mut seen = HashSet::new();
        let new: Vec<_> = chunks
            .filter(|chunk| !self.right.contains(chunk) && seen.insert(*chunk))
            .collect();
        in_parallel(&new, |(hash, size)| {
            self.store.get_object(*hash, &mut vec![0; *size])
        })?;
        self.right.extend(seen);
        self.pieces.insert((name, size));
        Ok(())
    }
}

pub(crate) fn image_path(hash: Hash) -> PathBuf {
    Path::new("images").join(hash.to_string())
}

pub(crate) fn object_path(hash: Hash) -> PathBuf {
    let name = hash.to_string();
    Path::new("objects").join(&name[..2]).join(name)
}

/// Results are in the order of `items`.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, RecordingError> + Sync,
) -> Result<Vec<R>, RecordingError> {
    let cores = gpureplay_host::cores();
    let share = items.len().div_ceil(cores).max(8);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    let work = &work;
    let shares: Vec<Result<Vec<R>, RecordingError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(share)
            .map(|items| {
                let all = move || items.iter().map(work).collect::<Result<Vec<R>, _>>();
                // Without a further thread, this one does the work.
                let other = std::thread::Builder::new().spawn_scoped(scope, all);
                other.map_err(|_| all())
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(done) => done,
            })
            .collect()
    });
    let mut all = Vec::with_capacity(items.len());
    for share in shares {
        all.extend(share?);
    }
    Ok(all)
}

fn read_at_most(folder: &Path, name: &Path, limit: u64) -> Result<Vec<u8>, RecordingError> {
    let failed = |error| RecordingError::file(&folder.join(name), error);
    let file = beneath::open(folder, name).map_err(failed)?;
    let most = limit.saturating_add(1);
    let length = file.metadata().map_err(failed)?.len().min(most);
    // Room for a whole chunk; larger files grow it.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(CHUNK).min(CHUNK) + 2);
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn write_once(recording: &Path, name: &Path, parts: &[&[u8]]) -> Result<(), RecordingError> {
    let written = beneath::is_file(recording, name).and_then(|there| match there {
        true => Ok(()),
        false => beneath::write_soon(recording, name, parts, Existing::Replace),
    });
    written.map_err(|error| RecordingError::file(&recording.join(name), error))
}
