// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's own driver as a device for the replay engine: what is the same for all of them.
//!
//! The driver has the registers, the power and the page tables. So it takes the engine's steps whole: a setting, the start, a chain or stream.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, Submission};
use gpureplay_format::{Access, PAGE_SIZE, Recording};
use nix::unistd::{SysconfVar, sysconf};

use crate::chains::Chains;
use crate::error::OpenError;
use crate::mappings::Mappings;
use crate::misfit::Misfit;
use crate::refusal::UNFIT;

/// Memory that a recording wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) va: u64,
    pub(crate) pages: u32,
    pub(crate) access: Access,
}

/// How work ended, as the driver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The driver reports success, or a fault that it does not tell of (panfrost of Linux 6.1).
    Well,
    /// The driver took the work off the GPU, mostly because it ran for too long.
    Cancelled,
    /// Another error.
    Failed,
    /// Not yet.
    Runs,
}

/// What the engine is told of an error.
pub(crate) fn refused(errno: nix::Error) -> DeviceError {
    match errno {
        nix::Error::ENOMEM => DeviceError::OutOfMemory,
        other => DeviceError::Refused(other as i32),
    }
}

/// What a driver is asked to do.
pub(crate) trait Driver: Debug + Send {
    /// What it is called.
    fn name(&self) -> &str;
    /// Whether it can replay a recording, which keeps the rules of the verifier. The GPU is not looked at.
    fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit>;
    /// Where code has to move: windows of 16 MiB by their starts, and their new starts.
    fn code_moves(&self, _: &Recording<'_>) -> Result<BTreeMap<u64, u64>, Misfit> {
        Ok(BTreeMap::new())
    }
    /// The value of a register that says which GPU it is; 0 for one that the driver does not tell.
    fn register(&self, offset: u32) -> u32;
    /// A setting of the recording, in place of which the driver makes its own. That is right for this GPU; the verifier lets nothing else pass.
    fn apply(&self) -> Result<(), ErrorKind> {
        Ok(())
    }
    /// Puts memory in place, in an address space of its own.
    fn load(&self, wanted: &[Wanted]) -> Result<Box<dyn Loaded>, DeviceError>;
}

/// A recording in the driver's memory.
pub(crate) trait Loaded: Debug + Send {
    fn mappings(&self) -> &Mappings;
    /// Gives the GPU a chain or a stream, and waits for its end.
    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind>;
}

/// A GPU behind a driver of the kernel's. Dropping it frees all memory and ends what still runs.
#[derive(Debug)]
pub struct Stock {
    driver: Box<dyn Driver>,
    wanted: Vec<Wanted>,
    loaded: Option<Box<dyn Loaded>>,
    chains: Chains,
    start: Instant,
}

impl Stock {
    /// # Errors
    /// The kernel's pages are not those of recordings.
    pub(crate) fn new(driver: Box<dyn Driver>) -> Result<Self, OpenError> {
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(0);
        if page != PAGE_SIZE.into() {
            return Err(OpenError::PageSize { found: page });
        }
        Ok(Self {
            driver,
            wanted: Vec::new(),
            loaded: None,
            chains: Chains::default(),
            start: Instant::now(),
        })
    }

    /// What the driver is called.
    pub fn name(&self) -> &str {
        self.driver.name()
    }

    /// Whether the driver can replay a recording, which keeps the rules of the verifier. The GPU is not looked at.
    ///
    /// # Errors
    /// What stands against it.
    pub fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        self.driver.fits(recording)
    }

    /// Where code of a recording has to move: windows of 16 MiB by their starts, and their new starts. None, if it can stay.
    ///
    /// # Errors
    /// What stands against it.
    pub fn code_moves(&self, recording: &Recording<'_>) -> Result<BTreeMap<u64, u64>, Misfit> {
        self.driver.code_moves(recording)
    }

    /// Chains or streams that have ended so far.
    pub fn chains(&self) -> u64 {
        self.chains.ended
    }

    /// Time from the submission of each to its end, all together; waits for other programs are part of it.
    pub fn working(&self) -> Duration {
        self.chains.working
    }

    fn mappings(&self, va: u64) -> Result<&Mappings, DeviceError> {
        let loaded = self.loaded.as_ref();
        loaded
            .map(|loaded| loaded.mappings())
            .ok_or(DeviceError::NotMapped(va))
    }
}

impl Gpu for Stock {
    fn read32(&mut self, register: u32) -> u32 {
        self.driver.register(register)
    }

    fn write32(&mut self, _: u32, _: u32) {}

    fn wait_irq(&mut self, _: Lines, _: u32) -> Lines {
        Lines::NONE
    }

    fn now_us(&mut self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.wanted.push(Wanted { va, pages, access });
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        Ok(0)
    }

    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        Some(self.driver.apply())
    }

    fn start(&mut self, unused_cores: u32) -> Option<Result<(), ErrorKind>> {
        if self.loaded.is_none() {
            // The driver uses all cores.
            if unused_cores != 0 {
                return Some(Err(DeviceError::Refused(UNFIT).into()));
            }
            match self.driver.load(&self.wanted) {
                Ok(loaded) => self.loaded = Some(loaded),
                Err(error) => return Some(Err(error.into())),
            }
        }
        Some(Ok(()))
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        Some(match &mut self.loaded {
            Some(loaded) => loaded.run(work),
            None => Err(DeviceError::NotMapped(work.head()).into()),
        })
    }

    /// The GPU is the driver's to reset. What may still run ends with its file, which [`Gpu::release`] closes.
    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn release(&mut self) {
        self.wanted.clear();
        self.loaded = None;
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.mappings(va)?.write(va, bytes, |_, _| Ok(()))
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.mappings(va)?.read(va, bytes, |_, _| Ok(()))
    }

    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        self.chains.start();
        Ok(())
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        self.chains.end(result.is_ok());
    }
}
