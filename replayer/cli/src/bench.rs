// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay bench`: load once, run many times, say where the time goes.

use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use gpureplay_core::middleware::{Call, Trace};
use gpureplay_core::{Gpu, Lines, Options, Session, Workspace};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Bindings, Files};
use serde::Serialize;

use crate::device::ModelOptions;
use crate::failure::{Failure, Outcome};
use crate::trust::{Place, Trust};
use crate::{Result, explain, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay bench recordings/acl-gemm-g52
  gpureplay bench recordings/acl-gemm-g52 --warmup 3 --runs 100 --export-json times.json";

/// Load a recording once, run it many times, and say where the time goes
///
/// Inputs are those of the manifest's first case. Loading is everything before the first run: reading, verifying, reset,
/// power, memory and set-up.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// Directory with a recording.gpr
    recording: PathBuf,
    /// Runs that are not counted
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmup: u32,
    /// Runs that are counted
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// What to replay on: model, model:GPU, nano, nano:direct or devmem
    #[arg(short, long, value_name = "DEVICE", default_value = "model")]
    device: Choice,
    /// Also write the numbers, with every single run, to a file
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    #[command(flatten)]
    model: ModelOptions,
}

/// Numbers of a benchmark; times in seconds.
#[derive(Serialize)]
struct Report {
    recording: String,
    device: String,
    file_bytes: usize,
    read_seconds: f64,
    verify_seconds: f64,
    open_seconds: f64,
    run_seconds: Vec<f64>,
    job_seconds: f64,
    register_accesses_per_run: f64,
    interrupts_per_run: f64,
    bytes_moved_per_run: f64,
}

/// What the engine asked of the device.
#[derive(Clone, Copy, Default)]
struct Counts {
    registers: u64,
    interrupts: u64,
    bytes: u64,
}

impl Counts {
    fn add(&mut self, call: Call) {
        match call {
            Call::Read(..) | Call::Write(..) => self.registers += 1,
            Call::Wait(_, raised) if raised != Lines::NONE => self.interrupts += 1,
            Call::Store(_, bytes) | Call::Load(_, bytes) | Call::Fill(_, bytes, _) => {
                self.bytes += bytes;
            }
            _ => {}
        }
    }
}

impl Bench {
    pub(crate) fn execute(&self) -> Result {
        let started = Instant::now();
        let place = Place::open(&self.recording, &Trust::default())?;
        let files = Files::read(place.path())?;
        let read = started.elapsed();
        let started = Instant::now();
        let verified = files.verify()?;
        let verify = started.elapsed();
        let recording = *verified.recording();
        let mut bindings = Bindings::new(&recording, &files.path);
        bindings.bind_weights(&files)?;
        let case = files
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.cases.first());
        for (name, path) in case.iter().flat_map(|case| &case.inputs) {
            bindings.bind_file(&files, name, &files.directory.join(path))?;
        }
        bindings.require_all()?;

        let mut device = Device::open(&self.device, recording.gpu_id(), self.model.into())?;
        let description = device.description().to_owned();
        let failed = |error| {
            let text = explain::replay_error(&recording, &error);
            Failure::Device(format!("{}: {text}", files.path.display()))
        };
        let counts = RefCell::new(Counts::default());
        let mut workspace = Box::new(Workspace::new());
        let started = Instant::now();
        let gpu: &mut dyn Gpu = device.gpu();
        let traced = Trace::new(gpu, |call| counts.borrow_mut().add(call));
        let mut session = Session::open(
            traced,
            verified,
            &mut workspace,
            Options::default(),
            &mut bindings,
        )
        .map_err(failed)?;
        let open = started.elapsed();
        for _ in 0..self.warmup {
            session.run(&mut bindings).map_err(failed)?;
        }
        *counts.borrow_mut() = Counts::default();
        let mut runs = Vec::new();
        for _ in 0..self.runs {
            let started = Instant::now();
            session.run(&mut bindings).map_err(failed)?;
            runs.push(started.elapsed());
        }
        let counted = *counts.borrow();
        session.finish().map_err(failed)?;

        let working = device.working();
        let per_run = |count: u64| count as f64 / f64::from(self.runs);
        let report = Report {
            recording: files.name(),
            device: description,
            file_bytes: files.bytes.len(),
            read_seconds: read.as_secs_f64(),
            verify_seconds: verify.as_secs_f64(),
            open_seconds: open.as_secs_f64(),
            run_seconds: runs.iter().map(|run| run.as_secs_f64()).collect(),
            job_seconds: working.as_secs_f64() / f64::from(self.runs + self.warmup),
            register_accesses_per_run: per_run(counted.registers),
            interrupts_per_run: per_run(counted.interrupts),
            bytes_moved_per_run: per_run(counted.bytes),
        };
        print(&report, &mut runs)?;
        if let Some(path) = &self.export_json {
            let text = serde_json::to_string_pretty(&report)
                .map_err(|error| Failure::Output(error.to_string()))?;
            gpureplay_tensor::write_atomic(path, text.as_bytes())
                .map_err(|error| Failure::Output(format!("{}: {error}", path.display())))?;
        }
        Ok(Outcome::Done)
    }
}

fn print(report: &Report, runs: &mut [Duration]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    runs.sort_unstable();
    let at = |percent: usize| {
        let index = (runs.len() - 1) * percent / 100;
        text::duration(runs.get(index).copied().unwrap_or_default())
    };
    let seconds = |value: f64| text::duration(Duration::from_secs_f64(value));
    writeln!(out, "{} on {}", report.recording, report.device)?;
    writeln!(
        out,
        "  loading   {} reading {}, {} verifying, {} set-up",
        seconds(report.read_seconds),
        text::bytes(report.file_bytes as u64),
        seconds(report.verify_seconds),
        seconds(report.open_seconds)
    )?;
    writeln!(
        out,
        "  run       {} (fastest {}, 90 % within {}, 99 % within {}, slowest {}), {} runs",
        at(50),
        at(0),
        at(90),
        at(99),
        at(100),
        runs.len()
    )?;
    writeln!(
        out,
        "  in jobs   {} per run, mean",
        seconds(report.job_seconds)
    )?;
    writeln!(
        out,
        "  per run   {:.0} register accesses, {:.0} interrupts, {} moved",
        report.register_accesses_per_run,
        report.interrupts_per_run,
        text::bytes(report.bytes_moved_per_run as u64)
    )?;
    Ok(())
}
