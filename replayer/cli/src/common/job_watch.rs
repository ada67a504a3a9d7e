// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--trace`, `--trace-lines` and `--per-job` of `run` and `bench`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gpureplay_jobs::measure::{Ended, Ran, Watch};
use gpureplay_jobs::{Jobs, Measured, Report, Timeline};
use gpureplay_library::device::Choice;
use gpureplay_library::values::is_standard_output;
use gpureplay_library::{Recording, Session};
use mali_model::Observer;

use crate::Result;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::job_options::JobOptions;
use crate::common::{job_tables, job_trace, terminal};

/// Options about what jobs did.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WatchOptions {
    #[command(flatten)]
    jobs: JobOptions,
    /// Write a time line for ui.perfetto.dev: layers, chains, jobs and uploads; chrome://tracing reads it too; `-` prints a table of
    /// what each job did on the model
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print how long each job took, chain by chain, by the clock of this machine
    #[arg(long)]
    per_job: bool,
    /// With --per-job: also read the GPU's own counters of cycles and time around each chain, which takes some register accesses. The model's
    /// follow the host's clock
    #[arg(long, requires = "per_job")]
    gpu_counters: bool,
}

impl WatchOptions {
    pub(crate) fn given(&self) -> bool {
        self.trace.is_some() || self.per_job
    }

    pub(crate) fn per_job(&self) -> bool {
        self.per_job
    }
}

pub(crate) struct JobWatch {
    options: WatchOptions,
    lines: Option<PathBuf>,
    table: Jobs,
    selected: Vec<usize>,
    watch: Option<Arc<Watch>>,
    measured: Measured,
    /// Set-up first.
    ended: Vec<Ended>,
    load: Duration,
    counted: u32,
}

impl JobWatch {
    /// `lines`: file for one JSON object per job. `None` if nothing is asked for.
    pub(crate) fn new(
        options: &WatchOptions,
        lines: Option<&PathBuf>,
        recording: &Recording,
        device: &Choice,
    ) -> Result<Option<Self>> {
        if !options.given() && lines.is_none() {
            return match options.jobs.chosen() {
                true => Err(Failure::Usage(
                    "--jobs says which jobs --trace, --trace-lines or --per-job are about, and none of them is given; all jobs run, \
                     as each reads what others wrote. `gpureplay extract` makes a recording of one job"
                        .into(),
                )),
                false => Ok(None),
            };
        }
        let (table, selected) = options.jobs.select(recording)?;
        let prints = options.trace.as_deref().is_some_and(is_standard_output);
        let on_model = matches!(device, Choice::Model(_));
        if !on_model && (lines.is_some() || prints) {
            return Err(Failure::Usage(
                "only the model knows what each job did; --trace FILE.json and --per-job work on every device".into(),
            ));
        }
        let kernels = lines.is_some() || prints;
        let arrows = options.trace.is_some() && !prints;
        Ok(Some(Self {
            watch: on_model.then(|| Arc::new(Watch::with(kernels, arrows))),
            options: options.clone(),
            lines: lines.cloned(),
            table,
            selected,
            measured: Measured::default(),
            ended: Vec::new(),
            load: Duration::ZERO,
            counted: 0,
        }))
    }

    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.watch.clone().map(|watch| watch as Arc<dyn Observer>)
    }

    pub(crate) fn claim(&self, destinations: &mut Destinations) -> Result<()> {
        for path in self.options.trace.iter().chain(&self.lines) {
            destinations.claim(path)?;
        }
        Ok(())
    }

    /// Call before anything runs.
    pub(crate) fn begin(&self, session: &mut Session) {
        session.keep_transfers(self.options.trace.is_some());
        session.count_gpu(self.options.gpu_counters);
    }

    pub(crate) fn loaded(&mut self, session: &Session, took: Duration) {
        let ended = self.watch.as_ref().map(|it| it.take()).unwrap_or_default();
        let events = session.setup_events();
        self.measured.add(&self.table, &Ran::Setup, events, &ended);
        self.ended = ended;
        self.load = took;
    }

    /// The run may have loaded the recording.
    pub(crate) fn ran(&mut self, session: &Session, layers: std::ops::Range<usize>, counts: bool) {
        let ended = self.watch.as_ref().map(|it| it.take()).unwrap_or_default();
        if counts {
            let layers = Ran::Layers(layers);
            let events = session.events();
            self.measured.add(&self.table, &layers, events, &ended);
            self.counted += 1;
        }
        self.ended.extend(ended);
    }

    pub(crate) fn report(&mut self, session: &mut Session, warmup: u32) -> Report {
        let device = session
            .device()
            .map(|device| device.description().to_owned());
        let device = device.unwrap_or_default();
        let on_model = self.watch.is_some();
        self.measured
            .describe(&device, on_model, self.counted, warmup);
        Report::new(
            session.recording(),
            &self.table,
            &self.selected,
            self.options.jobs.text(),
            Some(&self.measured),
        )
    }

    pub(crate) fn write(
        &self,
        report: &Report,
        destinations: &Destinations,
        prints: bool,
    ) -> Result<()> {
        let numbered = self.ended.iter().enumerate();
        let meant = numbered.filter(|(index, _)| self.selected.binary_search(index).is_ok());
        let meant: Vec<_> = meant.map(|(index, ended)| (index, &ended.report)).collect();
        if let Some(path) = &self.lines {
            destinations.write(path, &job_trace::lines(&meant)?)?;
        }
        match &self.options.trace {
            Some(path) if is_standard_output(path) => job_trace::print(&meant)?,
            Some(path) => {
                let timeline = Timeline::new(report, &self.measured, self.load);
                let text = serde_json::to_vec(&timeline)
                    .map_err(|error| Failure::Output(error.to_string()))?;
                destinations.write(path, &text)?;
            }
            None => {}
        }
        if self.options.per_job && prints {
            let mut out = terminal::report(destinations.takes_standard_output());
            job_tables::durations(&mut out, report)?;
        }
        Ok(())
    }
}
