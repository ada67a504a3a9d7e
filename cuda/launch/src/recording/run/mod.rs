// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recorded run, as `runs/K.toml` says it: all that a program asked of the GPU in a region of its time, in order.

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

/// A region of a program's time, with everything that it needs to run again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of the format: 1.
    pub format: u32,
    /// What began and ended the region.
    pub region_of: String,
    /// The process that was recorded.
    pub process: u32,
    /// Its rank, where a launcher gave one.
    pub rank: Option<u32>,
    /// The name of the file that weights lie in; absent if the recording has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// On which GPU.
    pub device: Device,
    /// Limits of the context that the program set: number, value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<[u64; 2]>,
    /// What a comparison with later turns showed; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// What all memory came to after each operation of a replay that was right, 8 bytes each; [`UNKNOWN_SUM`] where replays differ.
    #[serde(default, with = "hex", skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<u8>,
    /// Streams, by the numbers that operations use.
    #[serde(default, rename = "stream")]
    pub streams: Vec<Stream>,
    /// Images, by the numbers that kernels and variables use.
    #[serde(default, rename = "image")]
    pub images: Vec<RunImage>,
    /// Kernels, by the numbers that launches use.
    #[serde(default, rename = "kernel")]
    pub kernels: Vec<Kernel>,
    /// Device memory, ascending.
    #[serde(default, rename = "memory")]
    pub memory: Vec<Memory>,
    /// Variables of images.
    #[serde(default, rename = "variable")]
    pub variables: Vec<RunVariable>,
    /// What the host copies in.
    #[serde(default, rename = "input")]
    pub inputs: Vec<Port>,
    /// What the host copies out.
    #[serde(default, rename = "output")]
    pub outputs: Vec<Port>,
    /// Numbers that the host computed, and that results depend on.
    #[serde(default, rename = "number", skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    /// Later turns that the run reproduces, one after the other, from where the one before left memory.
    #[serde(default, rename = "turn", skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Tensors of a file of weights, whose bytes are not in the recording.
    #[serde(default, rename = "tensor", skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<WeightTensor>,
    /// Ranges that the program named, in the order of their ends.
    #[serde(default, rename = "range", skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
    /// What was asked of the GPU, in the order of the program.
    #[serde(default, rename = "operation")]
    pub operations: Vec<Operation>,
}

/// What is said of memory that is not the same in all replays.
pub const UNKNOWN_SUM: u64 = 0;

/// A tensor of a file of weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightTensor {
    /// Its name in the file.
    pub name: String,
    /// Its element type and shape, such as `F16[768,3072]`.
    pub form: String,
    /// Bytes.
    pub size: u64,
    /// The SHA-256 of its bytes when the run was recorded.
    pub hash: Hash,
    /// Where memory has it; the recording has zeros there. None if it was not found: then the recording has its bytes, if it needs them.
    pub places: Vec<u64>,
}

/// A range of operations that the program named (NVTX).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Its name.
    pub name: String,
    /// The number of its first operation.
    pub first: u32,
    /// The number of the operation after its last one.
    pub end: u32,
}

impl Range {
    /// The range, if its name is one that manifests have; other characters become `_`, and long names are cut.
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

/// Letters of a range's name.
const MAX_RANGE_NAME: usize = 200;

/// How a stream stands to the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// It is the default stream: it waits for blocking streams, and they for it.
    Default,
    /// It waits for the default stream.
    Blocking,
    /// It waits for nothing but events.
    Free,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// How it stands to the default stream.
    pub kind: StreamKind,
}

/// An image as the program gave it to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunImage {
    /// Its SHA-256: the name of the file in `images`, if it is held.
    pub hash: Hash,
    /// Bytes.
    pub size: u64,
    /// What is held instead: a cubin of it, in which the code of kernels that the run does not launch is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
}

