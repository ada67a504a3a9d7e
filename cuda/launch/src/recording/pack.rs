// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole run in one file, as Mali's packs.
//!
//! Manifest as recording, signature, `images/HASH`, `objects/HASH`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use gpureplay_sign::{MAX_SIGNATURE, Pack, RECORDING, SIGNATURE, pack};

use super::{Part, Recording, RecordingError, Store, run_name};

/// In bytes.
const MAX_FILE: u64 = 1 << 32;
/// Begins a run's manifest, and no recording of a Mali GPU.
const BEGIN: &[u8] = b"format = ";

impl Recording {
    /// Opens a pack as [`Recording::unpacked`]; `None` for other files.
    #[must_use]
    pub fn of_pack(bytes: &[u8]) -> Option<Self> {
        let pack = Pack::is_pack(bytes).then(|| Pack::parse(bytes).ok())??;
        let is_run = pack.recording().starts_with(BEGIN);
        is_run.then(|| Self::held(&pack))
    }

    /// Opens a pack in memory; its run has number 0. Bytes are checked when used.
    ///
    /// # Errors
    /// No pack.
    pub fn unpacked(bytes: &[u8]) -> Result<Self, RecordingError> {
        let wrong = |reason: String| RecordingError::Manifest {
            path: "the pack".into(),
            reason,
        };
        let pack = Pack::parse(bytes).map_err(|error| wrong(format!("is damaged: {error:?}")))?;
        Ok(Self::held(&pack))
    }

    fn held(pack: &Pack<'_>) -> Self {
        let mut held = BTreeMap::new();
        for file in pack.files() {
            let name = match file.name {
                RECORDING => run_name(0),
                SIGNATURE => Part::Run.signature(0),
                name => name.into(),
            };
            held.insert(name, file.bytes.to_vec());
        }
        Self {
            folder: Path::new("").to_owned(),
            store: Store::held(Arc::new(held)),
        }
    }

    /// Checks bytes first; weights stay elsewhere.
    ///
    /// # Errors
    /// Damage, or too many files.
    pub fn packed(&self, number: u32) -> Result<Vec<u8>, RecordingError> {
        let run = self.run(number)?;
        let mut checker = self.store.checker();
        let mut names = HashSet::new();
        for (size, contents) in run.pieces() {
            checker.check(contents, size)?;
            names.insert(super::store::object_path(contents));
            let list = self.store.list(contents, size)?;
            names.extend(list.into_iter().map(super::store::object_path));
        }
        for image in &run.images {
            image.read(&self.store)?;
            if image.reduced.is_none() {
                names.insert(super::store::image_path(image.hash));
            }
        }
        let mut files = BTreeMap::new();
        for name in names {
            let bytes = self.store.file(&name, MAX_FILE)?;
            files.insert(name.to_string_lossy().into_owned(), bytes);
        }
        let manifest = self.manifest(Part::Run, number)?;
        files.insert(RECORDING.to_owned(), manifest.into_bytes());
        if let Ok(signature) = self.signature(Part::Run, number, MAX_SIGNATURE) {
            files.insert(SIGNATURE.to_owned(), signature);
        }
        pack(&files).map_err(|error| RecordingError::Manifest {
            path: self.folder.clone(),
            reason: format!("cannot be packed: {error:?}"),
        })
    }
}
