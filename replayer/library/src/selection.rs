// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which layers of a recording run.

use std::ops::Range;

use serde::Serialize;

use crate::bindings::Bindings;
use crate::error::{Error, Result};
use crate::tensors::{Layer, crossings, layer_named, layers_named};

/// Layers by names or numbers: `3..7`, `conv2..pool2`, `conv3`, `pool1..`; both ends included, as `gpureplay info`
/// counts.
///
/// # Errors
/// No such layer, or the last comes before the first.
pub fn range(layers: &[Layer], text: &str) -> Result<Range<usize>> {
    let wrong = |reason| Error::Layers {
        text: text.to_owned(),
        reason,
        known: layers_named(layers),
    };
    if text.is_empty() {
        return Err(wrong("a layer or a range of layers is expected"));
    }
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (first, last.trim_start_matches('=')),
        None => (text, text),
    };
    let first = match first {
        "" => 0,
        name => layer_named(layers, name)?,
    };
    let last = match last {
        "" => layers.len().saturating_sub(1),
        name => layer_named(layers, name)?,
    };
    if last < first {
        return Err(wrong("the last layer comes before the first"));
    }
    Ok(first..last + 1)
}

/// The layers that run for a range that was asked for. Layers before it run too, unless all that they would compute is given.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Number of the first layer that was asked for, from 1.
    first: usize,
    /// Number of the last.
    last: usize,
    /// Names of all layers of the recording.
    names: Vec<String>,
    /// Number of the first layer that runs: those before it are skipped, those from it on compute what `first` needs.
    from: usize,
    /// Layers that run read what skipped layers would have computed, and that nobody gave.
    #[serde(skip)]
    recorded_values: bool,
}

impl Selection {
    /// Layers that `range` needs with the bound values. With `recorded_values` nothing before it runs: unbound values
    /// are the recording's own memory.
    ///
    /// # Errors
    /// Only a part of what the range reads is bound: [`Error::Crossing`].
    pub fn new(
        layers: &[Layer],
        range: Range<usize>,
        bindings: &Bindings,
        recorded_values: bool,
    ) -> Result<Self> {
        let given = |tensor: &u32| bindings.is_bound(*tensor as usize);
        let end = range.end.min(layers.len());
        let counts = crossings(layers, end, |tensor| given(&tensor));
        let taken = |start: usize| counts.get(start).copied().unwrap_or_default();
        // All that later layers need of those before `start` is given.
        let complete = |start: &usize| matches!(taken(*start), (all @ 1.., bound) if all == bound);
        let start = match (1..=range.start).rev().find(complete) {
            _ if recorded_values => range.start,
            Some(start) => start,
            None => {
                if taken(range.start).1 > 0 {
                    bindings.require_crossing(layers, range.clone(), 0)?;
                }
                0
            }
        };
        Ok(Self {
            first: range.start + 1,
            last: range.end,
            names: layers.iter().map(|layer| layer.name.clone()).collect(),
            from: start + 1,
            recorded_values: taken(start).0 != taken(start).1,
        })
    }

    /// The layers that run, for [`crate::Session::run_layers`].
    pub fn running(&self) -> Range<usize> {
        self.from - 1..self.last
    }

    /// Index of the last layer.
    pub fn last(&self) -> usize {
        self.last.saturating_sub(1)
    }

    /// Recorded values replace skipped layers' results.
    pub fn takes_recorded_values(&self) -> bool {
        self.recorded_values
    }

    /// `layers 3 to 7 of 8 (pool1 to fc, those before it skipped)`.
    pub fn text(&self) -> String {
        let name = |number: usize| self.names.get(number - 1).map_or("", String::as_str);
        let before = match self.from {
            from if from == self.first && from > 1 => ", those before skipped".to_owned(),
            from if from == self.first => String::new(),
            1 => ", those before ran first".to_owned(),
            from => format!(", those from {} on ran first", name(from)),
        };
        format!(
            "layers {} to {} of {} ({} to {}{before})",
            self.first,
            self.last,
            self.names.len(),
            name(self.first),
            name(self.last)
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) segment: u32,
    /// Only its CPU part runs.
    pub(crate) skip: bool,
}

pub(crate) fn steps(layers: &[Layer], first: usize, runs: &Range<usize>) -> Vec<Step> {
    let numbered = layers.iter().enumerate().take(runs.end).skip(first);
    numbered
        .map(|(number, layer)| Step {
            segment: layer.segment,
            skip: !runs.contains(&number),
        })
        .collect()
}
