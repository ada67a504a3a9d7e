// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds `.safetensors` tensors in a run's memory by bytes.

use std::collections::HashMap;
use std::path::Path;

use gpureplay_cuda_launch::recording::{Recording, Run, Store, WeightTensor, Writer};

use crate::command::failure::{Failure, file};
use crate::command::report::{bytes, note};
use crate::weights::Archive;

/// In bytes: allocators align so.
const STEP: usize = 16;
/// More tensors of equal beginning are not told apart.
const MOST_ALIKE: usize = 64;

/// Names tensors in runs without named ones, and removes their bytes. True if all runs have some.
pub(crate) fn refer(folder: &Path, weights: &Path) -> Result<bool, Failure> {
    let archive = Archive::open(weights)?;
    let recording = Recording::open(folder)?;
    let writer = Writer::create(folder)?;
    let mut all = true;
    for number in recording.runs()? {
        let mut run = recording.run(number)?;
        if run.weights.is_some() {
            continue;
        }
        search(&archive, &recording, &writer, &mut run)?;
        let (found, size) = run.found_tensors();
        note!(
            "run {number}: {found} of {} tensors are in {}, {}",
            run.tensors.len(),
            weights.display(),
            bytes(size)
        );
        if found > 0 {
            writer.replace_run(number, &run)?;
        } else {
            all = false;
        }
    }
    recording.sweep()?;
    Ok(all)
}

/// None if all blocks are equal.
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
            hash: Store::name(&bytes),
            places: Vec::new(),
        });
    }
    let store = recording.store();
    for memory in &mut run.memory {
        let Some(contents) = memory.contents else {
            continue;
        };
        let mut held = store.get(contents, memory.size)?;
        // The last tensor's zeros are no part of another one.
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
                if same.is_some_and(|bytes| Store::name(bytes) == tensor.hash) {
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
