// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay bench`: load once, run many times, say where the time goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Files, HeldSignals, Phase, Recording, Session, Timing, escaped};
use serde::Serialize;

use crate::common::arguments::{positive_number, whole_number};
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::job_watch::JobWatch;
use crate::common::job_watch::WatchOptions;
use crate::common::load_speed::Loading;
use crate::common::model_options::ModelOptions;
use crate::common::statistics::Percentiles;
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay bench recordings/acl-gemm-g52
  gpureplay bench recordings/acl-gemm-g52 --warmup 3 --runs 100 --export-json times.json
  gpureplay bench recordings/digits-g52 --jobs layer:conv2 --per-job
      how long each job of a layer takes, chain by chain";

/// Load a recording once, run it many times, and say where the time goes
///
/// Loading is everything before the first run: reading, verifying, reset,
/// power, memory and set-up. Reading and verifying are done again some times, in turns with reading alone. A run is made of restoring
/// what the run before changed, binding inputs, the device (each chain until its interrupt), reading outputs, and what the engine itself needs.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// File for an input; the manifest's first case without any
    #[arg(
        short,
        long = "input",
        visible_alias = "bind",
        value_name = "[NAME=]FILE"
    )]
    inputs: Vec<TensorFile>,
    /// Runs that are not counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole_number::<u32>)]
    warmup: u32,
    /// Runs that are counted
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive_number)]
    runs: u32,
    #[arg(
        short,
        long,
        value_name = "DEVICE",
        default_value = "model",
        help = format!("What to replay on: {}", Choice::names()),
        long_help = format!("What to replay on:\n{}", Choice::explained()),
    )]
    device: Choice,
    /// Also write the numbers, with every single run, to a file
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print the numbers, with every single run, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    watch: WatchOptions,
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
    loading: Loading,
    open_seconds: f64,
    percentiles: BTreeMap<&'static str, Percentiles>,
    run_seconds: Vec<f64>,
    phase_seconds: BTreeMap<&'static str, Vec<f64>>,
    job_seconds: Option<f64>,
    register_accesses_per_run: f64,
    interrupts_per_run: f64,
    bytes_moved_per_run: f64,
    /// The jobs and how long each took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_job: Option<gpureplay_jobs::Report>,
}

/// What the runs of a session took.
struct Measured {
    /// Time until the first run could start.
    open: Duration,
    /// Seconds of each counted run.
    runs: Vec<f64>,
    /// What each of them is made of.
    counted: Vec<Timing>,
}

