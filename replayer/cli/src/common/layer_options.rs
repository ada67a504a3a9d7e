// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which layers of a recording run: `--layers`, `--until`, `--output-layer`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use gpureplay_library::{Bindings, Layer, TensorKind, crossing, layer_named, layers_named, list};
use serde::Serialize;

use crate::Result;
use crate::common::failure::Failure;
use crate::common::tensor_arguments::Given;

/// Options about layers.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Run these layers only, by number or name as `gpureplay info` lists them: 3..7, conv2..pool2, conv3
    ///
    /// Both ends are included. The layers before them run first. Those are skipped of which all that later layers read is given with
    /// --input: more than one tensor, where a network has branches.
    #[arg(long, value_name = "FIRST..LAST")]
    layers: Option<String>,
    /// Run the layers up to this one
    #[arg(long, value_name = "LAYER", conflicts_with = "layers")]
    until: Option<String>,
    /// Skip the layers before those of --layers even if what they compute is not given: where it is not, what the recording itself has
    /// in that memory is read
    #[arg(long, requires = "layers")]
    recorded_values: bool,
    /// Write what the last layer that runs computes; without a file to NAME.npy in the current directory
    #[arg(long, value_name = "[NAME=]FILE.npy", num_args = 0..=1)]
    output_layer: Option<Option<Given>>,
}

/// The part of a recording that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    /// Number of the first layer that was asked for, from 1.
    first: usize,
    /// Number of the last.
    last: usize,
    /// Names of all layers of the recording.
    names: Vec<String>,
    /// Number of the first layer that runs: those before it are skipped, those from it on compute what `first` needs.
    from: usize,
    #[serde(skip)]
    whole: bool,
    /// Layers that run read what skipped layers would have computed, and that nobody gave.
    #[serde(skip)]
    recorded_values: bool,
}

impl Layers {
    /// Whether the user asked for anything but the whole network.
    pub(crate) fn chosen(&self) -> bool {
        self.layers.is_some() || self.until.is_some()
    }

    /// Finds the layers that the user asked for.
    pub(crate) fn part(&self, layers: &[Layer], bindings: &Bindings) -> Result<Part> {
        let range = self.range(layers)?;
        let given = |tensor: &u32| bindings.is_bound(*tensor as usize);
        let taken = |start: usize| crossing(layers, start..range.end, 0);
        // The last place before which everything that is needed from there on is given.
        let complete = |start: &usize| !taken(*start).is_empty() && taken(*start).iter().all(given);
        let start = match (1..=range.start).rev().find(complete) {
            _ if self.recorded_values => range.start,
            Some(start) => start,
            None => {
                if taken(range.start).iter().any(given) {
                    bindings.require_crossing(layers, range.clone(), 0, "--recorded-values")?;
                }
                0
            }
        };
        Ok(Part {
            first: range.start + 1,
            last: range.end,
            names: layers.iter().map(|layer| layer.name.clone()).collect(),
            from: start + 1,
            whole: !self.chosen(),
            recorded_values: !taken(start).iter().all(given),
        })
    }

    fn range(&self, layers: &[Layer]) -> Result<Range<usize>> {
        let number = |name: &str| layer_named(layers, name);
        if let Some(until) = &self.until {
            return Ok(0..number(until)? + 1);
        }
        let Some(text) = &self.layers else {
            return Ok(0..layers.len());
        };
        if text.is_empty() {
            return Err(Failure::Usage(format!(
                "--layers: which? {}",
                layers_named(layers)
            )));
        }
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (first, last.trim_start_matches('=')),
            None => (text.as_str(), text.as_str()),
        };
        let first = if first.is_empty() { 0 } else { number(first)? };
        let last = if last.is_empty() {
            layers.len().saturating_sub(1)
        } else {
            number(last)?
        };
        if last < first {
            return Err(Failure::Usage(format!(
                "--layers {text}: the last layer comes before the first; {}",
                layers_named(layers)
            )));
        }
        Ok(first..last + 1)
    }

    /// The file for what the last layer computes, and the tensor's name.
    pub(crate) fn output(
        &self,
        part: &Part,
        layers: &[Layer],
        bindings: &Bindings,
    ) -> Result<Option<(String, PathBuf)>> {
        let Some(given) = &self.output_layer else {
            return Ok(None);
        };
        let last = layers.get(part.last.saturating_sub(1));
        let tensors = last.map_or(&[][..], |layer| &layer.outputs);
        let tensors: Vec<_> = tensors
            .iter()
            .filter_map(|tensor| bindings.tensors().get(*tensor as usize).cloned())
            .collect();
        // All that a layer computes is one kind to the user.
        let kind = tensors.first().map_or(TensorKind::Output, |t| t.kind);
        let Some(given) = given else {
            return match tensors.as_slice() {
                // Only the last part of a name: a recording chooses no directories.
                [only] => {
                    let file = only.name.rsplit('/').next().unwrap_or_default();
                    Ok(Some((only.name.clone(), format!("{file}.npy").into())))
                }
                _ => Err(Failure::Usage(format!(
                    "--output-layer: say which tensor, as NAME=FILE; {}",
                    list(&tensors, kind)
                ))),
            };
        };
        let name = given.resolve(&tensors, kind, "--output-layer")?;
        Ok(Some((name, given.path.clone())))
    }
}

/// A run segment, and whether its jobs are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index of the segment.
    pub(crate) segment: u32,
    /// Only what the CPU does in it is done.
    pub(crate) skip: bool,
}

impl Part {
    /// Whether layers read values of the recording itself where skipped layers would have computed them.
    pub(crate) fn takes_recorded_values(&self) -> bool {
        self.recorded_values
    }

    /// The layers that run.
    pub(crate) fn running(&self) -> Range<usize> {
        self.from - 1..self.last
    }

    /// What a replay does with the run segments up to the last layer, in order.
    pub(crate) fn steps(&self, layers: &[Layer]) -> Vec<Step> {
        let running = self.running();
        let numbered = layers.iter().enumerate().take(self.last);
        numbered
            .map(|(number, layer)| Step {
                segment: layer.segment,
                skip: !running.contains(&number),
            })
            .collect()
    }

    /// `layers 3 to 7 of 8 (pool1 to fc, those before it skipped)`; `None` for the whole network.
    pub(crate) fn text(&self) -> Option<String> {
        if self.whole {
            return None;
        }
        let name = |number: usize| self.names.get(number - 1).map_or("", String::as_str);
        let before = match self.from {
            from if from == self.first && from > 1 => ", those before skipped".to_owned(),
            from if from == self.first => String::new(),
            1 => ", those before ran first".to_owned(),
            from => format!(", those from {} on ran first", name(from)),
        };
        Some(format!(
            "layers {} to {} of {} ({} to {}{before})",
            self.first,
            self.last,
            self.names.len(),
            name(self.first),
            name(self.last)
        ))
    }
}
