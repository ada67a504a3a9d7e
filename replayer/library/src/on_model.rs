// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model as a device (feature `model`).

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpureplay_core::Gpu;
use gpureplay_host::Lines;
use gpureplay_on_model::OnModel;
use mali_drive::names;
use mali_model::probe::Analyser;
use mali_model::{Dispatch, JobReport, Level, Log, Product};

pub use mali_model::Observer;

use crate::error::Error;
use crate::model_options::ModelOptions;
use crate::names::MAX_THREADS;

/// Clauses per chain: minutes, far beyond the largest layers. Endless shaders fail.
const CLAUSE_BUDGET: u64 = 1 << 34;

pub(crate) struct Model {
    gpu: Box<OnModel>,
    pub(crate) jobs: Arc<AtomicU64>,
    pub(crate) description: String,
}

impl Model {
    pub(crate) fn open(
        name: Option<&str>,
        gpu_id: u32,
        options: ModelOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, Error> {
        let of = match name {
            Some(name) => Product::by_name(name).ok_or_else(|| {
                let names: Vec<&str> = Product::names().collect();
                let names = names.join(", ");
                Error::NoModel(format!("there is no model of {name}; there are: {names}"))
            })?,
            None => Product::by_id(gpu_id).ok_or_else(|| {
                let gpu = names::gpu(gpu_id);
                Error::NoDevice(format!("the recording is for {gpu}, which has no model"))
            })?,
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
        let gpu = OnModel::new(of, model);
        let gpu = gpu.map_err(|error| Error::NoDevice(format!("memory for the model: {error}")))?;
        Ok(Self {
            gpu: Box::new(gpu),
            jobs,
            description: format!("{}, model", of.profile().gpu_id),
        })
    }

    pub(crate) fn get_ref(&self) -> &(dyn Gpu + Send + 'static) {
        self.gpu.as_ref()
    }

    pub(crate) fn get_mut(&mut self) -> &mut (dyn Gpu + Send + 'static) {
        self.gpu.as_mut()
    }

    pub(crate) fn into_inner(self) -> Box<dyn Gpu + Send> {
        self.gpu
    }

    pub(crate) fn renew_work(&mut self) {
        self.gpu.renew_work();
    }

    pub(crate) fn working(&self) -> Duration {
        self.gpu.working()
    }
}

#[derive(Default)]
struct JobCounter {
    jobs: Arc<AtomicU64>,
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
