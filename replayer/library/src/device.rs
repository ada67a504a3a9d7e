// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that replay a recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub use gpureplay_core::UsedUp;
use gpureplay_core::{ErrorKind, Gpu, NO_ACTION, ReplayError, Wrapper};
use gpureplay_format::Recording;
use gpureplay_linux::{DevMem, Misfit, Nano, Stock, kbase, nano, panfrost, panthor};
use mali_drive::middleware::{FaultKind, Faulty};
use mali_drive::{identify, names};

pub use crate::choice::{Choice, KINDS, Kind};
use crate::error::Error;
pub use crate::model_options::ModelOptions;
use crate::on_model::Model;
pub use crate::on_model::Observer;
/// For an [`Observer`] and its analysers.
#[cfg(feature = "model")]
pub use mali_model::{Dispatch, JobReport, probe};

pub use crate::names::MAX_THREADS;

/// An opened device.
pub struct Device {
    body: Body,
    in_process: bool,
    jobs: Arc<AtomicU64>,
    description: String,
}

enum Body {
    Model(Model),
    Nano(Nano),
    Stock(Stock),
    DevMem(DevMem),
    Other(Box<dyn Gpu + Send>),
    Disturbed(Box<Faulty<Device>>),
}

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The first possible call from this number on.
    At(FaultKind, u64),
    /// Kind and call follow from a number.
    Seed(u64),
}

impl Fault {
    /// A run of digits, in one chain, makes 198 and must meet the fault.
    const SEEDED_CALLS: u64 = 150;

    /// A device with this fault.
    pub fn on<G: Gpu>(self, gpu: G) -> Faulty<G> {
        match self {
            Self::At(kind, at) => Faulty::new(gpu, kind, at),
            Self::Seed(seed) => Faulty::seeded(gpu, seed, Self::SEEDED_CALLS),
        }
    }
}

impl Device {
    /// `gpu_id` is the recording's.
    ///
    /// # Errors
    /// Unusable or none; [`Choice::Best`] must be [resolved](Choice::resolved) first.
    pub fn open(choice: &Choice, gpu_id: u32, options: ModelOptions) -> Result<Self, Error> {
        Self::open_observed(choice, gpu_id, options, None)
    }

    /// Tells an observer of each job.
    ///
    /// # Errors
    /// As for [`Device::open`], or the device is not the model.
    pub fn open_observed(
        choice: &Choice,
        gpu_id: u32,
        options: ModelOptions,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self, Error> {
        let name = match choice {
            Choice::Best => {
                return Err(Error::NoDevice(
                    "which device is best depends on the recording; `Choice::resolved` says it"
                        .into(),
                ));
            }
            Choice::Model(name) => name,
            Choice::Panfrost
            | Choice::Panthor
            | Choice::Kbase
            | Choice::Nano(_)
            | Choice::DevMem(_)
                if observer.is_some() =>
            {
                return Err(Error::NoModel("only the model can trace jobs".into()));
            }
            Choice::Panfrost => {
                let driver = panfrost::open(&panfrost::find(Path::new("/"))?)?;
                return Ok(Self::stock(driver));
            }
            Choice::Panthor => {
                let driver = panthor::open(&panthor::find(Path::new("/"))?)?;
                return Ok(Self::stock(driver));
            }
            Choice::Kbase => return Ok(Self::stock(kbase::open(Path::new(kbase::PATH))?)),
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
        let model = Model::open(name.as_deref(), gpu_id, options, observer)?;
        Ok(Self {
            in_process: false,
            jobs: model.jobs.clone(),
            description: model.description.clone(),
            body: Body::Model(model),
        })
    }

    fn stock(driver: Stock) -> Self {
        let name = driver.name().to_owned();
        Self::real(Body::Stock(driver), &name)
    }

    fn real(body: Body, by: &str) -> Self {
        let mut device = Self {
            body,
            in_process: false,
            jobs: Arc::default(),
            description: String::new(),
        };
        let id = identify(device.get_mut());
        device.description = format!("{}, {by}", names::gpu(id));
        device
    }

    /// Resets the model's work limit.
    pub fn begin_run(&mut self) {
        match &mut self.body {
            Body::Model(gpu) => gpu.renew_work(),
            Body::Disturbed(gpu) => gpu.get_mut().begin_run(),
            Body::Nano(_) | Body::Stock(_) | Body::DevMem(_) | Body::Other(_) => {}
        }
    }

    /// The GPU.
    pub fn get_ref(&self) -> &(dyn Gpu + Send + 'static) {
        match &self.body {
            Body::Model(gpu) => gpu.get_ref(),
            Body::Nano(gpu) => gpu,
            Body::Stock(gpu) => gpu,
            Body::DevMem(gpu) => gpu,
            Body::Other(gpu) => gpu.as_ref(),
            Body::Disturbed(gpu) => gpu.as_ref(),
        }
    }

    /// The GPU.
    pub fn get_mut(&mut self) -> &mut (dyn Gpu + Send + 'static) {
        match &mut self.body {
            Body::Model(gpu) => gpu.get_mut(),
            Body::Nano(gpu) => gpu,
            Body::Stock(gpu) => gpu,
            Body::DevMem(gpu) => gpu,
            Body::Other(gpu) => gpu.as_mut(),
            Body::Disturbed(gpu) => gpu.as_mut(),
        }
    }

    /// The bare GPU.
    pub fn into_inner(self) -> Box<dyn Gpu + Send> {
        match self.body {
            Body::Model(gpu) => gpu.into_inner(),
            Body::Nano(gpu) => Box::new(gpu),
            Body::Stock(gpu) => Box::new(gpu),
            Body::DevMem(gpu) => Box::new(gpu),
            Body::Other(gpu) => gpu,
            Body::Disturbed(gpu) => gpu,
        }
    }

    /// `by` follows the GPU's name in descriptions.
    pub fn custom(gpu: Box<dyn Gpu + Send>, by: &str) -> Self {
        Self::real(Body::Other(gpu), by)
    }

    /// Checks identity registers only.
    ///
    /// # Errors
    /// Which register differs, and how.
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

    /// Checks the device's own decisions, for any GPU.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check_fit(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        match &self.body {
            Body::Stock(gpu) => gpu.fits(recording),
            Body::Disturbed(faulty) => faulty.get_ref().check_fit(recording),
            Body::Model(_) | Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => Ok(()),
        }
    }

