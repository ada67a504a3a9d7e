// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run --repeat`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use gpureplay_core::Limits;
use gpureplay_format::PAGE_SIZE;
use gpureplay_library::values::read_any;
use gpureplay_library::{Number, Session, Tensor, TensorInfo, TensorKind, escaped, list, shown};
use serde::Serialize;

use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::interrupt::{Interrupt, Stopped};
use crate::common::progress::Progress;
use crate::{Result, text};

const SHOWN: usize = 4;

/// Options about states and repeated runs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StateOptions {
    /// State before the first run: a .safetensors file with all states, or a directory with a NAME.npy for each
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) state_in: Option<PathBuf>,
    /// Where to write what the last run left
    #[arg(long, value_name = "FILE")]
    pub(crate) state_out: Option<PathBuf>,
    /// Run N times; outputs have one more dimension, of the runs. NAME.npy in the directory of --inputs has a value for each run along
    /// its first dimension, and begins anew when there are fewer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["expected", "trace", "output_layer", "layers", "until"])]
    pub(crate) repeat: Option<u32>,
}

impl StateOptions {
    pub(crate) fn bind(&self, session: &mut Session) -> Result<()> {
        match &self.state_in {
            Some(path) => Ok(session.bind_states(path)?),
            None => Ok(()),
        }
    }

    pub(crate) fn claim(&self, destinations: &mut Destinations, session: &Session) -> Result<()> {
        if let Some(path) = &self.state_in {
            destinations.reads(path);
        }
        let Some(path) = &self.state_out else {
            return Ok(());
        };
        if path
            .extension()
            .is_none_or(|ending| ending != "safetensors")
        {
            return Err(Failure::Usage(format!(
                "--state-out {}: the file's name must end in .safetensors",
                shown(path)
            )));
        }
        let tensors = session.recording().tensors();
        if !tensors.iter().any(|info| info.kind == TensorKind::State) {
            return Err(Failure::Usage(
                "--state-out: the recording has no states".into(),
            ));
        }
        destinations.claim(path)
    }

    pub(crate) fn write(&self, destinations: &Destinations, session: &mut Session) -> Result<()> {
        match &self.state_out {
            Some(path) => destinations.write_tensors(path, &session.states()?),
            None => Ok(()),
        }
    }
}

struct Series {
    name: String,
    values: Vec<Tensor>,
}

/// What came out of many runs.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Repeated {
    recording: String,
    device: String,
    runs: u32,
    /// Ctrl-C came before all runs were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
    seconds: f64,
    runs_per_second: f64,
    retries: u32,
    outputs: BTreeMap<String, Summary>,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Summary {
    #[serde(rename = "type")]
    element: &'static str,
    shape: Vec<u64>,
    #[serde(serialize_with = "gpureplay_library::json_path::optional")]
    #[cfg_attr(test, schemars(with = "Option<PathBuf>"))]
    file: Option<PathBuf>,
    /// The first element of the first run and of the last.
    first: Option<Number>,
    last: Option<Number>,
}

