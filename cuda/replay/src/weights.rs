// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of weights outside a recording.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gpureplay_cuda_launch::recording::{Hash, Recording, Run, Store, WeightTensor};
use safetensors::tensor::Metadata;

use crate::failure::{Failure, file};
use crate::{ReplayError, WeightBytes, Weights};

/// In bytes: some hundred thousand tensors.
const MAX_HEADER: u64 = 16 << 20;
const MAX_TENSORS: usize = 1 << 16;
pub(crate) struct Place {
    pub(crate) form: String,
    at: u64,
    pub(crate) size: u64,
}

pub(crate) struct Archive {
    pub(crate) path: PathBuf,
    opened: File,
    pub(crate) tensors: HashMap<String, Place>,
}

impl Archive {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let opened = File::open(path).map_err(file(path))?;
        let wrong = |reason: &dyn std::fmt::Display| {
            let text = format!("no .safetensors file: {reason}");
            file(path)(io::Error::new(io::ErrorKind::InvalidData, text))
        };
        let end = opened.metadata().map_err(file(path))?.len();
        let mut length = [0; 8];
        opened
            .read_exact_at(&mut length, 0)
            .map_err(|_| wrong(&"it is shorter than the length of its header"))?;
        let length = u64::from_le_bytes(length);
        if length > end.saturating_sub(8).min(MAX_HEADER) {
            return Err(wrong(&format!(
                "a header of {length} bytes, in a file of {end}"
            )));
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
        opened.read_exact_at(&mut text, 8).map_err(file(path))?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
        let data = 8 + length;
        if data.checked_add(header.data_len() as u64) != Some(end) {
            return Err(wrong(
                &"its length is not that of the tensors in its header",
            ));
        }
        let mut tensors = HashMap::new();
        for (name, info) in header.tensors() {
            let (begin, end) = info.data_offsets;
            let place = Place {
                form: format!("{:?}{:?}", info.dtype, info.shape).replace(' ', ""),
                at: data + begin as u64,
                size: end.saturating_sub(begin) as u64,
            };
            tensors.insert(name, place);
        }
        if tensors.len() > MAX_TENSORS {
            return Err(wrong(&format!("more than {MAX_TENSORS} tensors")));
        }
        Ok(Self {
            path: path.to_owned(),
            opened,
            tensors,
        })
    }

    pub(crate) fn all(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let tensors = self.tensors.iter();
        let read = tensors.map(|(name, place)| Ok((name.clone(), self.read(place)?)));
        read.collect()
    }

    pub(crate) fn read(&self, place: &Place) -> io::Result<Vec<u8>> {
        // By the header's rule, tensors end before the file.
        let mut bytes = vec![0; usize::try_from(place.size).unwrap_or(0)];
        self.opened.read_exact_at(&mut bytes, place.at)?;
        Ok(bytes)
    }
}

pub(crate) struct Given {
    archive: Archive,
    others: usize,
    expected: HashMap<String, Hash>,
}

impl Given {
    /// The given file, or the recorded name in the recording's directory, beside it, or in the current one.
    pub(crate) fn of(
        recording: &Recording,
        run: &Run,
        given: Option<&Path>,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = &run.weights else {
            return match given {
                Some(_) => Err(Failure::Usage(
                    "--weights: the run has its weights; record it with --weights".into(),
                )),
                None => Ok(None),
            };
        };
        let folder = recording.folder();
        // A path in the name would lead elsewhere.
        let name = Path::new(name).file_name().unwrap_or_default();
        let beside = folder.parent().unwrap_or(folder);
        let mut found = [folder, beside, Path::new("")]
            .into_iter()
            .map(|folder| folder.join(name));
        let path = match given {
            Some(path) => path.to_owned(),
            None => found.find(|path| path.is_file()).ok_or_else(|| {
                Failure::Usage(format!(
                    "the run's weights are in {}, which does not lie beside the recording: give the file (--weights, bind_weights)",
                    name.display()
                ))
            })?,
        };
        let archive = Archive::open(&path)?;
        let found = run
            .tensors
            .iter()
            .filter(|tensor| !tensor.places.is_empty());
        let found: HashSet<Hash> = found.map(|tensor| tensor.hash).collect();
        let (mut others, mut expected) = (0, HashMap::new());
        // Tensor and new hash by recorded hash.
        let mut alike: HashMap<Hash, (&str, Hash)> = HashMap::new();
        for tensor in &run.tensors {
            let wrong = |reason: &str| {
                Failure::Usage(format!("{}: {} {reason}", path.display(), tensor.name))
            };
            let place = archive.tensors.get(&tensor.name);
            let place = place.ok_or_else(|| wrong("is missing"))?;
            if (&place.form, place.size) != (&tensor.form, tensor.size) {
                return Err(wrong(&format!("is {}, not {}", place.form, tensor.form)));
            }
            // Without --weights only recorded bytes will do, checked when read.
            let hash = match given {
                Some(_) => Store::name(&archive.read(place).map_err(file(&path))?),
                None => tensor.hash,
            };
            if hash != tensor.hash && !found.contains(&tensor.hash) {
                return Err(wrong(
                    "is not as recorded, and was not found in memory when the run was recorded",
                ));
            }
            let (twin, other) = alike.entry(tensor.hash).or_insert((&tensor.name, hash));
            if *other != hash {
                return Err(wrong(&format!(
                    "is not as {twin}; both had the same bytes when the run was recorded, and cannot be told apart in memory"
                )));
            }
            others += usize::from(hash != tensor.hash);
            expected.insert(tensor.name.clone(), hash);
        }
        let given = Self {
            archive,
            others,
            expected,
        };
        Ok(Some(given))
    }

    /// Tensors not as recorded.
    pub(crate) fn others(&self) -> usize {
        self.others
    }

    pub(crate) fn bytes(self) -> Weights {
        Box::new(self)
    }
}

impl WeightBytes for Given {
    fn read(&self, tensor: &WeightTensor, at: u64, bytes: &mut [u8]) -> Result<(), ReplayError> {
        let wrong = |reason: String| ReplayError::Weights {
            name: tensor.name.clone(),
            reason,
        };
        let place = self.archive.tensors.get(&tensor.name);
        let place = place.ok_or_else(|| wrong("is missing".into()))?;
        let end = at.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > place.size) {
            return Err(wrong("has another size than recorded".into()));
        }
        let read = self.archive.opened.read_exact_at(bytes, place.at + at);
        read.map_err(|error| wrong(error.to_string()))
    }

    fn check(&self, tensor: &WeightTensor, found: Hash) -> Result<(), ReplayError> {
        if self.expected.get(&tensor.name) == Some(&found) {
            return Ok(());
        }
        Err(ReplayError::Weights {
            name: tensor.name.clone(),
            reason: format!(
                "is not as recorded in {}; --weights FILE takes other weights",
                self.archive.path.display()
            ),
        })
    }
}
