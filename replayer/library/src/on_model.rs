// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model as a device (feature `model`).

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpureplay_core::Gpu;
use gpureplay_host::Lines;
use gpureplay_on_model::{OnModel, OnStreams};
use mali_facts::registers::GpuId;
use mali_facts::{Profile, STREAM_GPUS, StreamGpu};
use mali_model::probe::Analyser;
use mali_model::{Dispatch, JobReport, Level, Log};

pub use mali_model::Observer;

use crate::error::Error;
use crate::model_options::ModelOptions;
use crate::names::MAX_THREADS;

/// Clauses that one chain may execute before the model terminates it: minutes, far beyond the largest layers of networks,
/// so that a shader that never ends is an error and not a hang.
const CLAUSE_BUDGET: u64 = 1 << 34;

/// A model that is open.
pub(crate) struct Model {
    gpu: Body,
    /// Jobs that have ended.
    pub(crate) jobs: Arc<AtomicU64>,
    /// `Mali-G52 r0p0, model`.
    pub(crate) description: String,
}

/// A GPU of either family.
enum Body {
    Chains(Box<OnModel>),
    Streams(Box<OnStreams>),
}

/// What is modelled.
enum Kind {
    Chains(&'static Profile),
    Streams(&'static StreamGpu),
}

impl Model {
    /// The model of a GPU by its name, or of the one with this id.
    pub(crate) fn open(
        name: Option<&str>,
        gpu_id: u32,
        options: ModelOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, Error> {
        let kind = match name {
            Some(name) => kind_named(name)?,
            None => kind_of(gpu_id)?,
        };
        if let Some(threads) = options.threads
            && !(1..=MAX_THREADS).contains(&threads)
        {
            return Err(Error::Threads(threads));
        }
        let counter = Arc::new(JobCounter {
            observer,
            ..JobCounter::default()
        });
        let jobs = counter.jobs.clone();
        let mut model = mali_model::Options {
            observer: Some(counter),
            clause_budget: CLAUSE_BUDGET,
            work_limit: options.work_limit,
            ..Default::default()
        };
        model.threads = options.threads.unwrap_or(0);
        let level = match options.verbose {
            0 => None,
            1 => Some(Level::Warning),
            2 => Some(Level::Info),
            _ => Some(Level::Debug),
        };
        if let Some(level) = level {
            model.log = Arc::new(Messages(level));
        }
        let (gpu, id) = match kind {
            Kind::Chains(profile) => (
                OnModel::new(profile, model).map(|gpu| Body::Chains(Box::new(gpu))),
                profile.gpu_id,
            ),
            Kind::Streams(gpu) => (
                OnStreams::new(gpu, model).map(|gpu| Body::Streams(Box::new(gpu))),
                gpu.profile.gpu_id,
            ),
        };
        let gpu = gpu.map_err(|error| Error::NoDevice(format!("memory for the model: {error}")))?;
        Ok(Self {
            gpu,
            jobs,
            description: format!("{id}, model"),
        })
    }

    pub(crate) fn get_ref(&self) -> &(dyn Gpu + Send + 'static) {
        match &self.gpu {
            Body::Chains(gpu) => gpu.as_ref(),
            Body::Streams(gpu) => gpu.as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut (dyn Gpu + Send + 'static) {
        match &mut self.gpu {
            Body::Chains(gpu) => gpu.as_mut(),
            Body::Streams(gpu) => gpu.as_mut(),
        }
    }

    pub(crate) fn into_inner(self) -> Box<dyn Gpu + Send> {
        match self.gpu {
            Body::Chains(gpu) => gpu,
            Body::Streams(gpu) => gpu,
        }
    }

    pub(crate) fn renew_work(&mut self) {
        match &mut self.gpu {
            Body::Chains(gpu) => gpu.renew_work(),
            Body::Streams(gpu) => gpu.renew_work(),
        }
    }

    pub(crate) fn working(&self) -> Duration {
        match &self.gpu {
            Body::Chains(gpu) => gpu.working(),
            Body::Streams(gpu) => gpu.working(),
        }
    }
}

/// Counts jobs as they end.
#[derive(Default)]
struct JobCounter {
    jobs: Arc<AtomicU64>,
    /// Someone else who wants to know.
    observer: Option<Arc<dyn Observer>>,
}

impl Observer for JobCounter {
    fn job(&self, report: &JobReport) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        if let Some(observer) = &self.observer {
            observer.job(report);
        }
    }

    fn wants_kernels(&self) -> bool {
        self.observer.as_ref().is_some_and(|o| o.wants_kernels())
    }

    fn wants_pages(&self) -> bool {
        self.observer.as_ref().is_some_and(|o| o.wants_pages())
    }

    fn page(&self, va: u64, access: mali_model::Access) {
        if let Some(observer) = &self.observer {
            observer.page(va, access);
        }
    }

    fn analyser(&self, address: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        self.observer.as_ref()?.analyser(address, dispatch)
    }

    fn wrote(&self, va: u64, bytes: u64) {
        if let Some(observer) = &self.observer {
            observer.wrote(va, bytes);
        }
    }
}

/// Prints the model's messages.
struct Messages(Level);

impl Log for Messages {
    fn level(&self) -> Level {
        self.0
    }
    fn write(&self, level: Level, message: std::fmt::Arguments<'_>) {
        // This error cannot be reported anywhere.
        let _ = writeln!(
            Lines::new(std::io::stderr().lock()),
            "model: {level}: {message}"
        );
    }
}

fn kind_named(name: &str) -> Result<Kind, Error> {
    let chains = Profile::by_name(name).map(Kind::Chains);
    let found = chains.or_else(|| StreamGpu::by_name(name).map(Kind::Streams));
    found.ok_or_else(|| {
        let names: Vec<&str> = Profile::names().chain(StreamGpu::names()).collect();
        Error::NoModel(format!(
            "there is no model of {name}; there are: {}",
            names.join(", ")
        ))
    })
}

fn kind_of(gpu_id: u32) -> Result<Kind, Error> {
    let gpu = GpuId(gpu_id);
    let product = |it: &&StreamGpu| it.profile.gpu_id.product() == gpu.product();
    let streams = || STREAM_GPUS.iter().find(product).map(Kind::Streams);
    let chains = Profile::by_product(gpu.product()).map(Kind::Chains);
    chains
        .or_else(streams)
        .ok_or_else(|| Error::NoDevice(format!("the recording is for {gpu}, which has no model")))
}
