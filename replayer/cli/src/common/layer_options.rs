// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--layers`, `--until`, `--output-layer`.

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use gpureplay_library::{Bindings, Layer, Selection, TensorKind, layer_named, list, selection};

use crate::Result;
use crate::common::failure::Failure;
use crate::common::tensor_arguments::TensorFile;

/// Options about layers.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LayerOptions {
    /// Run these layers only, by number or name as `gpureplay info` lists them: 3..7, conv2..pool2, conv3
    ///
    /// Both ends are included. The layers before them run first. A layer is skipped if you supply everything that later layers read from
    /// it with --input: more than one tensor, where a network has branches.
    #[arg(long, value_name = "FIRST..LAST")]
    layers: Option<String>,
    /// Run the layers up to this one
    #[arg(long, value_name = "LAYER", conflicts_with = "layers")]
    until: Option<String>,
    /// Skip the layers before those of --layers even if what they compute is not given: what the recording itself has in that memory
    /// is read instead, so the outputs belong to no input
    #[arg(long, requires = "layers")]
    pub(crate) recorded_values: bool,
    /// Write what the last layer that runs computes; without a file to NAME.npy in the current directory
    #[arg(long, value_name = "[NAME=]FILE", num_args = 0..=1, value_parser = TensorFile::written)]
    output_layer: Option<Option<TensorFile>>,
}

impl LayerOptions {
    pub(crate) fn chosen(&self) -> bool {
        self.layers.is_some() || self.until.is_some()
    }

    pub(crate) fn range(&self, layers: &[Layer]) -> Result<Range<usize>> {
        match (&self.until, &self.layers) {
            (Some(until), _) => Ok(0..layer_named(layers, until)? + 1),
            (None, Some(text)) => Ok(selection::range(layers, text)?),
            (None, None) => Ok(0..layers.len()),
        }
    }

    pub(crate) fn output(
        &self,
        selection: &Selection,
        layers: &[Layer],
        bindings: &Bindings,
    ) -> Result<Option<(String, PathBuf)>> {
        let Some(given) = &self.output_layer else {
            return Ok(None);
        };
        let last = layers.get(selection.last());
        let tensors = last.map_or(&[][..], |layer| &layer.outputs);
        let tensors: Vec<_> = tensors
            .iter()
            .filter_map(|tensor| bindings.tensors().get(*tensor as usize).cloned())
            .collect();
        let kind = tensors.first().map_or(TensorKind::Output, |t| t.kind);
        let Some(given) = given else {
            return match tensors.as_slice() {
                // A recording chooses no directories.
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
