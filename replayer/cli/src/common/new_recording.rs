// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by `compile` and `record`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpureplay_compile::notes::{Kept, Turn};
use gpureplay_compile::{Capture, Compiled, Found, Place, Role, TensorFile, compile_found};
use gpureplay_library::manifest::{External, Job, MOST_TEXT, beginning};
use gpureplay_library::weights::sha256;
use gpureplay_library::{escaped, shown};
use gpureplay_tensors::encode_npy;
use mali_drive::names;
use serde::Serialize;

use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::manifest_text::manifest_text;
use crate::common::new_directory::NewDirectory;
use crate::common::notes::{self, Noted};
use crate::common::page_reads;
use crate::common::reach;
use crate::common::recording_choices::Choices;
use crate::common::steps::{self, StateArgument, Step};
use crate::common::terminal::{self, stage};
use crate::manifest::{self, Case, Manifest, Output};
use crate::{Result, files, text};

pub(crate) struct Product {
    pub(crate) compiled: Compiled,
    pub(crate) checked: Option<String>,
    pub(crate) noted: Noted,
    manifest: Manifest,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report<'a> {
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

#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// The recorded turn of a loop, and what turns hand on.
type OneStep = (Turn, Vec<Kept>);

impl Product {
    /// A second trace tells inputs from weights if no files do. Of repeated steps only the first is used; returns
    /// the traces as used.
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
        let wanted = notes::Wanted {
            options: &choices.notes,
            states: named.collect(),
            step,
        };
        let (tensors, mut noted) = notes::find(capture, second, files, wanted)?;
        let compiled = compile_found(capture, tensors, &choices.options(), observe)
            .map_err(|error| Failure::Recording(error.to_string()))?;
        for remark in reach::remarks(capture, &compiled.recording, &compiled.tensors) {
            if !noted.remarks.contains(&remark) {
                noted.remarks.push(remark);
            }
        }
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

    pub(crate) fn write(
        &mut self,
        directory: &Path,
        choices: &Choices,
        trace: &Path,
    ) -> Result<()> {
        let place = NewDirectory::new(directory.to_path_buf(), choices.force)?;
        self.manifest.name = place.name().to_owned();
        if let Some(checked) = &self.checked {
            self.manifest
                .provenance
                .insert("checked".into(), checked.clone());
        }
        let mut destinations = Destinations::new(choices.force.force);
        choices.mark_read(&mut destinations);
        destinations.reads(trace);
        place.write(&self.files()?, &destinations)
    }

    fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        for tensor in &self.compiled.tensors {
            if let Some(path) = self.file_of(tensor) {
                files.insert(path, encode_npy(&tensor.tensor));
            }
        }
        files.insert(files::FILE_NAME.into(), self.compiled.recording.clone());
        files.insert(
            manifest::FILE_NAME.into(),
            manifest_text(&self.manifest)?.into_bytes(),
        );
        Ok(files)
    }

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
            return terminal::json(&mut out, &report);
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
        if let Some(next) = notes::next_command(directory, &self.compiled.tensors) {
            writeln!(out, "replay it with")?;
            writeln!(out, "  {next}")?;
        }
        Ok(())
    }
}

/// Converts chain numbers of the trace to the recording's.
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
        // A chain named by job: only that job.
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
    know("gpu", names::gpu(capture.gpu_id()).to_string());
    know("driver", capture.origin.driver.clone());
    know("kernel", format!("Linux {}", capture.origin.kernel));
    know(
        "recorder",
        format!(
            "gpureplay {}, raw trace version {}{}",
            env!("CARGO_PKG_VERSION"),
            gpureplay_trace::layout::VERSION,
            match capture.origin.in_app {
                true => ", in user space",
                false => "",
            }
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
        command: beginning(command, MOST_TEXT).to_owned(),
        provenance,
        outputs,
        external,
        cases: vec![case],
        ..Manifest::default()
    }
}
