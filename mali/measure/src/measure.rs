// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures work of jobs and times of chains.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpureplay_library::{ChainSpan, Counters, Error, Events, Session, Transfer};
use mali_model::{Access, JobReport, Observer};

use gpureplay_host::statistics::Spread;

use crate::figures::{Measurement, Work};
use crate::table::{Chain, Jobs};

const PAGE: u64 = 4096;

/// Job that ended on the model.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The model's.
    pub report: JobReport,
    /// Empty unless the watch keeps them.
    pub pages_read: BTreeSet<u64>,
}

/// Job reports of a model opened with it.
#[derive(Debug, Default)]
pub struct Watch {
    jobs: Mutex<Vec<Ended>>,
    running: Mutex<BTreeSet<u64>>,
    kernels: bool,
    pages: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// With shaders or pages read; both cost time.
    pub fn with(kernels: bool, pages: bool) -> Self {
        Self {
            kernels,
            pages,
            ..Self::default()
        }
    }

    /// What ended since the last call.
    pub fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut *lock(&self.jobs))
    }
}

impl Observer for Watch {
    fn job(&self, report: &JobReport) {
        let pages_read = std::mem::take(&mut *lock(&self.running));
        lock(&self.jobs).push(Ended {
            report: report.clone(),
            pages_read,
        });
    }

    fn wants_kernels(&self) -> bool {
        self.kernels
    }

    fn wants_pages(&self) -> bool {
        self.pages
    }

    fn page(&self, va: u64, access: Access) {
        if access == Access::Read {
            lock(&self.running).insert(va - va % PAGE);
        }
    }
}

/// Which chains ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Those of set-up.
    Setup,
    /// By number from 0.
    Layers(Range<usize>),
}

impl Ran {
    fn includes(&self, chain: &Chain) -> bool {
        match (self, chain.layer) {
            (Self::Setup, layer) => layer.is_none(),
            (Self::Layers(range), Some(layer)) => range.contains(&layer),
            (Self::Layers(_), None) => false,
        }
    }
}

/// Times and work of chains and jobs.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How they were found.
    pub measurement: Measurement,
    /// By chain, seconds of each run.
    chains: BTreeMap<usize, Vec<f64>>,
    counters: BTreeMap<usize, Vec<Counters>>,
    /// By job, seconds of each run.
    jobs: BTreeMap<usize, Vec<f64>>,
    work: BTreeMap<usize, Work>,
    pages: BTreeMap<usize, BTreeSet<u64>>,
    /// In the last run. Set-up has its own clock.
    spans: BTreeMap<usize, ChainSpan>,
    transfers: [Vec<Transfer>; 2],
}

impl Measured {
    /// Time of a chain.
    pub fn chain(&self, number: usize) -> Option<Spread> {
        Spread::of(self.chains.get(&number)?)
    }

    /// GPU cycles and ticks of the system's counter, if read.
    pub fn counters(&self, number: usize) -> [Option<Spread>; 2] {
        let all = self.counters.get(&number).map_or(&[][..], Vec::as_slice);
        let spread = |of: fn(&Counters) -> u64| {
            let counts: Vec<f64> = all.iter().map(|it| of(it) as f64).collect();
            Spread::of(&counts)
        };
        [spread(|it| it.cycles), spread(|it| it.timestamp)]
    }

    /// Time of a job, where the device sees jobs.
    pub fn job(&self, index: usize) -> Option<Spread> {
        Spread::of(self.jobs.get(&index)?)
    }

    pub(crate) fn last_job(&self, index: usize) -> Option<f64> {
        self.jobs.get(&index)?.last().copied()
    }

    /// What a job did.
    pub fn work(&self, index: usize) -> Option<Work> {
        self.work.get(&index).cloned()
    }

    pub(crate) fn pages(&self, index: usize) -> Option<&BTreeSet<u64>> {
        self.pages.get(&index)
    }

    /// In the last run, or in set-up.
    pub fn span(&self, number: usize) -> Option<ChainSpan> {
        self.spans.get(&number).copied()
    }

    pub(crate) fn transfers(&self, setup: bool) -> &[Transfer] {
        &self.transfers[usize::from(!setup)]
    }

    /// Stops at chains unlike the recording's.
    pub fn add(&mut self, jobs: &Jobs, ran: &Ran, events: Events, ended: &[Ended]) {
        let mut ended = ended.iter();
        let chains = jobs.chains.iter().filter(|chain| ran.includes(chain));
        for (span, chain) in events.chains.iter().zip(chains) {
            if chain.head != span.head {
                break;
            }
            let seconds = span.duration.as_secs_f64();
            self.chains.entry(chain.number).or_default().push(seconds);
            if let Some(counters) = span.counters {
                let all = self.counters.entry(chain.number).or_default();
                all.push(counters);
            }
            self.spans.insert(chain.number, *span);
            for (index, job) in chain.jobs.clone().zip(ended.by_ref()) {
                let seconds = job.report.duration.as_secs_f64();
                self.jobs.entry(index).or_default().push(seconds);
                let counted = job.report.compute.as_ref().and_then(|it| it.statistics);
                if let Some(counted) = counted {
                    self.work.insert(index, Work::of(&counted));
                }
                self.pages.insert(index, job.pages_read.clone());
            }
        }
        self.transfers[usize::from(*ran != Ran::Setup)] = events.transfers;
    }

    /// Says how it was measured.
    pub fn describe(&mut self, device: &str, on_model: bool, runs: u32, warmup: u32) {
        self.measurement = Measurement {
            device: device.to_owned(),
            clock: "host".into(),
            work: on_model.then(|| "model".into()),
            runs,
            warmup,
        };
    }
}

/// `watch`: what the device was opened with, if that is the model.
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
    let ended = || watch.map(Watch::take).unwrap_or_default();
    session.prepare()?;
    measured.add(jobs, &Ran::Setup, session.setup_events(), &ended());
    let layers = Ran::Layers(0..jobs.layers.len());
    for run in 0..warmup.saturating_add(runs) {
        session.run()?;
        let jobs_ended = ended();
        if run >= warmup {
            measured.add(jobs, &layers, session.events(), &jobs_ended);
        }
    }
    let device = session
        .device()
        .map(|device| device.description().to_owned());
    measured.describe(&device.unwrap_or_default(), watch.is_some(), runs, warmup);
    Ok(measured)
}
