// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `compile` and `record`.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use gpureplay_compile::{Granularity, MOST_JOBS, Options, Role, TensorFile};
use gpureplay_library::values::read_any;
use gpureplay_library::{read_named, shown};
use gpureplay_tensors::{Form, Tensor, distinctiveness};

use crate::Result;
use crate::common::arguments::tolerance;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::Failure;
use crate::common::named_file::{NamedFile, OutputArgument, is_name};
use crate::common::notes::NoteOptions;
use crate::common::steps::StateArgument;
use crate::common::terminal;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair<T> {
    pub(crate) key: String,
    pub(crate) value: T,
}

impl<T: FromStr> FromStr for Pair<T> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
        let value = value
            .parse()
            .map_err(|_| format!("'{value}' is not a value for {key}"))?;
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }
}

fn named_tolerance(text: &str) -> std::result::Result<Pair<f64>, String> {
    let (key, value) = text.split_once('=').ok_or("expected NAME=NUMBER")?;
    Ok(Pair {
        key: key.to_owned(),
        value: tolerance(value)?,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments(Granularity);

impl FromStr for Segments {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "network" => Ok(Self(Granularity::Network)),
            "layer" => Ok(Self(Granularity::Layers)),
            "job" => Ok(Self(Granularity::Jobs(1))),
            number => match number.parse() {
                Ok(jobs) if jobs > 0 => Ok(Self(Granularity::Jobs(jobs))),
                _ => Err("expected network, layer, job, or a number of jobs".into()),
            },
        }
    }
}

/// Options of both commands.
#[derive(Args, Clone, Debug)]
pub(crate) struct Choices {
    /// A file that the app reads and that changes from run to run
    #[arg(long, alias = "input", short_alias = 'i', value_name = "NAME=FILE")]
    pub(crate) reads: Vec<NamedFile>,
    /// A file that the app writes from GPU memory
    #[arg(long, value_name = "NAME=FILE")]
    writes: Vec<NamedFile>,
    /// Directory of the recording; its last part is the recording's name [default: the app's name and -recording]
    #[arg(short, long, alias = "output-directory", value_name = "DIR", value_parser = PathBufValueParser::new().map(OutputArgument::from))]
    output: Vec<OutputArgument>,
    /// A file that the app reads and that belongs to the model
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) weight: Vec<NamedFile>,
    /// A directory of such files; each NAME.npy is a weight of that name
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Keep the weights beside the recording instead of inside it
    #[arg(long)]
    pub(crate) external_weights: bool,
    /// State that a run leaves for the next: the file with its first value, or a tensor of the app's OpenCL calls. In a trace with
    /// several equal steps states are found, and the recording has one step
    #[arg(long, value_name = "NAME[=FILE]")]
    pub(crate) state: Vec<StateArgument>,
    /// A reference's values of what a layer computes, equal to the GPU's up to rounding
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) intermediate: Vec<NamedFile>,
    /// A directory of such files; each NAME.npy is what layer NAME computes
    #[arg(long, value_name = "DIR")]
    pub(crate) intermediates: Option<PathBuf>,
    /// Size of the parts that can be run one by one: network, layer (each ends with an intermediate or an output, and has its name),
    /// job, or a number of jobs
    #[arg(
        long,
        visible_alias = "segments",
        default_value = "network",
        value_name = "SIZE"
    )]
    pub(crate) granularity: Segments,
    /// Leave chains as the driver submitted them; otherwise those that follow each other without work of the processor are one submission
    #[arg(long)]
    pub(crate) no_link: bool,
    /// Jobs that a chain may have that was made of several
    #[arg(long, value_name = "N", alias = "most-jobs", default_value_t = MOST_JOBS, value_parser = clap::value_parser!(u32).range(1..=65535), conflicts_with = "no_link")]
    pub(crate) max_jobs: u32,
    /// Longest time that a replay waits for one job, in seconds; less where all jobs together would get more than an hour
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) timeout: u32,
    /// Largest relative difference of an output from its reference
    #[arg(long, value_name = "NAME=NUMBER", value_parser = named_tolerance)]
    pub(crate) tolerance: Vec<Pair<f64>>,
    /// One line about the recording
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) description: String,
    /// Something worth knowing about where the recording comes from, such as runtime="Mesa 25.0.7"
    #[arg(long, value_name = "KEY=TEXT")]
    pub(crate) provenance: Vec<Pair<String>>,
    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) notes: NoteOptions,
}

impl Choices {
    pub(crate) fn has_tensors(&self) -> bool {
        !self.reads.is_empty()
            || self.written().next().is_some()
            || !self.intermediate.is_empty()
            || self.intermediates.is_some()
            || !self.weight.is_empty()
            || self.weights.is_some()
            || self.state.iter().any(|state| state.path().is_some())
    }

    fn written(&self) -> impl Iterator<Item = &NamedFile> {
        let old = self.output.iter().filter_map(OutputArgument::written);
        self.writes.iter().chain(old)
    }

