// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `compile` and `record` have in common: files of tensors in, a recording's directory out.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use gpureplay_compile::notes::{Form, Kept, Turn};
use gpureplay_compile::{
    Capture, Compiled, Found, Granularity, MOST_JOBS, Options, Place, Role, TensorFile,
    compile_found,
};
use gpureplay_io::{Tensor, distinctiveness, encode_npy};
use gpureplay_library::manifest::{External, Job};
use gpureplay_library::values::read_any;
use gpureplay_library::weights::sha256;
use mali_regs::GpuId;
use serde::Serialize;

use crate::common::arguments::tolerance;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::named_file::{NamedFile, is_name};
use crate::common::page_reads;
use crate::common::steps::{self, StateArgument, Step};
use crate::common::terminal::{self, stage};
use crate::manifest::{self, Case, Manifest, Output};
use gpureplay_library::{escaped, shown};

use crate::common::noted::{self, NoteOptions, Noted};
use crate::{Result, files, text};

/// `KEY=VALUE` on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair<T> {
    key: String,
    value: T,
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

/// How a program is cut into segments.
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
    #[arg(short, long, value_name = "NAME=FILE")]
    pub(crate) input: Vec<NamedFile>,
    /// A file that the app writes from GPU memory
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) output: Vec<NamedFile>,
    /// A file that the app reads and that belongs to the model
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) weight: Vec<NamedFile>,
    /// A directory of such files; each NAME.npy is a weight of that name
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Keep the weights beside the recording instead of inside it
    #[arg(long)]
    pub(crate) external_weights: bool,
    /// What a run changes and the next run goes on from: the file with its first value, or the name of a tensor that the app's OpenCL
    /// calls show. Of a trace with several like steps they are found, and the recording has one step
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
    /// Leave the chains as the driver submitted them: one submission for each
    #[arg(long)]
    pub(crate) no_link: bool,
    /// Jobs that a chain may have; chains that follow each other without work of the processor become one
    #[arg(long, value_name = "N", default_value_t = MOST_JOBS, value_parser = clap::value_parser!(u32).range(1..=65535), conflicts_with = "no_link")]
    pub(crate) most_jobs: u32,
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
    /// Replace a recording that is already there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) notes: NoteOptions,
}

impl Choices {
    /// Whether any tensor is named.
    pub(crate) fn has_tensors(&self) -> bool {
        !self.input.is_empty()
            || !self.output.is_empty()
            || !self.intermediate.is_empty()
            || self.intermediates.is_some()
            || !self.weight.is_empty()
            || self.weights.is_some()
            || self.state.iter().any(|state| state.path().is_some())
    }

    /// Reads all files.
    pub(crate) fn read_files(&self) -> Result<Vec<TensorFile>> {
        let mut files = self.read_inputs()?;
        files.extend(self.read_outputs()?);
        Ok(files)
    }

