// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay record`.

mod kernel_log;
mod trace;
mod words;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::Args;
use gpureplay_compile::{CompileError, TensorFile};
use gpureplay_trace::Submissions;
use nix::sys::personality::{self, Persona};

use gpureplay_library::shown;

use crate::Result;
use crate::commands::compile::{compare, read_trace};
use crate::commands::tag::MakeInput;
use crate::common::companion;
use crate::common::destinations::Destinations;
use crate::common::failure::{Failure, Outcome};
use crate::common::model_node::NodeOptions;
use crate::common::new_recording::Product;
use crate::common::recorder_choice::{self, Way};
use crate::common::recording_choices::Choices;
use crate::common::terminal;
use crate::common::terminal::stage;

use kernel_log::KernelLog;
use trace::Trace;
use words::{pairs, shell_quoted};

const EXAMPLES: &str = "\
Examples:
  gpureplay record -- ./app
  gpureplay record --reads a=a.npy --reads b=b.npy --writes out=out.npy -o recordings/gemm -- ./gemm a.npy b.npy out.npy
  gpureplay record --make-input a.npy --shape 24,40     (an input that can be found in GPU memory)
  gpureplay record --twice -- ./blur cat.ppm -- ./blur dog.ppm     (inputs are what differs; no file is named)
  gpureplay record --raw raw.trace -- ./gemm a.npy b.npy out.npy     (then elsewhere: gpureplay compile raw.trace …)

Needs the stock panfrost driver and the right to open its render node; or the recorder module and the patched driver (driver-patch/);
or no GPU: then the app runs on the model, with Mesa (`gpureplay node -h`). The app runs unchanged; record one inference. If it fails,
its exit code is returned and nothing is written. OpenCL apps run with a layer
that says in the trace which kernels they launch and what they write and read; without files, those are the tensors.";

/// Record an app
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Record {
    #[command(flatten)]
    choices: Choices,
    /// Keep the raw trace in this file; without --output nothing else is done
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// Keep the trace of --raw even if the app fails
    #[arg(long, requires = "raw")]
    keep: bool,
    /// Record two runs with other inputs: the second app follows the first after another --. What differs is input
    #[arg(long)]
    twice: bool,
    /// The OpenCL layer; if not given, libgpureplay_opencl.so beside this command, in ../lib or ../lib/gpureplay
    #[arg(long, value_name = "FILE", conflicts_with = "no_layer")]
    layer: Option<PathBuf>,
    /// Run the app without the OpenCL layer
    #[arg(long)]
    no_layer: bool,
    /// What records: the kernel module, or a library in the app. If not given, the first of them that this machine has; the model is
    /// taken where there is no GPU
    #[arg(long, value_enum, value_name = "RECORDER")]
    recorder: Option<recorder_choice::Name>,
    #[command(flatten)]
    node: NodeOptions,
    /// The kernel module's device
    #[arg(long, value_name = "FILE", default_value = "/dev/gpureplay")]
    device: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    make: MakeInput,
    /// The app and its arguments
    #[arg(
        last = true,
        required_unless_present = "make_input",
        conflicts_with = "make_input",
        value_name = "APP"
    )]
    app: Vec<String>,
}

impl Record {
    pub(crate) fn execute(&self) -> Result {
        if let Some(made) = self.make.execute(self.choices.force) {
            return made;
        }
        let [app, second] = self.apps()?;
        let directory = match (self.choices.directory()?, &self.raw) {
            (Some(directory), _) => Some(directory.to_owned()),
            (None, Some(_)) if self.choices.has_tensors() => {
                return Err(Failure::Usage(
                    "--reads, --writes and --weight say what goes into a recording: give its directory with -o".into(),
                ));
            }
            (None, Some(_)) if self.twice => {
                return Err(Failure::Usage(
                    "--twice makes a recording: give its directory with -o".into(),
                ));
            }
            (None, Some(_)) => None,
            (None, None) => Some(default_directory(app)),
        };
        // The app may change or delete them.
        let mut files = self.choices.read_inputs()?;
        if let Some(raw) = &self.raw {
            let mut destinations = Destinations::new(self.choices.force.force);
            self.choices.mark_read(&mut destinations);
            destinations.claim(raw)?;
        }
        let layer = self.layer()?;
        let way = Way::choose(self.recorder, &self.device, &self.node)?;
        if let (None, Some(said)) = (self.recorder, way.said()) {
            terminal::note(&said);
        }
        let how = (&way, layer.as_deref());
        let mut trace = Trace::create(self.raw.as_deref(), "first")?;
        self.run(app, how, &trace)?;
        if let Some(directory) = &directory {
            files.extend(self.choices.read_outputs()?);
            let mut product = match second {
                [] => self.product(&way, &trace, None, &files)?,
                second => {
                    let other = Trace::create(None, "second")?;
                    self.run(second, how, &other)?;
                    match self.product(&way, &trace, Some(&other), &files) {
                        // Compiling kernels uses other memory than later runs.
                        Err(Failure::Runs(_)) => {
                            terminal::note(
                                "the two runs differ, perhaps because the first one had kernels to compile: recording it again",
                            );
                            drop(trace);
                            trace = Trace::create(self.raw.as_deref(), "first")?;
                            self.run(app, how, &trace)?;
                            self.product(&way, &trace, Some(&other), &files)?
                        }
                        product => product?,
                    }
                }
            };
            product.write(directory, &self.choices, &trace.path)?;
            product.report(directory, self.json)?;
        }
        trace.keep_if_named()?;
        Ok(Outcome::Done)
    }

