// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kernel drivers share as devices.
//!
//! Drivers own registers, power and page tables, so they take whole steps: a setting, the start, a chain or stream.

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) va: u64,
    pub(crate) pages: u32,
    pub(crate) access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Success, or a hidden fault (panfrost of Linux 6.1).
    Well,
    /// Mostly for running too long.
    Cancelled,
    Failed,
    Runs,
}

pub(crate) fn refused(errno: nix::Error) -> DeviceError {
    match errno {
        nix::Error::ENOMEM => DeviceError::OutOfMemory,
        other => DeviceError::Refused(other as i32),
    }
}

pub(crate) trait Driver: Debug + Send {
    fn name(&self) -> &str;
    fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit>;
    fn code_moves(&self, _: &Recording<'_>) -> Result<BTreeMap<u64, u64>, Misfit> {
        Ok(BTreeMap::new())
    }
    /// Identity registers; 0 if the driver does not tell it.
    fn register(&self, offset: u32) -> u32;
    /// The driver's own setting is right for this GPU; the verifier lets nothing else pass.
    fn apply(&self) -> Result<(), ErrorKind> {
        Ok(())
    }
    fn load(&self, wanted: &[Wanted]) -> Result<Box<dyn Loaded>, DeviceError>;
}

pub(crate) trait Loaded: Debug + Send {
    fn mappings(&self) -> &Mappings;
    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind>;
}

/// A kernel driver's device. Drop frees memory and ends what still runs.
#[derive(Debug)]
pub struct Stock {
    driver: Box<dyn Driver>,
    wanted: Vec<Wanted>,
    loaded: Option<Box<dyn Loaded>>,
    chains: Chains,
    start: Instant,
}

impl Stock {
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

    /// The driver's name.
    pub fn name(&self) -> &str {
        self.driver.name()
    }

    /// Checks a verified recording against the driver, without the GPU.
    ///
    /// # Errors
    /// The driver cannot replay it.
    pub fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        self.driver.fits(recording)
    }

    /// Old and new starts of moving 16 MiB code windows.
    ///
    /// # Errors
    /// There is no room.
    pub fn code_moves(&self, recording: &Recording<'_>) -> Result<BTreeMap<u64, u64>, Misfit> {
        self.driver.code_moves(recording)
    }

    /// Ended chains or streams.
    pub fn chains(&self) -> u64 {
        self.chains.ended
    }

    /// Total, with waits for other programs.
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

    /// The driver resets. What still runs ends with its file, which [`Gpu::release`] closes.
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