    /// Reads the files that the app reads.
    pub(crate) fn read_inputs(&self) -> Result<Vec<TensorFile>> {
        let mut weights = self.weight.clone();
        if let Some(directory) = &self.weights {
            weights.extend(npy_files(directory)?);
        }
        let inputs = self.input.iter().map(|file| (Role::Input, file));
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

    /// The files and directories that are named.
    pub(crate) fn mark_read(&self, destinations: &mut Destinations) {
        let named = [&self.input, &self.output, &self.weight, &self.intermediate];
        for file in named.into_iter().flatten() {
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

    /// Reads the files that the app wrote.
    pub(crate) fn read_outputs(&self) -> Result<Vec<TensorFile>> {
        self.output
            .iter()
            .map(|file| read(Role::Output, file))
            .collect()
    }

    fn options(&self) -> Options {
        Options {
            granularity: self.granularity.0,
            timeout_us: self.timeout.saturating_mul(1_000_000),
            external_weights: self.external_weights,
            link: (!self.no_link).then_some(self.most_jobs),
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

/// Reads an `.npy` file, or `FILE.bin:f32[1,28,28]`: bytes, with what they are.
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
    let content = fs::read(file).map_err(|error| wrong(error.to_string()))?;
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

/// Elements that are equal cannot be told apart in memory.
fn warn_of_equal_elements(file: &TensorFile) {
    let d = distinctiveness(&file.tensor);
    if file.tensor.dtype().size() >= 4 && d.distinct * 10 < d.elements * 9 {
        terminal::note(format!(
            "warning: only {} of the {} elements of '{}' differ from each other; if it is not found, \
             make a file with `gpureplay tag`",
            d.distinct, d.elements, file.name
        ));
    }
}

/// A recording with everything that belongs beside it.
pub(crate) struct Product {
    /// The recording.
    pub(crate) compiled: Compiled,
    /// What a comparison with a second run found.
    pub(crate) checked: Option<String>,
    /// What notes of OpenCL calls say.
    pub(crate) noted: Noted,
    manifest: Manifest,
}

#[derive(Serialize)]
struct Report<'a> {
    recording: String,
    bytes: usize,
    chains: usize,
    setup_chains: usize,
    jobs: usize,
    gpu_memory_bytes: u64,
    restored_bytes_per_run: u64,
    checked: Option<&'a str>,
    tensors: Vec<TensorReport<'a>>,
}

#[derive(Serialize)]
struct TensorReport<'a> {
    name: &'a str,
    kind: &'static str,
    #[serde(rename = "type")]
    element: &'static str,
    shape: &'a [u32],
    addresses: Vec<u64>,
    before_job: usize,
}

/// The turn of a loop that is recorded, and what the turns hand on.
type OneStep = (Turn, Vec<Kept>);

impl Product {
    /// Compiles a trace and describes the result. A second trace tells inputs from weights where no files do. Of a trace with several
    /// steps that go on from each other only the first is used; the traces as they were used come back.
    pub(crate) fn build(
        capture: Capture,
        second: Option<Capture>,
        files: &[TensorFile],
        choices: &Choices,
        command: &str,
    ) -> Result<(Self, Capture, Option<Capture>)> {
        let (capture, second, step) = match steps::find(capture, second)? {
            Ok(Step {
                capture,
                second,
                turn,
                kept,
            }) => (capture, second, Some((turn, kept))),
            Err((capture, second)) => (capture, second, None),
        };
        let product = Self::of_step((&capture, second.as_ref(), step), files, choices, command)?;
        Ok((product, capture, second))
    }

    fn of_step(
        (capture, second, step): (&Capture, Option<&Capture>, Option<OneStep>),
        files: &[TensorFile],
        choices: &Choices,
        command: &str,
    ) -> Result<Self> {
        stage("finding tensors and compiling");
        let observe = |recording: &[u8], tensors: &[Found]| {
            stage("replaying once, to see what each part reads");
            let reads = page_reads::observe(capture, recording, tensors);
            reads
                .inspect_err(|error| {
                    terminal::note(format!(
                        "warning: what each part reads is not known, so it may ask for more than it needs: {error}"
                    ));
                })
                .ok()
        };
        let named = choices.state.iter().filter_map(|state| match state {
            StateArgument::Named(name) => Some(name.clone()),
            StateArgument::File(_) => None,
        });
        let wanted = noted::Wanted {
            options: &choices.notes,
            states: named.collect(),
            step,
        };
        let (tensors, noted) = noted::find(capture, second, files, wanted)?;
        let compiled = compile_found(capture, tensors, &choices.options(), observe)
            .map_err(|error| Failure::Recording(error.to_string()))?;
        let mut manifest = describe(capture, &compiled, choices, command);
        manifest.jobs = placed(noted.jobs(), &compiled.places);
        if let Some(reason) = &compiled.unlinked {
            terminal::note(format!("warning: chains are not linked: {reason}"));
        }
        Ok(Self {
            compiled,
            checked: None,
            noted,
            manifest,
        })
    }

    /// Writes recording, manifest, inputs and expected outputs. A new directory appears whole or not at all.
    pub(crate) fn write(
        &mut self,
        directory: &Path,
        choices: &Choices,
        trace: &Path,
    ) -> Result<()> {
        let force = choices.force;
        let wrong =
            |error: std::io::Error| Failure::Output(format!("{}: {error}", shown(directory)));
        let name = directory
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: expected a directory with a name",
                shown(directory)
            )));
        }
        self.manifest.name = name.to_owned();
        if let Some(checked) = &self.checked {
            self.manifest
                .provenance
                .insert("checked".into(), checked.clone());
        }
        let exists = directory.exists();
        if exists && !force && fs::read_dir(directory).map_err(wrong)?.next().is_some() {
            return Err(Failure::Output(format!(
                "{}: is not empty; use --force to replace the recording in it",
                shown(directory)
            )));
        }
        let mut destinations = Destinations::new(force);
        choices.mark_read(&mut destinations);
        destinations.reads(trace);
        if exists {
            return self.write_files(directory, destinations);
        }
        let parent = directory.parent().unwrap_or(Path::new(""));
        if !parent.as_os_str().is_empty() {
            fs::create_dir_all(parent).map_err(wrong)?;
        }
        let unfinished = directory.with_file_name(format!(".{name}.{}.part", std::process::id()));
        fs::create_dir(&unfinished).map_err(wrong)?;
        let written = self
            .write_files(&unfinished, destinations)
            .and_then(|()| fs::rename(&unfinished, directory).map_err(wrong));
        if written.is_err() {
            // What is left is of no use; the first error says more than one of the removal.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }

    /// All places are free before the first file is written.
    fn write_files(&self, directory: &Path, mut destinations: Destinations) -> Result<()> {
        let mut files = Vec::new();
        for tensor in &self.compiled.tensors {
            if let Some(path) = self.file_of(tensor) {
                files.push((directory.join(path), encode_npy(&tensor.tensor)));
            }
        }
        let manifest = self.manifest.to_text()?.into_bytes();
        let recording = self.compiled.recording.clone();
        files.push((directory.join(files::FILE_NAME), recording));
        files.push((directory.join(manifest::FILE_NAME), manifest));
        // A file that holds just this already may be one that was read: it stays.
        files.retain(|(path, bytes)| !fs::read(path).is_ok_and(|there| there == *bytes));
        for (path, _) in &files {
            destinations.claim(path)?;
        }
        for (path, bytes) in &files {
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .map_err(|error| Failure::Output(format!("{}: {error}", shown(path))))?;
            destinations.write(path, bytes)?;
        }
        Ok(())
    }

    /// Where a tensor's values are kept beside the recording.
    fn file_of(&self, tensor: &Found) -> Option<PathBuf> {
        match tensor.role {
            Role::Input => Some(Path::new("inputs").join(format!("{}.npy", tensor.name))),
            Role::Output => Some(Path::new("expected").join(format!("{}.npy", tensor.name))),
            Role::Intermediate | Role::State => None,
            Role::Weight => {
                let external = self.manifest.external.get(&tensor.name);
                external.map(|external| external.file.clone())
            }
        }
    }

    /// Prints what was made.
    pub(crate) fn report(&self, directory: &Path, json: bool) -> Result<()> {
        let summary = &self.compiled.summary;
        let mut out = match json {
            true => terminal::stdout(),
            false => terminal::report(false),
        };
        if json {
            let report = Report {
                recording: shown(directory),
                bytes: self.compiled.recording.len(),
                chains: summary.run_chains,
                setup_chains: summary.setup_chains,
                jobs: summary.jobs,
                gpu_memory_bytes: summary.pages * 4096,
                restored_bytes_per_run: summary.restored_bytes,
                checked: self.checked.as_deref(),
                tensors: self.compiled.tensors.iter().map(report_tensor).collect(),
            };
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Failure::Output(error.to_string()))?;
            writeln!(out, "{text}")?;
            return Ok(());
        }
        writeln!(
            out,
            "{}  {}, {}, {} of GPU memory",
            shown(directory),
            text::bytes(self.compiled.recording.len() as u64),
            text::count(summary.jobs as u64, "job"),
            text::bytes(summary.pages * 4096)
        )?;
        if summary.setup_chains > 0 {
            writeln!(
                out,
                "  {} run once, when the recording is opened",
                text::count(summary.setup_chains as u64, "chain")
            )?;
        }
        for tensor in &self.compiled.tensors {
            let report = report_tensor(tensor);
            let at: Vec<String> = report
                .addresses
                .iter()
                .map(|va| format!("{va:#x}"))
                .collect();
            let shape: Vec<u64> = tensor.tensor.shape().to_vec();
            let converted = tensor.converted_from.map_or(String::new(), |from| {
                format!(" (the app converts it from {})", from.name())
            });
            writeln!(
                out,
                "  {:6} {}  {} at {}{converted}",
                report.kind,
                tensor.name,
                text::typed_shape(tensor.layout.dtype, &shape),
                at.join(" and ")
            )?;
        }
        if let Some(checked) = &self.checked {
            writeln!(out, "  {checked}")?;
        }
        let kernels = self.noted.kernels();
        if !kernels.is_empty() {
            writeln!(out, "  {kernels}")?;
        }
        if summary.lost_setup > 0 {
            writeln!(
                out,
                "  {} that depend only on weights run every time, because weights can be replaced (--fixed-weights keeps them in set-up)",
                text::count(summary.lost_setup as u64, "chain")
            )?;
        }
        for remark in &self.noted.remarks {
            writeln!(out, "  note: {}", escaped(remark))?;
        }
        if let Some(next) = noted::next_command(directory, &self.compiled.tensors) {
            writeln!(out, "replay it with\n  {next}")?;
        }
        Ok(())
    }
}

/// Jobs that are named by chains of the trace, named by chains of the recording.
pub(crate) fn placed(named: Vec<Job>, places: &[Place]) -> Vec<Job> {
    let mut lengths: BTreeMap<u32, u32> = BTreeMap::new();
    for place in places {
        *lengths.entry(place.submission).or_default() += place.jobs;
    }
    let mut out = Vec::new();
    for job in named {
        let Some(place) = places.get(job.submission) else {
            continue;
        };
        let submission = place.submission as usize;
        if lengths.get(&place.submission) == Some(&place.jobs) {
            out.push(Job { submission, ..job });
            continue;
        }
        // Of a chain that was named by job already only that one.
        let jobs = match job.job {
            Some(at) => at..at.saturating_add(1),
            None => 0..place.jobs as usize,
        };
        out.extend(jobs.filter(|at| *at < place.jobs as usize).map(|at| Job {
            submission,
            job: Some(place.first as usize + at),
            ..job.clone()
        }));
    }
    out
}

fn report_tensor(tensor: &Found) -> TensorReport<'_> {
    TensorReport {
        name: &tensor.name,
        kind: gpureplay_compile::plan::tensor_kind(tensor.role).name(),
        element: tensor.layout.dtype.name(),
        shape: &tensor.shape,
        addresses: tensor.layout.pieces.iter().map(|piece| piece.va).collect(),
        before_job: tensor.job,
    }
}