    fn product(
        &self,
        way: &Way,
        trace: &Trace,
        other: Option<&Trace>,
        files: &[TensorFile],
    ) -> Result<Product> {
        let capture = read_trace(&trace.path)?;
        let second = other.map(|other| read_trace(&other.path)).transpose()?;
        let command = self.command_line();
        let mut choices = self.choices.clone();
        choices.provenance.extend(way.provenance());
        let (mut product, capture, second) =
            Product::build(capture, second, files, &choices, &command)?;
        if let (Some(second), Some(other)) = (&second, other) {
            let files = product.noted.second.clone();
            product.checked = Some(compare((&capture, second, &other.path), &product, &files)?);
        }
        Ok(product)
    }

    fn apps(&self) -> Result<[&[String]; 2]> {
        if !self.twice {
            return Ok([&self.app, &[]]);
        }
        match pairs(&self.app).as_slice() {
            [pair] => Ok(*pair),
            [] if self.app.iter().filter(|word| *word == "--").count() > 1 => {
                Err(Failure::Usage(
                    "--twice: the app's own arguments have --, so the second app must begin with the word that the first one begins with: -- APP … -- APP …"
                        .into(),
                ))
            }
            [] => Err(Failure::Usage(
                "--twice: expected -- APP … -- APP …, the app with two sets of arguments".into(),
            )),
            _ => Err(Failure::Usage(
                "--twice: where does the second app begin? Several -- are followed by the word that the first one begins with; put the runs into scripts of two names"
                    .into(),
            )),
        }
    }

    fn layer(&self) -> Result<Option<PathBuf>> {
        if self.no_layer {
            return Ok(None);
        }
        match companion::LAYER.find(self.layer.as_deref()) {
            Err(failure) if self.layer.is_some() => Err(failure),
            found => Ok(found.ok()),
        }
    }

    fn run(
        &self,
        app: &[String],
        (way, layer): (&Way, Option<&Path>),
        trace: &Trace,
    ) -> Result<()> {
        let kernel_log = KernelLog::open();
        let (status, submissions) = match way {
            Way::Kernel(device) => record(device, app, (way, layer), &trace.path)?,
            Way::User(_) | Way::Model(..) => (start(app, (way, layer), &trace.path)?, None),
        };
        if let Err(failure) = app_succeeded(app, status) {
            if self.keep && trace.destination.is_some() {
                trace.keep_if_named()?;
            }
            return Err(failure);
        }
        let submissions = match submissions {
            Some(submissions) => submissions,
            None => recorder_choice::check(&trace.path)?,
        };
        match kernel_log.and_then(KernelLog::first_fault) {
            None if submissions == 0 => Err(Failure::Recording(CompileError::NoJobs.to_string())),
            None => Ok(()),
            Some(line) => Err(Failure::Device(format!(
                "the kernel reports a GPU fault during the recording: {line}"
            ))),
        }
    }