/// What is held of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduced {
    /// Bytes.
    pub size: u64,
    /// The list of its chunks.
    pub contents: Hash,
}

impl RunImage {
    /// What the driver is given.
    ///
    /// # Errors
    /// If it is not there, or is not what its name says.
    pub fn read(&self, store: &Store) -> Result<Vec<u8>, RecordingError> {
        match &self.reduced {
            Some(reduced) => store.get(reduced.contents, reduced.size),
            None => store.image(self.hash, self.size),
        }
    }
}

/// A kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its mangled name.
    pub name: String,
    /// The number of its image.
    pub image: u32,
    /// Offset and size of each parameter, in bytes; ascending, and none lies over another.
    pub layout: Vec<[usize; 2]>,
    /// Attributes of the function that the program set: number, value.
    pub attributes: Vec<[i32; 2]>,
}

/// Device memory at the beginning of the region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its address in the recorded process, and in a replay.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The list of its chunks; absent if the memory was allocated inside of the region.
    pub contents: Option<Hash>,
}

/// A variable of an image at the beginning of the region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunVariable {
    /// The number of its image.
    pub image: u32,
    /// Its mangled name.
    pub name: String,
    /// Its address in the recorded process.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The list of its chunks.
    pub contents: Hash,
}

/// An input or an output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// What it is called; no other input or output of the run is.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// The list of its chunks, as recorded.
    pub contents: Hash,
    /// Element type and shape that the user stated, such as `f32[1,3,224,224]`; absent for bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
}

/// What follows a line that begins with `[[`.
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
    /// A run from the text of its manifest, checked. Its lists come last in it.
    ///
    /// # Errors
    /// If the text is no manifest, or says something that cannot be.
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

    /// Bytes of memory, variables, inputs and outputs together, those of later turns included.
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

    /// Bytes and name of each piece of memory that the run needs.
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

    /// What another turn of the same work has in common with it: [`structure`].
    #[must_use]
    pub fn structure(&self) -> Hash {
        let images: Vec<Hash> = self.images.iter().map(|image| image.hash).collect();
        let sizes = |ports: &[Port]| ports.iter().map(|port| port.size).collect::<Vec<_>>();
        let (inputs, outputs) = (sizes(&self.inputs), sizes(&self.outputs));
        let ports: [&[u64]; 2] = [&inputs, &outputs];
        structure(&self.kernels, &images, ports, &self.operations)
    }

    /// The run in parts, one after the other: ranges that lie in no other, each with the operations before it that lie in none.
    /// The last one has those behind it, too.
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

    /// What memory came to after each operation, if the recording says it.
    pub fn sums(&self) -> impl Iterator<Item = u64> {
        let words = self.sums.as_chunks().0.iter();
        words.map(|word| u64::from_le_bytes(*word))
    }

    /// How many kernels are launched.
    #[must_use]
    pub fn launches(&self) -> usize {
        let launches = self.operations.iter();
        launches
            .filter(|operation| matches!(operation, Operation::Launch { .. }))
            .count()
    }
}

impl Run {
    /// The word of the run at an operation and an offset of its [`Operation::host_bytes`], if it has one.
    #[must_use]
    pub fn word(&self, [operation, offset]: [u32; 2]) -> Option<u32> {
        let operation = self.operations.get(operation as usize)?;
        let offset = offset as usize;
        (offset < operation.host_size()).then(|| word_at(&operation.host_bytes(), offset))
    }

    /// What a number was in a later turn, or in the run itself.
    #[must_use]
    pub fn number(&self, number: &Number, turn: Option<&Turn>) -> u32 {
        let place = number.places.first().copied().unwrap_or_default();
        let mut words = turn.into_iter().flat_map(|turn| &turn.words);
        let other = words.find(|[operation, offset, _]| [*operation, *offset] == place);
        other.map_or_else(|| self.word(place).unwrap_or(0), |[_, _, value]| *value)
    }

    /// Puts a value in all places of a number.
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
