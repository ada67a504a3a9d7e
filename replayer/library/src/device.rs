// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a recording can be replayed on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpureplay_core::middleware::{FaultKind, Faulty};
use gpureplay_core::{ErrorKind, Gpu, NO_ACTION, ReplayError, Wrapper};
use gpureplay_format::Recording;
use gpureplay_linux::{DevMem, Nano, nano};
use gpureplay_on_model::OnModel;
use mali_model::probe::Analyser;
use mali_model::{Dispatch, JobReport, Level, Log, Observer, Profile, UsedUp};
use mali_regs::GpuId;
use mali_regs::gpu::GPU_ID;

pub use crate::choice::{Choice, KINDS, Kind};
use crate::error::Error;

/// Clauses that one chain may execute before the model terminates it: minutes, far beyond the largest layers of networks,
/// so that a shader that never ends is an error and not a hang.
const CLAUSE_BUDGET: u64 = 1 << 34;

pub use crate::names::MAX_THREADS;

/// Options of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Host threads that the model uses, 1 to [`MAX_THREADS`]; one per processor if not given.
    pub threads: Option<usize>,
    /// Messages on standard error: 0 none, 1 faults, 2 also resets and jobs, 3 everything.
    pub verbose: u8,
    /// What all jobs of a run together may do, in clauses; [`gpureplay_on_model::WORK_LIMIT`] and [`gpureplay_on_model::WORK_PER_BYTE`] if not given.
    pub work_limit: Option<u64>,
}

/// An opened device.
pub struct Device {
    body: Body,
    /// What the caller says of a device of its own, see [`Device::writes_to_process`].
    in_process: bool,
    jobs: Arc<JobCounter>,
    description: String,
}

enum Body {
    Model(Box<OnModel>),
    Nano(Nano),
    DevMem(DevMem),
    Other(Box<dyn Gpu + Send>),
    Disturbed(Box<Faulty<Device>>),
}

/// A fault that is made on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This kind at the first call from this number on that it can disturb.
    At(FaultKind, u64),
    /// Kind and call follow from a number.
    Seed(u64),
}

impl Fault {
    /// Calls among which a seed chooses: a run of digits, all of it one chain, makes 198 and must still meet the fault.
    const SEEDED_CALLS: u64 = 150;

    /// A device that has this fault.
    pub fn on<G: Gpu>(self, gpu: G) -> Faulty<G> {
        match self {
            Self::At(kind, at) => Faulty::new(gpu, kind, at),
            Self::Seed(seed) => Faulty::seeded(gpu, seed, Self::SEEDED_CALLS),
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
        eprintln!("model: {level}: {message}");
    }
}

impl Device {
    /// Opens a device for a recording of the GPU with this id.
    ///
    /// # Errors
    /// There is no such device, or it cannot be used.
    pub fn open(choice: &Choice, gpu_id: u32, options: ModelOptions) -> Result<Self, Error> {
        Self::open_observed(choice, gpu_id, options, None)
    }

