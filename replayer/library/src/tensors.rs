// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors and layers as callers see them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use gpureplay_format::layout::{Segment, TENSOR_EXTERNAL};
use gpureplay_format::{Action, Opcode, Recording, SegmentKind, TensorKind};
use gpureplay_tensors::{Element as _, ElementType};

use mali_jobs::streams::dispatches;

use crate::error::{Error, Result};
use crate::text;

/// A named array of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Unique in the recording.
    pub name: String,
    /// Role.
    pub kind: TensorKind,
    /// Element type.
    pub dtype: ElementType,
    /// Extents, slowest dimension first.
    pub shape: Vec<u64>,
    /// Without a value in the recording: bound, or in a file of the manifest.
    pub external: bool,
    /// Size.
    pub bytes: usize,
}

impl TensorInfo {
    /// All tensors, in the recording's order.
    pub fn all(recording: &Recording<'_>) -> Vec<Self> {
        let tensors = recording.tensors().iter();
        tensors
            .map(|entry| Self {
                name: recording.name(entry.name.get()).to_owned(),
                kind: text::kind_of(entry),
                dtype: text::element_of(entry),
                shape: text::shape_of(recording, entry),
                external: entry.flags & TENSOR_EXTERNAL != 0,
                bytes: recording.tensor_bytes(entry).unwrap_or(0) as usize,
            })
            .collect()
    }

    /// An OpenCL or CUDA buffer has no shape: a tensor of one dimension takes as many elements in any shape, in row
    /// order.
    pub fn takes(&self, dtype: ElementType, shape: &[u64]) -> bool {
        let elements = shape.iter().try_fold(1u64, |all, &e| all.checked_mul(e));
        let is_flat = matches!(self.shape[..], [length] if elements == Some(length));
        dtype == self.dtype && (is_flat || shape == self.shape)
    }
}

impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::typed_shape(self.dtype, &self.shape))
    }
}

/// `its inputs are a f32[64,64], b f32[64]`.
pub fn list(tensors: &[TensorInfo], kind: TensorKind) -> String {
    let described: Vec<String> = tensors
        .iter()
        .filter(|tensor| tensor.kind == kind)
        .map(|tensor| format!("{} {tensor}", tensor.name))
        .collect();
    match described.len() {
        0 => format!("it has no {}", kind.name()),
        1 => format!("its only {} is {}", kind.name(), described[0]),
        _ => format!("its {}s are {}", kind.name(), described.join(", ")),
    }
}

/// A run segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name.
    pub name: String,
    /// Index in the recording.
    pub segment: u32,
    /// Submitted chains.
    pub chains: u32,
    /// Jobs in these chains.
    pub jobs: u32,
    /// Indices of tensors from other parts or the caller.
    pub inputs: Vec<u32>,
    /// Indices of tensors readable after it.
    pub outputs: Vec<u32>,
}

impl Layer {
    /// All layers, in order.
    pub fn all(recording: &Recording<'_>) -> Vec<Self> {
        let segments = (0u32..).zip(recording.segments());
        segments
            .filter(|(_, segment)| segment.kind == SegmentKind::Run.code())
            .map(|(index, segment)| {
                let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
                let mut jobs = recording.count(segment, Opcode::Rearm);
                for action in recording.segment_actions(segment).flatten() {
                    match action {
                        Action::BindInput { tensor } => inputs.push(tensor),
                        Action::BindOutput { tensor } => outputs.push(tensor),
                        Action::Launch { words, .. } => {
                            let _ = dispatches(words, |_, _| jobs += 1);
                        }
                        _ => {}
                    }
                }
                Self {
                    name: recording.name(segment.name.get()).to_owned(),
                    segment: index,
                    chains: chains_of(recording, segment),
                    jobs,
                    inputs,
                    outputs,
                }
            })
            .collect()
    }
}

/// Indices of tensors that `runs` read and skipped earlier layers compute, ascending.
///
/// Layers before `ran` have run: their results are in memory.
pub fn crossing(layers: &[Layer], runs: Range<usize>, ran: usize) -> Vec<u32> {
    let skipped = layers.get(ran..runs.start).unwrap_or_default();
    let running = layers.get(runs).unwrap_or_default();
    let computed: HashSet<u32> = skipped
        .iter()
        .flat_map(|layer| &layer.outputs)
        .copied()
        .collect();
    let read: BTreeSet<u32> = running
        .iter()
        .flat_map(|layer| &layer.inputs)
        .copied()
        .filter(|tensor| computed.contains(tensor))
        .collect();
    read.into_iter().collect()
}

