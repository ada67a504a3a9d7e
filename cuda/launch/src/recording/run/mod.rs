// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recorded run, `runs/K.toml`.

mod check;
mod operation;
mod rows;
mod turns;

use serde::{Deserialize, Serialize};

pub use operation::Operation;
pub use rows::{Copy2d, Rows, Side, deepened};
pub use turns::{Checked, Number, Turn, differing, put_word, structure, word_at};

use crate::recording::hash::hex;
use crate::recording::launch::{parsed, tables};
use crate::recording::{Device, Hash, RecordingError, Store};

/// A region that can run again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Format: 1.
    pub format: u32,
    /// How its beginning and end are chosen.
    pub region_of: String,
    /// Recorded process.
    pub process: u32,
    /// From a launcher.
    pub rank: Option<u32>,
    /// File of weights; absent if the recording has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// GPU.
    pub device: Device,
    /// The context's, set by the program: number, value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<[u64; 2]>,
    /// Comparison with later turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// Memory after each operation, 8 bytes each; [`UNKNOWN_SUM`] where replays differ.
    #[serde(default, with = "hex", skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<u8>,
    /// Operations name them by number.
    #[serde(default, rename = "stream")]
    pub streams: Vec<Stream>,
    /// Kernels and variables name them by number.
    #[serde(default, rename = "image")]
    pub images: Vec<RunImage>,
    /// Launches name them by number.
    #[serde(default, rename = "kernel")]
    pub kernels: Vec<Kernel>,
    /// Device memory, ascending.
    #[serde(default, rename = "memory")]
    pub memory: Vec<Memory>,
    /// Variables of images.
    #[serde(default, rename = "variable")]
    pub variables: Vec<RunVariable>,
    /// From the host.
    #[serde(default, rename = "input")]
    pub inputs: Vec<Port>,
    /// To the host.
    #[serde(default, rename = "output")]
    pub outputs: Vec<Port>,
    /// Numbers from the host on which results depend.
    #[serde(default, rename = "number", skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    /// Reproduced later turns; each continues the memory.
    #[serde(default, rename = "turn", skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Weights outside the recording.
    #[serde(default, rename = "tensor", skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<WeightTensor>,
    /// Named operations, by the ranges' ends.
    #[serde(default, rename = "range", skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
    /// In order.
    #[serde(default, rename = "operation")]
    pub operations: Vec<Operation>,
}

/// Sum where replays differ.
pub const UNKNOWN_SUM: u64 = 0;

/// A tensor of weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightTensor {
    /// Name in the file.
    pub name: String,
    /// Such as `F16[768,3072]`.
    pub form: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 when recorded.
    pub hash: Hash,
    /// Addresses, with zeros in the recording. None if not found: the recording has needed bytes.
    pub places: Vec<u64>,
}

/// Named operations (NVTX).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Name.
    pub name: String,
    /// First operation.
    pub first: u32,
    /// One past.
    pub end: u32,
}

impl Range {
    /// Other characters become `_`, long names are cut; `None` if nothing is left.
    #[must_use]
    pub fn named(mut self) -> Option<Self> {
        let fits = |letter: char| letter.is_ascii_graphic() || letter == ' ';
        let letters = self.name.chars().take(MAX_RANGE_NAME);
        self.name = letters
            .map(|letter| if fits(letter) { letter } else { '_' })
            .collect();
        (!self.name.trim().is_empty()).then_some(self)
    }
}

const MAX_RANGE_NAME: usize = 200;

/// How a stream orders itself with the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Blocking streams and it wait for each other.
    Default,
    /// Waits for the default stream.
    Blocking,
    /// Waits only for events.
    Free,
}

/// Stream of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Order with the default stream.
    pub kind: StreamKind,
}

/// Image as the program gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunImage {
    /// Also its name in `images`, if held.
    pub hash: Hash,
    /// Bytes.
    pub size: u64,
    /// Held instead: a cubin without unused kernels' code (zeros).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
}