    /// Where code must move, if this device places it: old and new starts of 16 MiB windows.
    pub(crate) fn code_moves(
        &self,
        recording: &Recording<'_>,
    ) -> Result<BTreeMap<u64, u64>, Misfit> {
        match &self.body {
            Body::Stock(gpu) => gpu.code_moves(recording),
            Body::Disturbed(faulty) => faulty.get_ref().code_moves(recording),
            Body::Model(_) | Body::Nano(_) | Body::DevMem(_) | Body::Other(_) => {
                Ok(BTreeMap::new())
            }
        }
    }

    /// Marks a device whose GPU writes to this process's pages.
    #[must_use]
    pub fn that_writes_to_process(mut self) -> Self {
        self.in_process = true;
        self
    }

    /// Whether the GPU writes to this process's pages (/dev/mem): see [`crate::HeldSignals`].
    pub fn writes_to_process(&self) -> bool {
        match &self.body {
            Body::DevMem(_) => true,
            Body::Disturbed(faulty) => faulty.get_ref().writes_to_process(),
            Body::Model(_) | Body::Nano(_) | Body::Stock(_) | Body::Other(_) => self.in_process,
        }
    }

    /// The device, with one bad call.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self {
            jobs: self.jobs.clone(),
            description: self.description.clone(),
            in_process: self.in_process,
            body: Body::Disturbed(Box::new(fault.on(self))),
        }
    }

    /// Calls, and whether one went wrong; `None` without a fault.
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

    /// Live count of ended jobs; only the model counts.
    pub fn job_counter(&self) -> Arc<AtomicU64> {
        self.jobs.clone()
    }

    /// Time running jobs; `None` if unknown.
    pub fn working(&self) -> Option<Duration> {
        match &self.body {
            Body::Model(gpu) => Some(gpu.working()),
            Body::Nano(gpu) => Some(gpu.working()),
            Body::Stock(gpu) => Some(gpu.working()),
            Body::DevMem(gpu) => Some(gpu.working()),
            Body::Other(_) => None,
            Body::Disturbed(gpu) => gpu.get_ref().working(),
        }
    }

    /// Whether it is the GPU model.
    pub fn is_model(&self) -> bool {
        match &self.body {
            Body::Model(_) => true,
            Body::Disturbed(gpu) => gpu.get_ref().is_model(),
            Body::Nano(_) | Body::Stock(_) | Body::DevMem(_) | Body::Other(_) => false,
        }
    }
}

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
