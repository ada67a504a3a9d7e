// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay jobs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gpureplay_jobs::analysis::What;
use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::measure::{Watch, measure};
use gpureplay_jobs::{Jobs as Table, Measured, Report};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{HeldSignals, Recording, Session};
use mali_model::Observer;

use crate::Result;
use crate::common::arguments::{positive_number, whole_number};
use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::JobOptions;
use crate::common::job_order::{self, Sort, Sum};
use crate::common::job_tables;
use crate::common::model_options::ModelOptions;
use crate::common::page_options::{Format, PageOptions};
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

const EXAMPLES: &str = "\
Examples:
  gpureplay jobs recordings/lenet-g52
      every job: its layer, kernel, sizes, registers, work, and the time of its chain
  gpureplay jobs recordings/lenet-g52 --by-kernel
      one row for each shader
  gpureplay jobs recordings/lenet-g52 --by-kernel --sort work --top 5
      the five heaviest shaders, with their share of all instructions
  gpureplay jobs recordings/lenet-g52 --jobs layer:conv2
  gpureplay jobs recordings/lenet-g52 --jobs hash:b84c,0..3 --json
      jobs are chosen by number, /regular expression/, kernel:NAME, hash:98aa or layer:NAME
  gpureplay jobs recordings/lenet-g52 --runs 20 -o jobs.csv
  gpureplay jobs recordings/lenet-g52 --static
      what the file says; nothing runs
docs/kernels.md explains the columns, docs/reference/schemas/jobs.json describes the JSON.";

/// List jobs with size, work and time
///
/// The recording is run once, on the model with counts of what each job did. Times are those of the machine that replays, for each
/// chain; on the model they say how fast the model is, not the GPU.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Jobs {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    #[command(flatten)]
    jobs: JobOptions,
    /// One row for each shader instead of each job
    #[arg(long)]
    by_kernel: bool,
    /// Largest first: by instructions, memory lines that warps touch, bytes read, bytes written, or time
    #[arg(long, value_name = "BY", conflicts_with_all = ["html", "still"])]
    sort: Option<Sort>,
    /// Only the first N rows
    #[arg(long, value_name = "N", value_parser = positive_number, conflicts_with = "html")]
    top: Option<u32>,
    /// File for an input; the manifest's first case without any
    #[arg(short, long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<TensorFile>,
    /// What to run on: best, model, model:GPU, panfrost, kbase, nano or devmem; work is counted on the model only
    #[arg(short, long, value_name = "DEVICE", default_value = "model")]
    device: Choice,
    /// Runs that are not counted
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u32>)]
    warmup: u32,
    /// Runs that are counted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive_number)]
    runs: u32,
    /// Run nothing: only what the file says
    #[arg(long = "static", conflicts_with_all = ["inputs", "device", "warmup", "runs"])]
    still: bool,
    /// Print as JSON
    #[arg(long, conflicts_with_all = ["csv", "html"])]
    json: bool,
    /// Print as comma-separated values
    #[arg(long, conflicts_with_all = ["html", "output"])]
    csv: bool,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    trust: TrustOptions,
}

impl Jobs {
    pub(crate) fn execute(&self) -> Result {
        let recording = Recording::open_trusted(&self.recording, &self.trust.read()?)?.apart()?;
        let formats = [Format::Csv, Format::Json];
        let (format, destinations) = self.page.claim(&recording, &formats)?;
        let (table, mut report) = self.report(&recording)?;
        if format == Some(Format::Html) {
            self.page.write(&destinations, &report, &table, None)?;
            return Ok(Outcome::Done);
        }
        if self.sort == Some(Sort::Lines) {
            let lines = self.lines(&recording, &table, &report)?;
            report.set_lines(&lines);
        }
        let sum = Sum::of(&report);
        let top = self
            .top
            .map(|top| usize::try_from(top).unwrap_or(usize::MAX));
        job_order::arrange(&mut report, self.sort, top);
        if let Some(format) = format {
            let mut file = Vec::new();
            match format {
                Format::Csv => job_tables::comma_separated(&mut file, &report, self.by_kernel)?,
                _ => job_tables::json(&mut file, &report)?,
            }
            self.page.write_text(&destinations, &file)?;
            return Ok(Outcome::Done);
        }
        let mut out = terminal::buffered_stdout();
        match (self.json, self.csv) {
            (true, _) => job_tables::json(&mut out, &report)?,
            (_, true) => job_tables::comma_separated(&mut out, &report, self.by_kernel)?,
            _ => job_tables::text(&mut out, &report, self.by_kernel, &sum)?,
        }
        Ok(Outcome::Done)
    }

    fn report(&self, recording: &Recording) -> Result<(Table, Report)> {
        let (table, selected) = self.jobs.select(recording)?;
        let measured = match self.still {
            true => None,
            false => Some(self.measure(recording, &table)?),
        };
        let report = Report::new(
            recording,
            &table,
            &selected,
            self.jobs.text(),
            measured.as_ref(),
        );
        Ok((table, report))
    }

    /// Counts memory lines in an untimed run.
    fn lines(
        &self,
        recording: &Recording,
        table: &Table,
        report: &Report,
    ) -> Result<BTreeMap<usize, u64>> {
        let what = What {
            lines: true,
            ..What::default()
        };
        let jobs: Vec<usize> = report.jobs.iter().map(|job| job.index).collect();
        let analysis = analyse(
            recording,
            table,
            &jobs,
            what,
            self.model.into(),
            |session| bind_or_take_case(&self.inputs, session),
        )?;
        if let Some(why) = analysis.ended_early {
            return Err(Failure::Device(format!(
                "the run that counts memory lines ended early: {why}"
            )));
        }
        let lines = analysis.jobs.iter().map(|job| (job.index, job.lines()));
        Ok(lines.collect())
    }

    fn measure(&self, recording: &Recording, table: &Table) -> Result<Measured> {
        let choice = self.device.resolved(recording);
        let _held = HeldSignals::if_needed(matches!(choice, Choice::DevMem(_)));
        let on_model = matches!(choice, Choice::Model(_));
        let watch = on_model.then(|| Arc::new(Watch::default()));
        let observer = watch.clone().map(|watch| watch as Arc<dyn Observer>);
        let id = recording.verified().recording().gpu_id();
        let mut device = Device::open_observed(&choice, id, self.model.into(), observer)?;
        let mut session = Session::on(recording.for_device(&mut device)?, device);
        bind_or_take_case(&self.inputs, &mut session)?;
        if let Some(missing) = session.missing().first() {
            return Err(Failure::Input(format!(
                "input {missing} has no value; add --input {missing}=FILE.npy, or --static for what the file alone says"
            )));
        }
        let measured = measure(
            &mut session,
            table,
            watch.as_deref(),
            self.warmup,
            self.runs,
        )?;
        session.close()?;
        Ok(measured)
    }
}
