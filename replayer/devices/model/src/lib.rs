// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU model as a device for the replay engine.
//!
//! ```
//! use gpureplay_core::Gpu;
//! use gpureplay_on_model::OnModel;
//! use mali_model::{Options, Profile};
//!
//! let mut gpu = OnModel::new(Profile::by_name("g52").unwrap(), Options::default())?;
//! gpu.reset().unwrap();
//! assert_eq!(gpu.read32(0) >> 16, 0x7212);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod memory;
mod streams;
mod watched;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, Gpu, Lines, UsedUp};
use gpureplay_format::Access;
use mali_drive::page_table::{Format, PageTables};
use mali_memory::{Bus, Ram};
use mali_model::{Observer, Options, Profile};

use memory::{Memory, Tables};

pub use streams::OnStreams;
pub use watched::{Watch, Watched};

/// Pages that the model has room for: 8 GiB of address space, of which only what is used costs memory.
const PAGES: usize = 1 << 21;

/// What a run may do if the options of the model do not say it, in clauses: the end of a shader that never ends within ten seconds of
/// a processor.
pub const WORK_LIMIT: u64 = 1 << 28;
/// What it may do besides for each byte of its recording, in clauses: set-up brings hundreds of megabytes of weights into another order.
pub const WORK_PER_BYTE: u64 = 2;

/// A modelled GPU with memory of its own.
///
/// Its clock stands still while a chain runs, so that waits do not end early because the model is slower than silicon. A run
/// that never ends is terminated when it has used up its work limit ([`Options::work_limit`], [`WORK_LIMIT`]), which a run
/// begins with and which [`OnModel::renew_work`] gives anew to one that is made of segments.
pub struct OnModel<B: Bus = Ram> {
    gpu: mali_model::Gpu<B>,
    memory: Memory,
    format: Format,
    started: Instant,
    working: Duration,
    chains: u64,
    /// Nobody has said what a run may do.
    default_work: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl OnModel {
    /// A GPU that has just got power.
    ///
    /// # Errors
    /// The operating system has no address space left.
    pub fn new(profile: &'static Profile, options: Options) -> io::Result<Self> {
        let ram = Arc::new(Ram::new(PAGES)?);
        Ok(Self::on_bus(profile, options, ram.clone(), ram))
    }
}

impl<B: Bus> OnModel<B> {
    /// Address space that the device uses.
    const ADDRESS_SPACE: u8 = 0;

    /// A GPU that takes its pages from `ram` and reaches them through `bus`, which can watch it.
    pub fn on_bus(profile: &'static Profile, options: Options, ram: Arc<Ram>, bus: Arc<B>) -> Self {
        let default_work = options.work_limit.is_none();
        let options = Options {
            work_limit: options.work_limit.or(Some(WORK_LIMIT)),
            ..options
        };
        Self {
            observer: options.observer.clone(),
            gpu: mali_model::Gpu::new(profile, bus, options),
            memory: Memory::new(ram),
            format: Format::Lpae,
            started: Instant::now(),
            working: Duration::ZERO,
            chains: 0,
            default_work,
        }
    }

    /// Uses another page-table format than Mali LPAE.
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Time that chains have taken so far.
    pub fn working(&self) -> Duration {
        self.working
    }

    /// Chains that have run so far.
    pub fn chains(&self) -> u64 {
        self.chains
    }

    /// Begins a run: it has the whole work limit.
    pub fn renew_work(&mut self) {
        self.gpu.renew_work();
    }

    /// The model.
    pub fn model(&mut self) -> &mut mali_model::Gpu<B> {
        &mut self.gpu
    }

    /// Pages in use, those of page tables among them.
    pub fn pages(&self) -> usize {
        self.memory.pages()
    }

    /// Tells the observer of bytes that the host wrote.
    fn wrote(&self, va: u64, bytes: u64) {
        if let Some(observer) = &self.observer {
            observer.wrote(va, bytes);
        }
    }

    fn raised(&self) -> Lines {
        let irq = self.gpu.irq();
        let line = |raised, line: Lines| if raised { line.0 } else { 0 };
        Lines(line(irq.job, Lines::JOB) | line(irq.mmu, Lines::MMU) | line(irq.gpu, Lines::GPU))
    }
}

impl<B: Bus> Gpu for OnModel<B> {
    fn read32(&mut self, register: u32) -> u32 {
        self.gpu.read32(register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.gpu.write32(register, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if self.gpu.has_work() {
            let start = Instant::now();
            self.chains += self.gpu.run() as u64;
            self.working += start.elapsed();
        }
        let raised = Lines(self.raised().0 & lines.0);
        if raised == Lines::NONE {
            // Nothing happens in the model while nobody runs it.
            std::thread::sleep(Duration::from_micros(timeout_us.into()));
        }
        raised
    }

    fn now_us(&mut self) -> u64 {
        let idle = self.started.elapsed().saturating_sub(self.working);
        u64::try_from(idle.as_micros()).unwrap_or(u64::MAX)
    }

    /// If the options of the model have no work limit, it is [`WORK_LIMIT`] and [`WORK_PER_BYTE`] for each byte.
    fn expect_recording(&mut self, bytes: u64) {
        if self.default_work {
            let more = bytes.saturating_mul(WORK_PER_BYTE);
            self.gpu.set_work_limit(WORK_LIMIT.saturating_add(more));
        }
    }

    fn used_up(&mut self) -> Option<UsedUp> {
        self.gpu.used_up().map(|used_up| UsedUp {
            job: used_up.job,
            slot: u8::try_from(used_up.slot).unwrap_or(u8::MAX),
            limit: used_up.limit,
        })
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        if chain.index == 0 {
            self.renew_work();
        }
        Ok(())
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.memory.map(va, pages, access)
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let mut tables = Tables {
            memory: &mut self.memory,
        };
        let mut root = PageTables::new(self.format, &mut tables).ok_or(DeviceError::OutOfMemory)?;
        for (va, pa, access) in tables.memory.mappings() {
            root.map(&mut tables, va, pa, access)
                .ok_or(DeviceError::OutOfMemory)?;
        }
        root.activate(self, Self::ADDRESS_SPACE, true)?;
        Ok(Self::ADDRESS_SPACE)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }

    fn release(&mut self) {
        self.memory.release();
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.wrote(va, bytes.len() as u64);
        self.memory.write(va, bytes)
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.read(va, bytes)
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        self.wrote(va, length);
        self.memory.fill(va, length, byte)
    }
}