    pub(crate) fn directory(&self) -> Result<Option<&Path>> {
        let mut directories = self.output.iter().filter_map(OutputArgument::directory);
        let directory = directories.next();
        match directories.next() {
            Some(_) => Err(Failure::Usage(
                "--output: one directory is enough; files that the app writes are --writes NAME=FILE".into(),
            )),
            None => Ok(directory),
        }
    }

    pub(crate) fn read_files(&self) -> Result<Vec<TensorFile>> {
        let mut files = self.read_inputs()?;
        files.extend(self.read_outputs()?);
        Ok(files)
    }

    pub(crate) fn read_inputs(&self) -> Result<Vec<TensorFile>> {
        let mut weights = self.weight.clone();
        if let Some(directory) = &self.weights {
            weights.extend(npy_files(directory)?);
        }
        let inputs = self.reads.iter().map(|file| (Role::Input, file));
        let weights = weights.iter().map(|file| (Role::Weight, file));
        let states = self.state.iter().filter_map(|state| match state {
            StateArgument::File(file) => Some((Role::State, file)),
            StateArgument::Named(_) => None,
        });
        let mut intermediates = self.intermediate.clone();
        if let Some(directory) = &self.intermediates {
            intermediates.extend(npy_files(directory)?);
        }
        let files = inputs
            .chain(weights)
            .chain(states)
            .chain(intermediates.iter().map(|file| (Role::Intermediate, file)))
            .map(|(role, file)| read(role, file))
            .collect::<Result<Vec<_>>>()?;
        for file in files.iter().filter(|f| f.role != Role::Intermediate) {
            warn_of_equal_elements(file);
        }
        Ok(files)
    }

    pub(crate) fn mark_read(&self, destinations: &mut Destinations) {
        let named = [&self.reads, &self.weight, &self.intermediate];
        for file in named.into_iter().flatten().chain(self.written()) {
            destinations.reads(&file.path);
        }
        for path in self.state.iter().filter_map(StateArgument::path) {
            destinations.reads(path);
        }
        for directory in self.weights.iter().chain(&self.intermediates) {
            for file in npy_files(directory).into_iter().flatten() {
                destinations.reads(&file.path);
            }
        }
    }

    pub(crate) fn read_outputs(&self) -> Result<Vec<TensorFile>> {
        self.written()
            .map(|file| read(Role::Output, file))
            .collect()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            granularity: self.granularity.0,
            timeout_us: self.timeout.saturating_mul(1_000_000),
            external_weights: self.external_weights,
            link: (!self.no_link).then_some(self.max_jobs),
        }
    }
}

fn read(role: Role, file: &NamedFile) -> Result<TensorFile> {
    Ok(TensorFile {
        role,
        name: file.name.clone(),
        tensor: read_typed(&file.path)?,
    })
}

/// `.npy`, or typed bytes: `FILE.bin:f32[1,28,28]`.
pub(crate) fn read_typed(path: &Path) -> Result<Tensor> {
    let text = path.to_string_lossy();
    let typed = text
        .rsplit_once(':')
        .filter(|(file, _)| file.ends_with(".bin"));
    let Some((file, form)) = typed else {
        if text.ends_with(".bin") {
            return Err(Failure::Usage(format!(
                "{text}: say what the bytes are, as in {text}:f32[1,28,28]"
            )));
        }
        return Ok(read_any(path)?);
    };
    let wrong = |reason: String| Failure::Input(format!("{file}: {reason}"));
    let form: Form = form.parse().map_err(Failure::Usage)?;
    let bytes = form.bytes().unwrap_or(u64::MAX);
    let metadata = fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() || metadata.len() != bytes {
        let length = metadata.len();
        return Err(wrong(format!("has {length} bytes, {form} is {bytes}")));
    }
    let content = read_named(file.as_ref(), bytes)?;
    let shape: Vec<u64> = form.shape.iter().copied().map(u64::from).collect();
    Tensor::new(form.dtype, &shape, content).map_err(|error| wrong(error.to_string()))
}

fn npy_files(directory: &Path) -> Result<Vec<NamedFile>> {
    let wrong = |error: std::io::Error| Failure::Input(format!("{}: {error}", shown(directory)));
    let mut out = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        if path.extension().is_some_and(|e| e == "npy") && is_name(name) {
            out.push(NamedFile {
                name: name.to_owned(),
                path,
            });
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    if out.is_empty() {
        return Err(Failure::Input(format!(
            "{}: contains no .npy file",
            shown(directory)
        )));
    }
    Ok(out)
}

/// Equal elements cannot be told apart in memory.
fn warn_of_equal_elements(file: &TensorFile) {
    let d = distinctiveness(&file.tensor);
    if file.tensor.dtype().size() >= 4 && d.distinct * 10 < d.elements * 9 {
        terminal::note(format!(
            "warning: only {} of the {} elements of '{}' differ from each other; if it is not found, \
             make a file with `gpureplay record --make-input`",
            d.distinct, d.elements, file.name
        ));
    }
}
