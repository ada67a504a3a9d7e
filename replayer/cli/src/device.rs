// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a recording can be replayed on.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpureplay_core::Gpu;
use gpureplay_linux::{DevMem, Mode, Nano, OpenError, nano};
use gpureplay_on_model::OnModel;
use mali_model::{JobReport, Level, Log, Observer, PROFILES, Profile};
use mali_regs::GpuId;
use mali_regs::gpu::GPU_ID;

use crate::failure::Failure;
use crate::trace::Trace;

/// What `--device` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The GPU model; of the GPU that was recorded unless a name is given.
    Model(Option<String>),
    /// The nano driver.
    Nano(Mode),
    /// Registers through /dev/mem.
    DevMem,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        match (kind, rest) {
            ("model", name) => Ok(Self::Model(name.map(str::to_owned))),
            ("nano", None | Some("guarded")) => Ok(Self::Nano(Mode::Guarded)),
            ("nano", Some("direct")) => Ok(Self::Nano(Mode::Direct)),
            ("devmem", None) => Ok(Self::DevMem),
            _ => Err(
                "devices are: model, model:GPU (for example model:g52), nano, nano:direct, devmem"
                    .into(),
            ),
        }
    }
}

/// Clauses that one chain may execute before the model terminates it: minutes, far beyond the largest layers of networks,
/// so that a shader that never ends is an error and not a hang.
const CLAUSE_BUDGET: u64 = 1 << 34;

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct ModelOptions {
    /// Host threads that the model uses [default: one per processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Show the model's messages on standard error: faults, then also resets and jobs (-vv), then everything (-vvv)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// An opened device.
pub(crate) struct Device {
    body: Body,
    jobs: Arc<JobCounter>,
    description: String,
}

enum Body {
    Model(Box<OnModel>),
    Nano(Nano),
    DevMem(DevMem),
}

/// Counts jobs as they end.
#[derive(Debug, Default)]
struct JobCounter {
    jobs: Arc<AtomicU64>,
    /// Keeps what jobs did, if someone asked for it.
    trace: Option<Arc<Trace>>,
}

impl Observer for JobCounter {
    fn job(&self, report: &JobReport) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        if let Some(trace) = &self.trace {
            trace.add(report);
        }
    }

    fn wants_kernels(&self) -> bool {
        self.trace.is_some()
    }
}

/// Prints the model's messages.
struct Messages(Level);

impl Log for Messages {
    fn level(&self) -> Level {
        self.0
    }
    fn write(&self, level: Level, message: std::fmt::Arguments<'_>) {
        eprintln!("model: {level}: {message}");
    }
}

impl Device {
    /// Opens a device for a recording of the GPU with this id.
    pub(crate) fn open(
        choice: &Choice,
        gpu_id: u32,
        options: ModelOptions,
    ) -> Result<Self, Failure> {
        Self::open_traced(choice, gpu_id, options, None)
    }

    /// Opens a device that keeps what each job did, which only the model can.
    pub(crate) fn open_traced(
        choice: &Choice,
        gpu_id: u32,
        options: ModelOptions,
        trace: Option<Arc<Trace>>,
    ) -> Result<Self, Failure> {
        let name = match choice {
            Choice::Model(name) => name,
            _ if trace.is_some() => {
                return Err(Failure::Usage(
                    "only the model can trace jobs; use --device model".into(),
                ));
            }
            Choice::Nano(mode) => {
                let nano = Nano::open(Path::new(nano::PATH), *mode).map_err(unusable)?;
                return Ok(Self::real(Body::Nano(nano), "nano driver"));
            }
            Choice::DevMem => {
                let memory = DevMem::open().map_err(unusable)?;
                return Ok(Self::real(Body::DevMem(memory), "/dev/mem"));
            }
        };
        let profile = match name {
            Some(name) => profile_named(name)?,
            None => profile_of(gpu_id)?,
        };
        let jobs = Arc::new(JobCounter {
            trace,
            ..JobCounter::default()
        });
        let mut model = mali_model::Options {
            observer: Some(jobs.clone()),
            clause_budget: CLAUSE_BUDGET,
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
        let gpu = OnModel::new(profile, model)
            .map_err(|error| Failure::Device(format!("memory for the model: {error}")))?;
        let description = format!("{}, model", profile.gpu_id);
        Ok(Self {
            body: Body::Model(Box::new(gpu)),
            jobs,
            description,
        })
    }

    fn real(mut body: Body, by: &str) -> Self {
        let id = match &mut body {
            Body::Model(gpu) => gpu.read32(GPU_ID),
            Body::Nano(gpu) => gpu.read32(GPU_ID),
            Body::DevMem(gpu) => gpu.read32(GPU_ID),
        };
        Self {
            body,
            jobs: Arc::default(),
            description: format!("{}, {by}", GpuId(id)),
        }
    }

    /// The device as the engine wants it.
    pub(crate) fn gpu(&mut self) -> &mut dyn Gpu {
        match &mut self.body {
            Body::Model(gpu) => gpu.as_mut(),
            Body::Nano(gpu) => gpu,
            Body::DevMem(gpu) => gpu,
        }
    }

    /// `Mali-G52 r0p0, model`.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Jobs that have ended so far; keeps counting.
    pub(crate) fn job_counter(&self) -> Arc<AtomicU64> {
        self.jobs.jobs.clone()
    }

    /// Time that the device has spent running jobs, where it can tell.
    pub(crate) fn working(&self) -> Duration {
        match &self.body {
            Body::Model(gpu) => gpu.working(),
            Body::Nano(_) | Body::DevMem(_) => Duration::ZERO,
        }
    }
}

fn unusable(error: OpenError) -> Failure {
    Failure::Device(format!(
        "{error}; `gpureplay doctor` shows what this machine offers"
    ))
}

fn profile_named(name: &str) -> Result<&'static Profile, Failure> {
    Profile::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        Failure::Usage(format!(
            "there is no model of {name}; there are: {}",
            names.join(", ")
        ))
    })
}

fn profile_of(gpu_id: u32) -> Result<&'static Profile, Failure> {
    let gpu = GpuId(gpu_id);
    Profile::by_product(gpu.product()).ok_or_else(|| {
        Failure::Device(format!(
            "the recording is for {gpu}, of which there is no model; choose another device with --device"
        ))
    })
}
