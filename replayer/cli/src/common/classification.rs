// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifications: the largest elements, with names.

use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_tensors::Tensor;

use crate::Result;
use crate::common::arguments::whole_number;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use gpureplay_library::{Files, Number, read_named, shown};

const MAX_BYTES: u64 = 16 << 20;
const DEFAULT_TOP: usize = 5;

/// How outputs are shown that are classifications.
#[derive(Args)]
pub(crate) struct Choice {
    /// Text file with the names of an output's elements, one per line [default: the manifest's]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Print the N largest elements of each output; numbered where there are no names
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>)]
    top: Option<usize>,
}

pub(crate) struct Classes {
    file: Option<(PathBuf, Vec<String>)>,
    top: Option<usize>,
}

impl Choice {
    pub(crate) fn reads(&self, destinations: &mut Destinations) {
        if let Some(labels) = &self.labels {
            destinations.reads(labels);
        }
    }

    pub(crate) fn read(&self) -> Result<Classes> {
        let read = |path: &PathBuf| Ok::<_, Failure>((path.clone(), read_labels(path)?));
        Ok(Classes {
            file: self.labels.as_ref().map(read).transpose()?,
            top: self.top,
        })
    }
}

impl Classes {
    pub(crate) fn fit(&self, name: &str, elements: u64) -> Result<()> {
        match &self.file {
            Some((path, labels)) if labels.len() as u64 != elements => {
                Err(Failure::Input(format!(
                    "{}: {} labels, but {name} has {elements} elements",
                    shown(path),
                    labels.len(),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Largest first; none if it is no classification.
    pub(crate) fn of(
        &self,
        files: &Files,
        name: &str,
        tensor: &Tensor,
    ) -> Result<Vec<(String, Number)>> {
        let manifest = files
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.outputs.get(name));
        self.fit(name, tensor.len() as u64)?;
        let labels = match &self.file {
            Some((_, labels)) => &labels[..],
            None => manifest.map_or(&[][..], |output| &output.labels),
        };
        if labels.is_empty() && self.top.is_none() {
            return Ok(Vec::new());
        }
        let numbers = tensor
            .values()
            .enumerate()
            .filter(|(_, value)| !value.is_nan());
        let mut elements: Vec<(usize, f64)> = numbers.collect();
        elements.sort_by(|left, right| right.1.total_cmp(&left.1));
        elements.truncate(self.top.unwrap_or(DEFAULT_TOP));
        let label = |element: usize| {
            let label = labels.get(element).cloned();
            label.unwrap_or_else(|| format!("element {element}"))
        };
        Ok(elements
            .into_iter()
            .map(|(element, value)| (label(element), Number(value)))
            .collect())
    }

    /// Of the file, or of the manifest's first output with labels.
    pub(crate) fn labels<'a>(&'a self, files: &'a Files) -> &'a [String] {
        if let Some((_, labels)) = &self.file {
            return labels;
        }
        let outputs = files
            .manifest
            .iter()
            .flat_map(|manifest| manifest.outputs.values());
        let mut named = outputs.filter(|output| !output.labels.is_empty());
        named.next().map_or(&[][..], |output| &output.labels)
    }

    pub(crate) fn listed(&self) -> bool {
        self.top.is_some()
    }
}

fn read_labels(path: &Path) -> Result<Vec<String>> {
    let wrong =
        |reason: &dyn std::fmt::Display| Failure::Input(format!("{}: {reason}", shown(path)));
    let text = String::from_utf8(read_named(path, MAX_BYTES)?).map_err(|_| {
        wrong(&"expected a text file with a name per line; the right class of each of many inputs is --truth")
    })?;
    let labels: Vec<String> = text
        .trim_end()
        .lines()
        .map(|line| line.trim().to_owned())
        .collect();
    if labels.is_empty() {
        return Err(wrong(&"no labels"));
    }
    Ok(labels)
}