/// Held instead of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduced {
    /// Bytes.
    pub size: u64,
    /// List of its chunks.
    pub contents: Hash,
}

impl RunImage {
    /// Reads the image for the driver.
    ///
    /// # Errors
    /// Missing, or not what its name says.
    pub fn read(&self, store: &Store) -> Result<Vec<u8>, RecordingError> {
        match &self.reduced {
            Some(reduced) => store.get(reduced.contents, reduced.size),
            None => store.image(self.hash, self.size),
        }
    }
}

/// Kernel of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// Number of its image.
    pub image: u32,
    /// Offset and size in bytes; ascending, no overlaps.
    pub layout: Vec<[usize; 2]>,
    /// The function's, set by the program: number, value.
    pub attributes: Vec<[i32; 2]>,
}

/// Device memory at the region's beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Recorded, and in replays.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Chunks; absent if allocated in the region.
    pub contents: Option<Hash>,
}

/// Variable of an image at the region's beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunVariable {
    /// Number of its image.
    pub image: u32,
    /// Mangled name.
    pub name: String,
    /// Recorded address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// List of its chunks.
    pub contents: Hash,
}

/// Input or output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Unique in the run.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Recorded chunks.
    pub contents: Hash,
    /// The user's, such as `f32[1,3,224,224]`; absent for bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    #[serde(default, rename = "stream")]
    streams: Vec<Stream>,
    #[serde(default, rename = "image")]
    images: Vec<RunImage>,
    #[serde(default, rename = "kernel")]
    kernels: Vec<Kernel>,
    #[serde(default, rename = "memory")]
    memory: Vec<Memory>,
    #[serde(default, rename = "variable")]
    variables: Vec<RunVariable>,
    #[serde(default, rename = "input")]
    inputs: Vec<Port>,
    #[serde(default, rename = "output")]
    outputs: Vec<Port>,
    #[serde(default, rename = "number")]
    numbers: Vec<Number>,
    #[serde(default, rename = "turn")]
    turns: Vec<Turn>,
    #[serde(default, rename = "tensor")]
    tensors: Vec<WeightTensor>,
    #[serde(default, rename = "range")]
    ranges: Vec<Range>,
    #[serde(default, rename = "operation")]
    operations: Vec<Operation>,
}

