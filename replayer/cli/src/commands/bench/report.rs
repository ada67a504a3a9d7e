// SPDX-License-Identifier: MIT OR Apache-2.0
//! A benchmark's report as JSON and as text.

use std::collections::BTreeMap;
use std::io::Write;

use gpureplay_host::statistics::{Percentiles, Summary};
use gpureplay_library::{Phase, escaped};
use serde::Serialize;

use super::compare::Comparison;
use crate::common::load_speed::Loading;
use crate::{Result, text};

/// Numbers of a benchmark; times in seconds.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Report {
    pub(super) recording: String,
    pub(super) device: String,
    pub(super) file_bytes: usize,
    pub(super) read_seconds: f64,
    pub(super) verify_seconds: f64,
    pub(super) loading: Loading,
    pub(super) open_seconds: f64,
    /// Mean, deviation, extremes and outliers of the whole run and of each phase.
    pub(super) summaries: BTreeMap<&'static str, Summary>,
    pub(super) percentiles: BTreeMap<&'static str, Percentiles>,
    /// Ctrl-C came before all runs were made.
    pub(super) interrupted: bool,
    /// How it differs from a saved report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<Comparison>,
    pub(super) run_seconds: Vec<f64>,
    pub(super) phase_seconds: BTreeMap<&'static str, Vec<f64>>,
    pub(super) job_seconds: Option<f64>,
    pub(super) register_accesses_per_run: f64,
    pub(super) interrupts_per_run: f64,
    pub(super) bytes_moved_per_run: f64,
    /// The jobs and how long each took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_job: Option<gpureplay_jobs::Report>,
}

impl Report {
    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{} on {}", escaped(&self.recording), self.device)?;
        writeln!(
            out,
            "  loading   {} reading {}, {} verifying, {} set-up",
            text::seconds(self.read_seconds),
            text::bytes(self.file_bytes as u64),
            text::seconds(self.verify_seconds),
            text::seconds(self.open_seconds)
        )?;
        writeln!(
            out,
            "  again     {} reading, {} with verifying: {:.0} % of the speed of reading",
            text::seconds(self.loading.read_seconds),
            text::seconds(self.loading.load_seconds),
            self.loading.speed() * 100.0
        )?;
        self.print_times(out)?;
        writeln!(
            out,
            "  per run   {:.0} register accesses, {:.0} interrupts, {} moved",
            self.register_accesses_per_run,
            self.interrupts_per_run,
            text::bytes(self.bytes_moved_per_run as u64)
        )?;
        let outliers = self.summaries.get("run").map_or(0, |run| run.outliers);
        if outliers > 0 {
            let of = text::count(self.run_seconds.len() as u64, "run");
            writeln!(
                out,
                "  note      {outliers} of {of} took unusually short or long (1.5 interquartile ranges from the quartiles); \
                 is the machine quiet?"
            )?;
        }
        if self.interrupted {
            writeln!(
                out,
                "  note      interrupted: these are the runs until then"
            )?;
        }
        match &self.comparison {
            Some(comparison) => comparison.print(out),
            None => Ok(()),
        }
    }

    fn print_times(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "  {:9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}   of {}",
            "",
            "mean",
            "deviation",
            "least",
            "50 %",
            "90 %",
            "99 %",
            "most",
            text::count(self.run_seconds.len() as u64, "run")
        )?;
        for name in ["run"].into_iter().chain(Phase::ALL.map(Phase::name)) {
            let (Some(times), Some(all)) = (self.percentiles.get(name), self.summaries.get(name))
            else {
                continue;
            };
            let deviation = (all.runs > 1).then_some(all.deviation);
            writeln!(
                out,
                "  {name:9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
                text::seconds(all.mean),
                or_dash(deviation),
                text::seconds(all.minimum),
                text::seconds(times.p50),
                or_dash(times.p90),
                or_dash(times.p99),
                text::seconds(all.maximum)
            )?;
        }
        Ok(())
    }
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".into(), text::seconds)
}