/// For each start from 0 to `end` - 1: how many [`crossing`] tensors there are, and how many of them `given` has.
pub(crate) fn crossings(
    layers: &[Layer],
    end: usize,
    given: impl Fn(u32) -> bool,
) -> Vec<(usize, usize)> {
    // First writer, last reader.
    let mut spans: HashMap<u32, (Option<usize>, usize)> = HashMap::new();
    for (number, layer) in layers.iter().take(end).enumerate() {
        for tensor in &layer.outputs {
            spans.entry(*tensor).or_default().0.get_or_insert(number);
        }
        for tensor in &layer.inputs {
            spans.entry(*tensor).or_default().1 = number;
        }
    }
    let mut changes = vec![(0isize, 0isize); end + 1];
    for (tensor, (computed, read)) in spans {
        let Some(computed) = computed.filter(|computed| *computed < read) else {
            continue;
        };
        let given = isize::from(given(tensor));
        for (place, change) in [(computed + 1, 1), (read + 1, -1)] {
            if let Some((all, bound)) = changes.get_mut(place) {
                *all += change;
                *bound += change * given;
            }
        }
    }
    let mut sums = (0, 0);
    let sum = |(all, bound): (isize, isize)| {
        sums = (sums.0 + all, sums.1 + bound);
        (sums.0.unsigned_abs(), sums.1.unsigned_abs())
    };
    changes.into_iter().take(end).map(sum).collect()
}

/// `its layers are 1 conv1, 2 pool1`.
pub fn layers_named(layers: &[Layer]) -> String {
    let described: Vec<String> = (1..)
        .zip(layers)
        .map(|(number, layer)| format!("{number} {}", layer.name))
        .collect();
    format!("its layers are {}", described.join(", "))
}

/// Finds a layer by name, or by number from 1.
///
/// # Errors
/// There is none.
pub fn layer_named(layers: &[Layer], name: &str) -> Result<usize> {
    let by_name = layers.iter().position(|layer| layer.name == name);
    let by_number = || name.parse::<usize>().ok()?.checked_sub(1);
    by_name
        .or_else(by_number)
        .filter(|index| *index < layers.len())
        .ok_or_else(|| Error::NoLayer {
            name: name.to_owned(),
            known: layers_named(layers),
        })
}

fn hint(info: &TensorInfo, dtype: ElementType, shape: &[u64]) -> String {
    let mut calls = String::new();
    let elements = |shape: &[u64]| shape.iter().try_fold(1u64, |all, &e| all.checked_mul(e));
    let same_shape = shape == info.shape;
    if !same_shape && elements(shape) != elements(&info.shape) {
        return calls;
    }
    if dtype != info.dtype {
        calls += &format!(".astype(\"{}\")", info.dtype.numpy_name());
    }
    if !same_shape {
        let extents: Vec<String> = info.shape.iter().map(u64::to_string).collect();
        calls += &format!(".reshape({})", extents.join(", "));
    }
    format!("; in NumPy: x{calls}")
}

pub(crate) fn misfit(info: &TensorInfo, dtype: ElementType, shape: &[u64], from: &str) -> Error {
    Error::Shape {
        from: from.to_owned(),
        tensor: format!("{} `{}`", info.kind.name(), info.name),
        expected: info.to_string(),
        found: crate::text::typed_shape(dtype, shape),
        hint: hint(info, dtype, shape).into(),
    }
}

pub(crate) fn chains_of(recording: &Recording<'_>, segment: &Segment) -> u32 {
    let count = |opcode| recording.count(segment, opcode);
    count(Opcode::Submit) + count(Opcode::Launch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, inputs: &[u32], outputs: &[u32]) -> Layer {
        Layer {
            name: name.into(),
            segment: 0,
            chains: 1,
            jobs: 1,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
        }
    }

    #[test]
    fn branches_cross_a_boundary_with_all_that_is_read_behind_it() {
        // 0 input, 1 stem, 2 left, 3 right, 4 sum of left and right
        let layers = [
            layer("stem", &[0], &[1]),
            layer("left", &[1], &[2]),
            layer("right", &[1], &[3]),
            layer("sum", &[2, 3], &[4]),
        ];
        assert_eq!(crossing(&layers, 3..4, 0), [2, 3]);
        assert_eq!(crossing(&layers, 2..4, 0), [1, 2]);
        assert_eq!(crossing(&layers, 2..4, 1), [2]);
        assert!(crossing(&layers, 0..4, 0).is_empty());
        assert_eq!(crossing(&layers, 2..3, 0), [1]);
        for end in 0..=layers.len() {
            let each = |start| {
                let tensors = crossing(&layers, start..end, 0);
                (
                    tensors.len(),
                    tensors.iter().filter(|tensor| **tensor == 2).count(),
                )
            };
            let expected: Vec<_> = (0..end).map(each).collect();
            assert_eq!(crossings(&layers, end, |tensor| tensor == 2), expected);
        }
        assert!(crossing(&layers, 2..9, 7).is_empty());
    }
}