    /// Opens a device that tells an observer of each job, which only the model can.
    ///
    /// # Errors
    /// As for [`Device::open`], or an observer was given for another device than the model.
    pub fn open_observed(
        choice: &Choice,
        gpu_id: u32,
        options: ModelOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, Error> {
        let name = match choice {
            Choice::Model(name) => name,
            Choice::Nano(_) | Choice::DevMem(_) if observer.is_some() => {
                return Err(Error::NoModel("only the model can trace jobs".into()));
            }
            Choice::Nano(mode) => {
                let nano = Nano::open(Path::new(nano::PATH), *mode)?;
                return Ok(Self::real(Body::Nano(nano), "nano driver"));
            }
            Choice::Optee => {
                return Err(Error::SecureWorld(
                    "it runs whole recordings and tells nothing of what happens inside",
                ));
            }
            Choice::DevMem(board) => {
                let memory = DevMem::open(board.as_deref())?;
                return Ok(Self::real(Body::DevMem(memory), "/dev/mem"));
            }
        };
        let profile = match name {
            Some(name) => profile_named(name)?,
            None => profile_of(gpu_id)?,
        };
        if let Some(threads) = options.threads
            && !(1..=MAX_THREADS).contains(&threads)
        {
            return Err(Error::Threads(threads));
        }
        let jobs = Arc::new(JobCounter {
            observer,
            ..JobCounter::default()
        });
        let mut model = mali_model::Options {
            observer: Some(jobs.clone()),
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
        let gpu = OnModel::new(profile, model)
            .map_err(|error| Error::NoDevice(format!("memory for the model: {error}")))?;
        let description = format!("{}, model", profile.gpu_id);
        Ok(Self {
            in_process: false,
            body: Body::Model(Box::new(gpu)),
            jobs,
            description,
        })
    }

    fn real(body: Body, by: &str) -> Self {
        let mut device = Self {
            body,
            in_process: false,
            jobs: Arc::default(),
            description: String::new(),
        };
        let id = device.get_mut().read32(GPU_ID);
        device.description = format!("{}, {by}", GpuId(id));
        device
    }

    /// Says how large the recording is that will run: a model without a limit of its own lets a large one do more.
    pub fn expect_recording(&mut self, bytes: u64) {
        match &mut self.body {
            Body::Model(gpu) => gpu.expect_recording(bytes),
            Body::Disturbed(gpu) => gpu.get_mut().expect_recording(bytes),
            Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => {}
        }
    }

    /// Begins a run: the model lets it do as much as it lets any.
    pub fn begin_run(&mut self) {
        match &mut self.body {
            Body::Model(gpu) => gpu.renew_work(),
            Body::Disturbed(gpu) => gpu.get_mut().begin_run(),
            Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => {}
        }
    }

    /// The job that used up what a run may do, if one has in this run; only the model limits that.
    pub fn used_up(&self) -> Option<UsedUp> {
        match &self.body {
            Body::Model(gpu) => gpu.used_up(),
            Body::Disturbed(gpu) => gpu.get_ref().used_up(),
            Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => None,
        }
    }

    /// The GPU behind it.
    pub fn get_ref(&self) -> &(dyn Gpu + Send + 'static) {
        match &self.body {
            Body::Model(gpu) => gpu.as_ref(),
            Body::Nano(gpu) => gpu,
            Body::DevMem(gpu) => gpu,
            Body::Other(gpu) => gpu.as_ref(),
            Body::Disturbed(gpu) => gpu.as_ref(),
        }
    }

    /// The GPU behind it, to be used.
    pub fn get_mut(&mut self) -> &mut (dyn Gpu + Send + 'static) {
        match &mut self.body {
            Body::Model(gpu) => gpu.as_mut(),
            Body::Nano(gpu) => gpu,
            Body::DevMem(gpu) => gpu,
            Body::Other(gpu) => gpu.as_mut(),
            Body::Disturbed(gpu) => gpu.as_mut(),
        }
    }

    /// The GPU behind it, without what this type knows of it.
    pub fn into_inner(self) -> Box<dyn Gpu + Send> {
        match self.body {
            Body::Model(gpu) => gpu,
            Body::Nano(gpu) => Box::new(gpu),
            Body::DevMem(gpu) => Box::new(gpu),
            Body::Other(gpu) => gpu,
            Body::Disturbed(gpu) => gpu,
        }
    }

    /// A device of the caller's own; `by` describes it, after the name of its GPU.
    pub fn custom(gpu: Box<dyn Gpu + Send>, by: &str) -> Self {
        Self::real(Body::Other(gpu), by)
    }

    /// Whether this is the GPU that was recorded, by the registers that say so. Nothing else of the device is touched.
    ///
    /// # Errors
    /// It is another one: which register differs, and how.
    pub fn check_identity(&mut self, recording: &Recording<'_>) -> Result<(), ReplayError> {
        for check in recording.identity() {
            let (register, mask, expected) =
                (check.register.get(), check.mask.get(), check.value.get());
            let found = self.get_mut().read32(register) & mask;
            if found != expected {
                return Err(ReplayError {
                    action: NO_ACTION,
                    submits: 0,
                    kind: ErrorKind::Identity {
                        register,
                        mask,
                        expected,
                        found,
                    },
                });
            }
        }
        Ok(())
    }

    /// Says that the GPU of a device of the caller's own writes to pages of this very process.
    #[must_use]
    pub fn that_writes_to_process(mut self) -> Self {
        self.in_process = true;
        self
    }

    /// Whether the GPU writes to pages of this very process, so that it must be reset before the process ends: through /dev/mem.
    /// A driver resets the GPU first, and the model needs no such care.
    pub fn writes_to_process(&self) -> bool {
        match &self.body {
            Body::DevMem(_) => true,
            Body::Disturbed(faulty) => faulty.get_ref().writes_to_process(),
            Body::Model(_) | Body::Nano(_) | Body::Other(_) => self.in_process,
        }
    }

    /// The same device, of which one call goes wrong.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self {
            jobs: self.jobs.clone(),
            description: self.description.clone(),
            in_process: self.in_process,
            body: Body::Disturbed(Box::new(fault.on(self))),
        }
    }

    /// Calls so far, and whether one of them went wrong; `None` for a device without a fault.
    pub fn fault(&self) -> Option<(u64, bool)> {
        match &self.body {
            Body::Disturbed(faulty) => Some((faulty.calls(), faulty.fired())),
            _ => None,
        }
    }

    /// `Mali-G52 r0p0, model`.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Jobs that have ended so far, which only the model counts; keeps counting.
    pub fn job_counter(&self) -> Arc<AtomicU64> {
        self.jobs.jobs.clone()
    }

    /// Time that the device has spent running jobs; `None` where it cannot tell.
    pub fn working(&self) -> Option<Duration> {
        match &self.body {
            Body::Model(gpu) => Some(gpu.working()),
            Body::Nano(gpu) => Some(gpu.working()),
            Body::DevMem(gpu) => Some(gpu.working()),
            Body::Other(_) => None,
            Body::Disturbed(gpu) => gpu.get_ref().working(),
        }
    }

    /// True for the GPU model.
    pub fn is_model(&self) -> bool {
        match &self.body {
            Body::Model(_) => true,
            Body::Disturbed(gpu) => gpu.get_ref().is_model(),
            Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => false,
        }
    }
}

/// The engine's view of whatever device it is.
impl Wrapper for Device {
    type Inner = dyn Gpu + Send;

    fn inner(&mut self) -> &mut Self::Inner {
        self.get_mut()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.description).finish()
    }
}

fn profile_named(name: &str) -> Result<&'static Profile, Error> {
    Profile::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Profile::names().collect();
        Error::NoModel(format!(
            "there is no model of {name}; there are: {}",
            names.join(", ")
        ))
    })
}

fn profile_of(gpu_id: u32) -> Result<&'static Profile, Error> {
    let gpu = GpuId(gpu_id);
    Profile::by_product(gpu.product()).ok_or_else(|| {
        Error::NoDevice(format!(
            "the recording is for {gpu}, of which there is no model"
        ))
    })
}