fn describe(capture: &Capture, compiled: &Compiled, choices: &Choices, command: &str) -> Manifest {
    let mut provenance = BTreeMap::new();
    let mut know = |key: &str, value: String| provenance.insert(key.to_owned(), value);
    know("gpu", GpuId(capture.gpu_id()).to_string());
    know("driver", capture.origin.driver.clone());
    know("kernel", format!("Linux {}", capture.origin.kernel));
    know(
        "recorder",
        format!(
            "gpureplay {}, raw trace version {}",
            env!("CARGO_PKG_VERSION"),
            gpureplay_trace::layout::VERSION
        ),
    );
    know("sha256", sha256(&compiled.recording));
    for pair in &choices.provenance {
        know(&pair.key, pair.value.clone());
    }
    let path = |folder: &str, t: &Found| {
        (
            t.name.clone(),
            Path::new(folder).join(format!("{}.npy", t.name)),
        )
    };
    let of = |role: Role| compiled.tensors.iter().filter(move |t| t.role == role);
    let case = Case {
        inputs: of(Role::Input).map(|t| path("inputs", t)).collect(),
        expected: of(Role::Output).map(|t| path("expected", t)).collect(),
        reference: "the recorded stack".into(),
    };
    let outputs = of(Role::Output)
        .map(|t| {
            let tolerance = choices
                .tolerance
                .iter()
                .find(|pair| pair.key == t.name)
                .map(|pair| pair.value);
            (
                t.name.clone(),
                Output {
                    tolerance,
                    ..Output::default()
                },
            )
        })
        .collect();
    let external = |t: &Found| {
        let (name, file) = path("weights", t);
        let sha256 = sha256(&encode_npy(&t.tensor));
        (name, External { file, sha256 })
    };
    let external = match choices.external_weights {
        true => of(Role::Weight).map(external).collect(),
        false => BTreeMap::new(),
    };
    Manifest {
        version: manifest::VERSION,
        name: String::new(),
        description: choices.description.clone(),
        command: command.to_owned(),
        provenance,
        outputs,
        external,
        cases: vec![case],
        ..Manifest::default()
    }
}
