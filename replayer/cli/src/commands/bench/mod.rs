// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay bench`.

mod compare;
pub(crate) mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use gpureplay_host::statistics::{Percentiles, Summary};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Files, HeldSignals, Phase, Recording, Session, Timing};

use compare::Saved;
use report::Report;

use crate::Result;
use crate::common::arguments::{positive_number, whole_number};
use crate::common::destinations::{Destinations, Force};
use crate::common::device_option::DeviceOption;
use crate::common::failure::{Failure, Outcome};
use crate::common::interrupt::Interrupt;
use crate::common::job_watch::JobWatch;
use crate::common::job_watch::WatchOptions;
use crate::common::load_speed::Loading;
use crate::common::model_options::ModelOptions;
use crate::common::progress::Progress;
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;

const EXAMPLES: &str = "\
Examples:
  gpureplay bench recordings/acl-gemm-g52
  gpureplay bench recordings/acl-gemm-g52 --warmup 3 --runs 100 -o times.json
  gpureplay bench recordings/acl-gemm-g52 --duration 10 --compare times.json
  gpureplay bench recordings/digits-g52 --jobs layer:conv2 --per-job
      how long each job of a layer takes, chain by chain";

/// Time many runs
///
/// Loading is everything before the first run: reading, verifying, reset,
/// power, memory and set-up. Reading and verifying are done again some times, in turns with reading alone. A run restores what the run before changed, binds inputs, waits for the device (each chain until its interrupt), and reads outputs.
///
/// Ctrl-C ends the runs and reports those that were made; a second one ends the command.
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
    /// Run until this time is over, at least once, instead of a number of times
    #[arg(long, value_name = "SECONDS", conflicts_with = "runs", value_parser = seconds)]
    duration: Option<Duration>,
    /// Say how the times differ from those that --output has saved
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    on: DeviceOption,
    /// Also write the numbers, with every single run, to a file
    #[arg(short, long, alias = "export-json", value_name = "FILE.json")]
    output: Option<PathBuf>,
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

struct Measured {
    open: Duration,
    /// Seconds.
    runs: Vec<f64>,
    counted: Vec<Timing>,
    warmed: u32,
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
        if let Some(path) = &self.compare {
            destinations.reads(path);
        }
        if let Some(path) = &self.output {
            destinations.claim(path)?;
        }
        let saved = self.compare.as_deref().map(Saved::read).transpose()?;
        let interrupt = Interrupt::watch();
        let started = Instant::now();
        let recording = Recording::from_files(files)?;
        let verify = started.elapsed();
        let recording = match self.watch.given() {
            true => recording.apart()?,
            false => recording,
        };
        self.on
            .choose(&recording, self.watch.given() || self.model.given());
        let files = recording.files();
        let loading = Loading::measure(&files.file())?;
        let mut watch = JobWatch::new(&self.watch, None, &recording, self.on.device())?;
        if let Some(watch) = &watch {
            watch.claim(&mut destinations)?;
        }
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and another result both want standard output; one of them is enough".into(),
            ));
        }
        // From before the device is opened until it is closed.
        let _held = HeldSignals::if_needed(matches!(self.on.device(), Choice::DevMem(_)));
        let id = recording.verified().recording().gpu_id();
        let observer = watch.as_ref().and_then(JobWatch::observer);
        let mut device = Device::open_observed(self.on.device(), id, self.model.into(), observer)?;
        let mut session = Session::on(recording.for_device(&mut device)?, device);
        bind_or_take_case(&self.inputs, &mut session)?;
        let Measured {
            open,
            runs,
            counted,
            warmed,
        } = self.measure(&mut session, watch.as_mut(), &interrupt)?;

        let per_job = match &mut watch {
            Some(watch) => {
                let report = watch.report(&mut session, warmed);
                watch.write(&report, &destinations, !self.json)?;
                Some(report).filter(|_| self.watch.per_job())
            }
            None => None,
        };
        let working = session.working();
        let per_run = |count: fn(&Timing) -> u64| {
            let sum: u64 = counted.iter().map(count).sum();
            sum as f64 / counted.len() as f64
        };
        let mut percentiles = BTreeMap::from([("run", Percentiles::of(&runs))]);
        let mut summaries = BTreeMap::from([("run", Summary::of(&runs))]);
        let mut phase_seconds = BTreeMap::new();
        for phase in Phase::ALL {
            let times = counted.iter().map(|run| run.phase(phase).as_secs_f64());
            let times: Vec<f64> = times.collect();
            percentiles.insert(phase.name(), Percentiles::of(&times));
            summaries.insert(phase.name(), Summary::of(&times));
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
            comparison: saved.map(|saved| saved.compared_with(&summaries)),
            interrupted: interrupt.came(),
            summaries,
            percentiles,
            run_seconds: runs,
            phase_seconds,
            job_seconds: working
                .map(|time| time.as_secs_f64() / (counted.len() as f64 + f64::from(warmed))),
            register_accesses_per_run: per_run(|run| run.registers),
            interrupts_per_run: per_run(|run| run.interrupts),
            bytes_moved_per_run: per_run(|run| run.bytes),
            per_job,
        };
        match self.json {
            true => terminal::json(&mut terminal::stdout(), &report)?,
            false => report.print(&mut terminal::report(destinations.takes_standard_output()))?,
        }
        if let Some(path) = &self.output {
            let mut text = Vec::new();
            terminal::json(&mut text, &report)?;
            destinations.write(path, &text)?;
        }
        Ok(Outcome::Done)
    }

    fn measure(
        &self,
        session: &mut Session,
        mut watch: Option<&mut JobWatch>,
        interrupt: &Interrupt,
    ) -> Result<Measured> {
        if let Some(watch) = &watch {
            watch.begin(session);
        }
        let started = Instant::now();
        session.prepare()?;
        let mut measured = Measured {
            open: started.elapsed(),
            runs: Vec::new(),
            counted: Vec::new(),
            warmed: 0,
        };
        let layers = 0..session.recording().layers().len();
        if let Some(watch) = &mut watch {
            watch.loaded(session, measured.open);
        }
        let done = Arc::new(AtomicU64::new(0));
        let total = match self.duration {
            None => Some(u64::from(self.warmup) + u64::from(self.runs)),
            Some(_) => None,
        };
        let _progress = Progress::start("measuring", done.clone(), total, "runs");
        let mut run = |session: &mut Session, counts: bool| -> Result<()> {
            session.run()?;
            if let Some(watch) = &mut watch {
                watch.ran(session, layers.clone(), counts);
            }
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        while measured.warmed < self.warmup && !interrupt.came() {
            run(session, false)?;
            measured.warmed += 1;
        }
        let started = Instant::now();
        let enough = |runs: usize| match self.duration {
            Some(duration) => runs > 0 && started.elapsed() >= duration,
            None => runs as u64 >= u64::from(self.runs),
        };
        while !enough(measured.runs.len()) && !interrupt.came() {
            run(session, true)?;
            let timing = *session.timing();
            measured.runs.push(timing.run.as_secs_f64());
            measured.counted.push(timing);
        }
        session.close()?;
        match measured.runs.is_empty() {
            true => Err(Failure::Interrupted),
            false => Ok(measured),
        }
    }
}

/// Above 0, up to a week.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    const WEEK: f64 = 7.0 * 24.0 * 3600.0;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= WEEK => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, more than 0 and at most a week".into()),
    }
}