    fn command_line(&self) -> String {
        std::env::args()
            .map(|word| shell_quoted(&word))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn default_directory(app: &[String]) -> PathBuf {
    let program = app.first().map(Path::new);
    let name = program.and_then(Path::file_stem).unwrap_or_default();
    PathBuf::from(format!("{}-recording", name.to_string_lossy()))
}

/// Also counts submissions.
fn record(
    device: &Path,
    app: &[String],
    how: (&Way, Option<&Path>),
    trace: &Path,
) -> Result<(ExitStatus, Option<u64>)> {
    let mut stream = File::open(device).map_err(|error| cannot_record(device, &error))?;
    let copy = {
        let mut file = OpenOptions::new()
            .write(true)
            .open(trace)
            .map_err(|error| Failure::Output(format!("{}: {error}", shown(trace))))?;
        let copies = move || {
            let submissions = copy_all(&mut stream, &mut file)?;
            file.sync_all()?;
            Ok(submissions)
        };
        let thread = std::thread::Builder::new().spawn(copies);
        thread.map_err(|error| Failure::Device(format!("a thread to record with: {error}")))?
    };
    let status = start(app, how, trace);
    let stopped = OpenOptions::new()
        .write(true)
        .open(device)
        .and_then(|mut d| d.write_all(b"stop"));
    let copied = match &stopped {
        Ok(()) => copy
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the reader panicked"))),
        // The stream would never end.
        Err(_) => Ok(0),
    };
    let status = status?;
    stopped.map_err(|error| {
        Failure::Device(format!(
            "{}: cannot stop the recording: {error}",
            shown(device)
        ))
    })?;
    let submissions = copied.map_err(|error| {
        Failure::Device(format!("{}: reading the trace: {error}", shown(device)))
    })?;
    Ok((status, Some(submissions)))
}

fn start(app: &[String], (way, layer): (&Way, Option<&Path>), trace: &Path) -> Result<ExitStatus> {
    stage("running the app");
    let trace = std::path::absolute(trace).unwrap_or_else(|_| trace.into());
    let mut command = way.command(app, layer, &trace)?;
    // Inherited: libraries sort buffers by host addresses, and two runs must do the same.
    let _ = personality::get().and_then(|old| personality::set(old | Persona::ADDR_NO_RANDOMIZE));
    let status = command.status();
    let program = app.first().map_or("", String::as_str);
    status.map_err(|error| Failure::Usage(format!("{program}: {error}")))
}

/// Copies in large pieces: on a network file system each write is a message, and the driver waits while its log is
/// full. Returns the submissions.
fn copy_all(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    const PIECE: usize = 4 << 20;
    let mut piece = vec![0; PIECE];
    let mut submissions = Submissions::default();
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(submissions.count()),
            Ok(length) => {
                let piece = piece.get(..length).unwrap_or_default();
                submissions.pass(piece);
                to.write_all(piece)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn cannot_record(device: &Path, error: &io::Error) -> Failure {
    let what_to_do = match error.kind() {
        ErrorKind::NotFound => {
            "load the recorder and the patched GPU driver first: insmod gpureplay_recorder.ko, then the patched driver (driver-patch/build makes both)"
        }
        ErrorKind::PermissionDenied => {
            "only root may record: a trace holds everything in the GPU's memory"
        }
        ErrorKind::ResourceBusy => "another recording is running",
        _ if error.raw_os_error() == Some(nix::errno::Errno::ENODEV as i32) => {
            "the recorder is loaded, but no patched GPU driver is bound: insmod the patched driver after it"
        }
        _ => "is it the recorder's device?",
    };
    Failure::Device(format!("{}: {error}; {what_to_do}", shown(device)))
}

fn app_succeeded(app: &[String], status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let program = app.first().map_or("", String::as_str);
    let (text, code) = match (status.code(), status.signal()) {
        (Some(code), _) => (
            format!("ended with exit code {code}"),
            u8::try_from(code).unwrap_or(1),
        ),
        (None, Some(signal)) => (
            format!("was killed by signal {signal}"),
            128u8.saturating_add(signal as u8),
        ),
        (None, None) => ("ended strangely".into(), 1),
    };
    Err(Failure::App {
        text: format!(
            "{program} {text}; no recording was made (--raw FILE --keep keeps its trace)"
        ),
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_says_what_to_load() {
        let error =
            cannot_record(Path::new("/dev/gpureplay"), &ErrorKind::NotFound.into()).to_string();
        assert!(error.contains("insmod gpureplay_recorder.ko"), "{error}");
    }

    #[test]
    fn finding_11_submissions_are_counted_while_the_trace_passes() {
        for submitted in [0, 3] {
            let driver = gpureplay_trace::Driver::Panfrost;
            let mut writer =
                gpureplay_trace::Writer::begin(Vec::new(), driver, true, "panfrost", "6.12")
                    .unwrap();
            for _ in 0..submitted {
                writer.submit(1, 0, 0x1000).unwrap();
            }
            let trace = writer.end().unwrap();
            let mut copy = Vec::new();
            assert_eq!(copy_all(&mut &*trace, &mut copy).unwrap(), submitted);
            assert!(copy == trace);
        }
    }
}
