// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run's report as text and JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use gpureplay_library::{Bindings, Element, Number, Selection, Tensor, escaped, shown};
use serde::{Serialize, Serializer};

use crate::common::classification::Classes;
use crate::common::failure::Outcome;
use crate::{Result, text};
use gpureplay_library::expectation::Comparison;
use gpureplay_library::json_path;

/// What a run did, for `--json`.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) recording: String,
    pub(crate) device: String,
    #[serde(skip)]
    pub(crate) on_model: bool,
    pub(crate) layers: Option<Selection>,
    /// Skipped layers left what the recording itself has in their memory, so the outputs belong to no input.
    pub(crate) recorded_values: bool,
    #[serde(serialize_with = "json_path::named")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, PathBuf>"))]
    pub(crate) inputs: BTreeMap<String, PathBuf>,
    /// Jobs of the layers that ran; those of set-up belong to loading.
    pub(crate) jobs: u64,
    pub(crate) setup_jobs: u64,
    pub(crate) chains: u32,
    /// Until the first run could start.
    #[serde(rename = "load_seconds", serialize_with = "seconds")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub(crate) load: Duration,
    /// All attempts at running.
    #[serde(rename = "replay_seconds", serialize_with = "seconds")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub(crate) replay: Duration,
    /// Time in jobs, set-up included, if the device can tell.
    pub(crate) device_seconds: Option<f64>,
    pub(crate) retries: u32,
    pub(crate) outputs: BTreeMap<String, OutputReport>,
    /// The jobs and how long each took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_job: Option<gpureplay_jobs::Report>,
}

/// One output.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct OutputReport {
    #[serde(rename = "type")]
    pub(crate) element: &'static str,
    pub(crate) shape: Vec<u64>,
    #[serde(serialize_with = "json_path::optional")]
    #[cfg_attr(test, schemars(with = "Option<PathBuf>"))]
    pub(crate) file: Option<PathBuf>,
    pub(crate) comparison: Option<Comparison>,
    pub(crate) top: Vec<(String, Number)>,
    /// It is the same for all inputs: nothing that computes it reads one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) constant: bool,
    #[serde(flatten)]
    pub(crate) special: SpecialValues,
}

/// Elements of a floating-point tensor that are no finite numbers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SpecialValues {
    nan: usize,
    infinite: usize,
}

impl SpecialValues {
    pub(crate) fn of(tensor: &Tensor) -> Self {
        if !tensor.dtype().is_float() {
            return Self::default();
        }
        let count = |is: fn(f64) -> bool| tensor.values().filter(|value| is(*value)).count();
        Self {
            nan: count(f64::is_nan),
            infinite: count(f64::is_infinite),
        }
    }

    fn text(self) -> Option<String> {
        let part = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 is {what}")),
            count => Some(format!("{count} are {what}")),
        };
        let parts: Vec<String> = [part(self.nan, "NaN"), part(self.infinite, "infinite")]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Report {
    pub(crate) fn outcome(&self) -> Outcome {
        let differs = |output: &OutputReport| {
            let comparison = output.comparison.as_ref();
            comparison.is_some_and(|comparison| !comparison.matches)
        };
        match self.outputs.values().any(differs) {
            true => Outcome::Mismatch,
            false => Outcome::Done,
        }
    }

    pub(crate) fn print(
        &self,
        out: &mut impl Write,
        bindings: &Bindings,
        classes: &Classes,
    ) -> Result<()> {
        writeln!(out, "{} on {}", escaped(&self.recording), self.device)?;
        if let Some(part) = self.layers.as_ref().map(Selection::text) {
            writeln!(out, "  {part}")?;
        }
        for (name, path) in &self.inputs {
            let (_, shape) = bindings.named(name)?;
            writeln!(out, "  {name} {shape} from {}", shown(path))?;
        }
        for (name, output) in &self.outputs {
            let (_, shape) = bindings.named(name)?;
            match &output.file {
                Some(path) => writeln!(out, "  {name} {shape} to {}", shown(path))?,
                None => writeln!(
                    out,
                    "  {name} {shape} not written (--output {name}=FILE.npy)"
                )?,
            }
            if classes.listed() {
                for (label, value) in &output.top {
                    writeln!(out, "    {:.3}  {}", value.0, escaped(label))?;
                }
            }
        }
        for (name, output) in &self.outputs {
            if let Some(special) = output.special.text() {
                let elements: u64 = output.shape.iter().product();
                writeln!(out, "  of the {elements} elements of {name} {special}")?;
            }
        }
        let classified = self.outputs.values().find(|output| !output.top.is_empty());
        let place = if self.on_model { "model" } else { "GPU" };
        let mut line = String::new();
        if let Some((label, value)) = classified.and_then(|output| output.top.first()) {
            line += &format!("{} ({:.3}) · ", escaped(label), value.0);
        }
        line += &format!(
            "{}, {} loading, {} on the {place}",
            text::count(self.jobs, "job"),
            text::duration(self.load),
            text::duration(self.replay)
        );
        if self.retries > 0 {
            line += &format!(
                " after {} failed",
                text::count(self.retries.into(), "attempt")
            );
        }
        for (name, output) in &self.outputs {
            if self.recorded_values {
                continue;
            }
            line += " · ";
            line += &match (&output.comparison, self.outputs.len()) {
                (Some(comparison), 1) => comparison.text(),
                (Some(comparison), _) => format!("{name} {}", comparison.text()),
                (None, _) => format!("{name}: nothing to compare with"),
            };
        }
        if self.recorded_values {
            line += " · computed from values that the recording itself has, not from an input: nothing to compare with";
        }
        writeln!(out, "→ {line}")?;
        Ok(())
    }
}