/// Runs N times, or until Ctrl-C. Returns values to write, and where.
pub(crate) fn run(
    session: &mut Session,
    (runs, inputs): (u32, Option<&Path>),
    files: &BTreeMap<String, PathBuf>,
    interrupt: &Interrupt,
) -> Result<(Repeated, Vec<(PathBuf, Tensor)>)> {
    let series = match inputs {
        Some(directory) => read_series(directory, session)?,
        None => Vec::new(),
    };
    let outputs = wanted(session, runs)?;
    for name in outputs.keys() {
        session.keep(name)?;
    }
    session.prepare()?;
    let mut kept: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut retries = 0;
    let done = Arc::new(AtomicU64::new(0));
    let total = Some(u64::from(runs));
    let progress = Progress::start("replaying", done.clone(), total, "runs");
    let started = Instant::now();
    let mut made = 0;
    for run in 0..runs as usize {
        if interrupt.came() {
            break;
        }
        for series in &series {
            let value = series.values.get(run % series.values.len().max(1));
            if let Some(value) = value {
                session.bind(&series.name, value.clone())?;
            }
        }
        session.run()?;
        retries += session.timing().retries;
        for name in outputs.keys() {
            let value = session.read(name)?;
            kept.entry(name.clone()).or_default().extend(value.bytes());
        }
        made += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
    drop(progress);
    let stopped = Stopped::of(made, runs as usize)?;
    let runs = made as u32;
    let seconds = started.elapsed().as_secs_f64();
    let mut summaries = BTreeMap::new();
    let mut written = Vec::new();
    for (name, info) in outputs {
        let shape: Vec<u64> = std::iter::once(u64::from(runs)).chain(info.shape).collect();
        let bytes = kept.remove(&name).unwrap_or_default();
        let value = Tensor::new(info.dtype, &shape, bytes)
            .map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        let file = files.get(&name).cloned();
        let each = value.len() / runs as usize;
        let element = |at: usize| (at < value.len()).then(|| Number(value.value(at)));
        let summary = Summary {
            element: info.dtype.name(),
            first: element(0),
            last: element(value.len().saturating_sub(each)),
            shape,
            file: file.clone(),
        };
        written.extend(file.map(|path| (path, value)));
        summaries.insert(name, summary);
    }
    let repeated = Repeated {
        recording: session.recording().name(),
        device: session.description(),
        runs,
        stopped,
        seconds,
        runs_per_second: f64::from(runs) / seconds,
        retries,
        outputs: summaries,
    };
    Ok((repeated, written))
}

fn wanted(session: &Session, runs: u32) -> Result<BTreeMap<String, TensorInfo>> {
    let tensors = session.recording().tensors().iter();
    let outputs: BTreeMap<String, TensorInfo> = tensors
        .filter(|info| info.kind == TensorKind::Output)
        .map(|info| (info.name.clone(), info.clone()))
        .collect();
    let bytes: u64 = outputs.values().map(|info| info.bytes as u64).sum();
    let limit = Limits::DEFAULT.pages * u64::from(PAGE_SIZE);
    match bytes.checked_mul(runs.into()) {
        Some(all) if all <= limit => Ok(outputs),
        _ => Err(Failure::Usage(format!(
            "--repeat {runs}: the outputs of all runs would take more than {limit} bytes; run less often, with --state-out and --state-in between"
        ))),
    }
}

/// NAME.npy: one value, or one per run.
fn read_series(directory: &Path, session: &Session) -> Result<Vec<Series>> {
    let tensors = session.recording().tensors();
    let mut found = Vec::new();
    for info in tensors.iter().filter(|info| info.kind == TensorKind::Input) {
        let file = format!("{}.npy", info.name);
        // A recording does not choose directories.
        let path = directory.join(&file);
        if file.contains('/') || !path.is_file() {
            continue;
        }
        let all = read_any(&path)?;
        let shape = match all.shape() {
            [_, rest @ ..] if rest == info.shape => rest,
            whole => whole,
        };
        if shape != info.shape || all.dtype() != info.dtype || all.is_empty() {
            return Err(Failure::Input(format!(
                "{}: expected {info}, or as many of them as there are runs along a first dimension, got {}",
                shown(&path),
                text::typed_shape(all.dtype(), all.shape())
            )));
        }
        let value = |bytes: &[u8]| {
            let value = Tensor::new(info.dtype, &info.shape, bytes.to_vec());
            value.map_err(|error| Failure::Input(format!("{}: {error}", shown(&path))))
        };
        let values = all.bytes().chunks_exact(info.bytes.max(1)).map(value);
        found.push(Series {
            name: info.name.clone(),
            values: values.collect::<Result<_>>()?,
        });
    }
    match found.is_empty() {
        true => Err(Failure::Input(format!(
            "{}: has no NAME.npy of an input; {}",
            shown(directory),
            list(tensors, TensorKind::Input)
        ))),
        false => Ok(found),
    }
}

impl Repeated {
    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{} on {}", escaped(&self.recording), self.device)?;
        for (name, summary) in self.outputs.iter().take(SHOWN) {
            let name = escaped(name);
            let extents: Vec<String> = summary.shape.iter().map(u64::to_string).collect();
            let form = format!("{}[{}]", summary.element, extents.join(","));
            let ends = match (&summary.first, &summary.last) {
                (Some(first), Some(last)) => format!(", {first} at first, {last} at last"),
                _ => String::new(),
            };
            match &summary.file {
                Some(file) => writeln!(out, "  {name} {form} in {}{ends}", shown(file))?,
                None => writeln!(out, "  {name} {form} not written{ends}")?,
            }
        }
        let retried = match self.retries {
            0 => String::new(),
            retries => format!(
                ", {} after an error",
                text::count(retries.into(), "attempt")
            ),
        };
        let made = match self.stopped {
            Some(stopped) => stopped.to_string(),
            None => text::count(self.runs.into(), "run"),
        };
        writeln!(
            out,
            "→ {made} in {}, {:.1} per second{retried}",
            text::seconds(self.seconds),
            self.runs_per_second
        )?;
        Ok(())
    }
}
