// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a recording and says what each job did and how long each chain took.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use gpureplay_library::{ChainSpan, Error, Session};
use mali_model::{JobReport, Observer};

use crate::report::{Measurement, Spread, Work};
use crate::table::Jobs;

/// Keeps the reports of the model's jobs, for a device that is opened with it.
#[derive(Debug, Default)]
pub struct Watch {
    jobs: Mutex<Vec<JobReport>>,
}

impl Watch {
    /// What ended since the last call.
    pub fn take(&self) -> Vec<JobReport> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *jobs)
    }
}

impl Observer for Watch {
    fn job(&self, report: &JobReport) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push(report.clone());
    }
}

/// Times and work of chains and jobs.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How they were found.
    pub measurement: Measurement,
    /// By number of the chain: seconds of each run.
    chains: BTreeMap<usize, Vec<f64>>,
    /// By number of the job: seconds of each run.
    jobs: BTreeMap<usize, Vec<f64>>,
    /// By number of the job.
    work: BTreeMap<usize, Work>,
    /// By number of the chain: when it began and ended in the last run. Set-up has a clock of its own.
    spans: BTreeMap<usize, ChainSpan>,
}

impl Measured {
    /// Time of a chain.
    pub fn chain(&self, number: usize) -> Option<Spread> {
        Spread::of(self.chains.get(&number)?)
    }

    /// Seconds of a chain in each run.
    pub fn chain_runs(&self, number: usize) -> &[f64] {
        self.chains.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Time of a job, where the device sees jobs.
    pub fn job(&self, index: usize) -> Option<Spread> {
        Spread::of(self.jobs.get(&index)?)
    }

    /// What a job did.
    pub fn work(&self, index: usize) -> Option<Work> {
        self.work.get(&index).cloned()
    }

    /// When a chain began and ended in the last run, or in set-up.
    pub fn span(&self, number: usize) -> Option<ChainSpan> {
        self.spans.get(&number).copied()
    }

    /// Takes the chains of set-up from a session that has loaded its recording, or those of its last run.
    pub fn add(
        &mut self,
        jobs: &Jobs,
        setup: bool,
        spans: &[ChainSpan],
        reports: &[JobReport],
        counts: bool,
    ) {
        let mut reports = reports.iter();
        // Layers that were left out have no spans: the heads say which chains these are.
        let chains = jobs.chains.iter();
        let mut chains = chains.filter(|chain| chain.layer.is_none() == setup);
        for span in spans {
            let Some(chain) = chains.by_ref().find(|chain| chain.head == span.head) else {
                return;
            };
            if counts {
                let seconds = span.duration.as_secs_f64();
                self.chains.entry(chain.number).or_default().push(seconds);
                self.spans.insert(chain.number, *span);
            }
            for (index, report) in chain.jobs.clone().zip(reports.by_ref()) {
                if !counts {
                    continue;
                }
                let seconds = report.duration.as_secs_f64();
                self.jobs.entry(index).or_default().push(seconds);
                let counted = report.compute.as_ref().and_then(|it| it.statistics);
                if let Some(counted) = counted {
                    self.work.insert(index, Work::of(&counted));
                }
            }
        }
    }
}

/// Runs a session so many times. `watch`: what its device was opened with, if that is the model.
///
/// # Errors
/// As for [`Session::run`].
pub fn measure(
    session: &mut Session,
    jobs: &Jobs,
    watch: Option<&Watch>,
    warmup: u32,
    runs: u32,
) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    let reports = || watch.map(Watch::take).unwrap_or_default();
    session.prepare()?;
    measured.add(jobs, true, &session.setup_chains(), &reports(), true);
    for run in 0..warmup.saturating_add(runs) {
        session.run()?;
        let counts = run >= warmup;
        measured.add(jobs, false, &session.chains(), &reports(), counts);
    }
    let device = session.device();
    measured.measurement = Measurement {
        device: device.map_or_else(String::new, |device| device.description().to_owned()),
        clock: "host".into(),
        work: watch.map(|_| "model".into()),
        runs,
        warmup,
    };
    Ok(measured)
}