impl Bench {
    pub(crate) fn execute(&self) -> Result {
        let started = Instant::now();
        let files = Files::read(&self.recording)?;
        let read = started.elapsed();
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads(&self.recording);
        destinations.reads_recording(&files);
        for input in &self.inputs {
            destinations.reads(&input.path);
        }
        if let Some(path) = &self.export_json {
            destinations.claim(path)?;
        }
        let started = Instant::now();
        let recording = Recording::from_files(files)?;
        let verify = started.elapsed();
        let files = recording.files();
        let loading = Loading::measure(&files.file())?;
        let mut watch = JobWatch::new(&self.watch, None, &recording, &self.device)?;
        if let Some(watch) = &watch {
            watch.claim(&mut destinations)?;
        }
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and another result both want standard output; one of them is enough".into(),
            ));
        }
        // Signals wait from before the device is opened until it is closed.
        let _held = HeldSignals::if_needed(matches!(self.device, Choice::DevMem(_)));
        let id = recording.verified().recording().gpu_id();
        let observer = watch.as_ref().and_then(JobWatch::observer);
        let device = Device::open_observed(&self.device, id, self.model.into(), observer)?;
        let mut session = Session::on(recording.clone(), device);
        bind_or_take_case(&self.inputs, &mut session)?;
        let Measured {
            open,
            runs,
            counted,
        } = self.measure(&mut session, watch.as_mut())?;

        let per_job = match &mut watch {
            Some(watch) => {
                let report = watch.report(&mut session, self.warmup);
                watch.write(&report, &destinations, !self.json)?;
                Some(report).filter(|_| self.watch.per_job())
            }
            None => None,
        };
        let working = session.working();
        let per_run = |count: fn(&Timing) -> u64| {
            let sum: u64 = counted.iter().map(count).sum();
            sum as f64 / f64::from(self.runs)
        };
        let mut percentiles = BTreeMap::from([("run", Percentiles::of(&runs))]);
        let mut phase_seconds = BTreeMap::new();
        for phase in Phase::ALL {
            let times = counted.iter().map(|run| run.phase(phase).as_secs_f64());
            let times: Vec<f64> = times.collect();
            percentiles.insert(phase.name(), Percentiles::of(&times));
            phase_seconds.insert(phase.name(), times);
        }
        let report = Report {
            recording: files.name(),
            device: session
                .device()
                .map_or("", |device| device.description())
                .to_owned(),
            file_bytes: files.bytes.len(),
            read_seconds: read.as_secs_f64(),
            verify_seconds: verify.as_secs_f64(),
            loading,
            open_seconds: open.as_secs_f64(),
            percentiles,
            run_seconds: runs,
            phase_seconds,
            job_seconds: working
                .map(|time| time.as_secs_f64() / f64::from(self.runs + self.warmup)),
            register_accesses_per_run: per_run(|run| run.registers),
            interrupts_per_run: per_run(|run| run.interrupts),
            bytes_moved_per_run: per_run(|run| run.bytes),
            per_job,
        };
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::Output(error.to_string()))?;
        match self.json {
            true => writeln!(terminal::stdout(), "{text}")?,
            false => print(
                &mut terminal::report(destinations.takes_standard_output()),
                &report,
            )?,
        }
        if let Some(path) = &self.export_json {
            destinations.write(path, (text + "\n").as_bytes())?;
        }
        Ok(Outcome::Done)
    }

    /// Loads the recording once and runs it as often as was asked for.
    fn measure(&self, session: &mut Session, mut watch: Option<&mut JobWatch>) -> Result<Measured> {
        if let Some(watch) = &watch {
            watch.begin(session);
        }
        let started = Instant::now();
        session.prepare()?;
        let mut measured = Measured {
            open: started.elapsed(),
            runs: Vec::new(),
            counted: Vec::new(),
        };
        let layers = 0..session.recording().layers().len();
        if let Some(watch) = &mut watch {
            watch.loaded(session, measured.open);
        }
        for _ in 0..self.warmup {
            session.run()?;
            if let Some(watch) = &mut watch {
                watch.ran(session, layers.clone(), false);
            }
        }
        for _ in 0..self.runs {
            session.run()?;
            if let Some(watch) = &mut watch {
                watch.ran(session, layers.clone(), true);
            }
            let timing = *session.timing();
            measured.runs.push(timing.run.as_secs_f64());
            measured.counted.push(timing);
        }
        session.close()?;
        Ok(measured)
    }
}

fn print(out: &mut impl Write, report: &Report) -> Result<()> {
    let seconds = |value: f64| text::duration(Duration::from_secs_f64(value));
    writeln!(out, "{} on {}", escaped(&report.recording), report.device)?;
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
        "  again     {} reading, {} with verifying: {:.0} % of the speed of reading",
        seconds(report.loading.read_seconds),
        seconds(report.loading.load_seconds),
        report.loading.speed() * 100.0
    )?;
    writeln!(
        out,
        "  {:9} {:>9} {:>9} {:>9}   of {} runs",
        "",
        "50 %",
        "90 %",
        "99 %",
        report.run_seconds.len()
    )?;
    for name in ["run"].into_iter().chain(Phase::ALL.map(Phase::name)) {
        if let Some(times) = report.percentiles.get(name) {
            writeln!(
                out,
                "  {name:9} {:>9} {:>9} {:>9}",
                seconds(times.p50),
                seconds(times.p90),
                seconds(times.p99)
            )?;
        }
    }
    writeln!(
        out,
        "  per run   {:.0} register accesses, {:.0} interrupts, {} moved",
        report.register_accesses_per_run,
        report.interrupts_per_run,
        text::bytes(report.bytes_moved_per_run as u64)
    )?;
    Ok(())
}