impl Run {
    /// Lists must come last.
    ///
    /// # Errors
    /// No manifest, or an impossible value.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut tables = tables(text);
        let mut run: Self = parsed(tables.next().unwrap_or_default())?;
        for table in tables {
            let part: Part = parsed(table)?;
            run.streams.extend(part.streams);
            run.images.extend(part.images);
            run.kernels.extend(part.kernels);
            run.memory.extend(part.memory);
            run.variables.extend(part.variables);
            run.inputs.extend(part.inputs);
            run.outputs.extend(part.outputs);
            run.numbers.extend(part.numbers);
            run.turns.extend(part.turns);
            run.tensors.extend(part.tensors);
            run.ranges.extend(part.ranges);
            run.operations.extend(part.operations);
        }
        run.check()?;
        Ok(run)
    }

    /// Memory, variables, inputs and outputs, also later turns'.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let memory = self.memory.iter().map(|memory| memory.size);
        let variables = self.variables.iter().map(|variable| variable.size);
        let ports = self.inputs.iter().chain(&self.outputs);
        let ports = ports.fold(0, |sum: u64, port| sum.saturating_add(port.size));
        let turns = self.turns.len() as u64;
        memory
            .chain(variables)
            .fold(0, u64::saturating_add)
            .saturating_add(ports.saturating_mul(turns.saturating_add(1)))
    }

    /// Needed memory: bytes and name.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Hash)> {
        let memory = self.memory.iter();
        let memory = memory.filter_map(|memory| Some((memory.size, memory.contents?)));
        let variables = self.variables.iter();
        let variables = variables.map(|variable| (variable.size, variable.contents));
        let images = self.images.iter().filter_map(|image| image.reduced);
        let images = images.map(|reduced| (reduced.size, reduced.contents));
        let ports = || self.inputs.iter().chain(&self.outputs);
        let turns = self.turns.iter().flat_map(move |turn| {
            let hashes = turn.inputs.iter().chain(&turn.outputs);
            ports().zip(hashes).map(|(port, hash)| (port.size, *hash))
        });
        let ports = ports().map(|port| (port.size, port.contents));
        memory
            .chain(variables)
            .chain(images)
            .chain(ports)
            .chain(turns)
    }

    /// Hash that turns of the same work share; see [`structure`].
    #[must_use]
    pub fn structure(&self) -> Hash {
        let images: Vec<Hash> = self.images.iter().map(|image| image.hash).collect();
        let sizes = |ports: &[Port]| ports.iter().map(|port| port.size).collect::<Vec<_>>();
        let (inputs, outputs) = (sizes(&self.inputs), sizes(&self.outputs));
        let ports: [&[u64]; 2] = [&inputs, &outputs];
        structure(&self.kernels, &images, ports, &self.operations)
    }

    /// Outermost ranges, each with unnamed operations before it; the last also with those after.
    #[must_use]
    pub fn layers(&self) -> Vec<Range> {
        let mut ranges: Vec<&Range> = self.ranges.iter().collect();
        ranges.sort_by_key(|range| (range.first, std::cmp::Reverse(range.end)));
        let mut layers: Vec<Range> = Vec::new();
        let mut end = 0;
        for range in ranges {
            if range.first >= end {
                layers.push(Range {
                    first: end,
                    ..range.clone()
                });
                end = range.end;
            }
        }
        if let Some(last) = layers.last_mut() {
            last.end = u32::try_from(self.operations.len()).unwrap_or(u32::MAX);
        }
        layers
    }

    /// Memory after each operation, if recorded.
    pub fn sums(&self) -> impl Iterator<Item = u64> {
        let words = self.sums.as_chunks().0.iter();
        words.map(|word| u64::from_le_bytes(*word))
    }

    /// Number and bytes of weights' tensors found in memory.
    #[must_use]
    pub fn found_tensors(&self) -> (usize, u64) {
        let tensors = self.tensors.iter();
        let found = tensors.filter(|tensor| !tensor.places.is_empty());
        let size = found.clone().map(|tensor| tensor.size);
        (found.count(), size.fold(0, u64::saturating_add))
    }

    /// Number of launched kernels.
    #[must_use]
    pub fn launches(&self) -> usize {
        let launches = self.operations.iter();
        launches
            .filter(|operation| matches!(operation, Operation::Launch { .. }))
            .count()
    }
}

impl Run {
    /// Word at an operation and an offset of [`Operation::host_bytes`].
    #[must_use]
    pub fn word(&self, [operation, offset]: [u32; 2]) -> Option<u32> {
        let operation = self.operations.get(operation as usize)?;
        let offset = offset as usize;
        (offset < operation.host_size()).then(|| word_at(&operation.host_bytes(), offset))
    }

    /// Value of a number in a later turn, or in the run.
    #[must_use]
    pub fn number(&self, number: &Number, turn: Option<&Turn>) -> u32 {
        let place = number.places.first().copied().unwrap_or_default();
        let mut words = turn.into_iter().flat_map(|turn| &turn.words);
        let other = words.find(|[operation, offset, _]| [*operation, *offset] == place);
        other.map_or_else(|| self.word(place).unwrap_or(0), |[_, _, value]| *value)
    }

    /// Sets a number in all its places.
    pub fn set_number(&mut self, number: usize, value: u32) {
        let Some(number) = self.numbers.get(number) else {
            return;
        };
        for [operation, offset] in &number.places {
            if let Some(operation) = self.operations.get_mut(*operation as usize) {
                let mut bytes = operation.host_bytes();
                put_word(&mut bytes, *offset as usize, value);
                operation.set_host_bytes(&bytes);
            }
        }
    }
}
