// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights by reference: tensors of a `.safetensors` file are found in a run's memory by their bytes, and named instead of kept.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{ReplayError, Weights};
use gpureplay_cuda_launch::recording::{Hash, Hasher, Recording, Run, WeightTensor, Writer};
use safetensors::tensor::Metadata;

use crate::command::failure::{Failure, file};
use crate::command::report::{bytes, note};

/// Bytes of a header at most: some hundred thousand tensors.
const MAX_HEADER: u64 = 16 << 20;
/// Tensors of a file at most, as of a run.
const MAX_TENSORS: usize = 1 << 16;
/// Bytes that are read at a time.
const PART: usize = 1 << 20;
/// Memory is searched in steps of this many bytes: allocators align at least so.
const STEP: usize = 16;
/// Tensors that may begin with equal bytes; more are not told apart.
const MOST_ALIKE: usize = 64;

/// A tensor in a file.
struct Place {
    form: String,
    /// From the beginning of the file, in bytes.
    at: u64,
    size: u64,
}

/// A file whose header was read.
pub(crate) struct Archive {
    path: PathBuf,
    opened: File,
    tensors: HashMap<String, Place>,
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

    /// Name and bytes of each tensor.
    pub(crate) fn all(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let tensors = self.tensors.iter();
        let read = tensors.map(|(name, place)| Ok((name.clone(), self.read(place)?)));
        read.collect()
    }

    fn read(&self, place: &Place) -> io::Result<Vec<u8>> {
        // The header's rule: a tensor ends before the file does.
        let mut bytes = vec![0; usize::try_from(place.size).unwrap_or(0)];
        self.opened.read_exact_at(&mut bytes, place.at)?;
        Ok(bytes)
    }
}

/// Names the tensors of a file in all runs of a recording that have none named yet, and removes their bytes from it.
pub(crate) fn refer(folder: &Path, weights: &Path) -> Result<(), Failure> {
    let archive = Archive::open(weights)?;
    let recording = Recording::open(folder)?;
    let writer = Writer::create(folder)?;
    for number in recording.runs()? {
        let mut run = recording.run(number)?;
        if run.weights.is_some() {
            continue;
        }
        search(&archive, &recording, &writer, &mut run)?;
        let found = run
            .tensors
            .iter()
            .filter(|tensor| !tensor.places.is_empty());
        let size: u64 = found.clone().map(|tensor| tensor.size).sum();
        note!(
            "run {number}: {} of {} tensors are in {}, {}",
            found.count(),
            run.tensors.len(),
            weights.display(),
            bytes(size)
        );
        if run.tensors.iter().any(|tensor| !tensor.places.is_empty()) {
            writer.replace_run(number, &run)?;
        }
    }
    recording.sweep()?;
    Ok(())
}

/// The first block of a tensor that tells it from others, and its offset: no block of a tensor that repeats one block does.
fn anchor(tensor: &[u8]) -> Option<(usize, [u8; STEP])> {
    let blocks = tensor.as_chunks::<STEP>().0;
    let first = blocks.first()?;
    if blocks.iter().all(|block| block == first) {
        return None;
    }
    let told = |block: &&[u8; STEP]| block.iter().any(|byte| *byte != block[0]);
    let at = blocks.iter().position(|block| told(&block))?;
    Some((at * STEP, blocks[at]))
}

/// Finds all places of all tensors in the memory of a run, which has zeros there from then on.
fn search(
    archive: &Archive,
    recording: &Recording,
    writer: &Writer,
    run: &mut Run,
) -> Result<(), Failure> {
    let mut tensors = Vec::new();
    let mut anchors: HashMap<[u8; STEP], Vec<(usize, usize)>> = HashMap::new();
    let mut names: Vec<&String> = archive.tensors.keys().collect();
    names.sort_unstable();
    for name in names {
        let place = &archive.tensors[name];
        let bytes = archive.read(place).map_err(file(&archive.path))?;
        if let Some((at, block)) = anchor(&bytes) {
            let alike = anchors.entry(block).or_default();
            if alike.len() < MOST_ALIKE {
                alike.push((tensors.len(), at));
            }
        }
        tensors.push(WeightTensor {
            name: name.clone(),
            form: place.form.clone(),
            size: place.size,
            hash: Hash::of(&bytes),
            places: Vec::new(),
        });
    }
    let store = recording.store();
    for memory in &mut run.memory {
        let Some(contents) = memory.contents else {
            continue;
        };
        let mut held = store.get(contents, memory.size)?;
        // Where the last tensor that was found ends: its zeros are no part of another one.
        let mut end = 0;
        let mut at = 0;
        while at + STEP <= held.len() {
            let block: [u8; STEP] = std::array::from_fn(|index| held[at + index]);
            let alike = anchors.get(&block).into_iter().flatten();
            let mut next = at + STEP;
            for (number, offset) in alike {
                let tensor = &mut tensors[*number];
                let size = usize::try_from(tensor.size).unwrap_or(usize::MAX);
                let Some(begin) = at.checked_sub(*offset).filter(|begin| *begin >= end) else {
                    continue;
                };
                let range = begin..begin.saturating_add(size);
                let same = held.get(range.clone());
                if same.is_some_and(|bytes| Hash::of(bytes) == tensor.hash) {
                    tensor.places.push(memory.address + begin as u64);
                    held[range.clone()].fill(0);
                    end = range.end;
                    next = next.max(end / STEP * STEP);
                    break;
                }
            }
            at = next;
        }
        if end > 0 {
            memory.contents = Some(writer.store().put(&held)?);
        }
    }
    if tensors.iter().any(|tensor| !tensor.places.is_empty()) {
        let name = archive.path.file_name().unwrap_or_default();
        run.weights = Some(name.to_string_lossy().into_owned());
        run.tensors = tensors;
    }
    Ok(())
}

/// Weights that are given to a run.
pub(crate) struct Given {
    archive: Archive,
    others: usize,
    expected: HashMap<String, Hash>,
}

impl Given {
    /// The file that a run needs: the given one, or the one of the recorded name, in the recording's folder, beside it, or in the current
    /// folder. Nothing if the run needs none.
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
        // A name with a separator leads elsewhere.
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
        // By what they were: one of the tensors, and what it is.
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
            // Without --weights, only the recorded bytes will do; they are checked where they are read.
            let hash = match given {
                Some(_) => Hash::of(&archive.read(place).map_err(file(&path))?),
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

    /// How many tensors are others than recorded.
    pub(crate) fn others(&self) -> usize {
        self.others
    }

    /// What says the bytes of each tensor.
    pub(crate) fn bytes(self) -> Weights {
        Box::new(move |tensor, take| {
            let wrong = |reason: String| ReplayError::Weights {
                name: tensor.name.clone(),
                reason,
            };
            let place = self.archive.tensors.get(&tensor.name);
            let place = place.ok_or_else(|| wrong("is missing".into()))?;
            let mut part = vec![0; PART.min(usize::try_from(place.size).unwrap_or(PART))];
            let mut hasher = Hasher::default();
            for begin in (0..place.size).step_by(PART) {
                let rest = usize::try_from(place.size - begin).unwrap_or(PART);
                let part = &mut part[..rest.min(PART)];
                let read = self.archive.opened.read_exact_at(part, place.at + begin);
                read.map_err(|error| wrong(error.to_string()))?;
                hasher.update(part);
                take(begin, part)?;
            }
            if self.expected.get(&tensor.name) == Some(&hasher.end()) {
                Ok(())
            } else {
                Err(wrong(format!(
                    "is not as recorded in {}; --weights FILE takes other weights",
                    self.archive.path.display()
                )))
            }
        })
    }
}
