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

use gpureplay_core::gpu::Submission;
use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, UsedUp};
use gpureplay_format::Access;
use gpureplay_memory::{Bus, Ram};
use mali_drive::page_table::{Format, PageTables};
use mali_model::{Observer, Options, Product, Writer};

use memory::{Memory, Tables};
use streams::Firmware;

pub use watched::{Watch, Watched};

/// 8 GiB; only used pages cost memory.
const PAGES: usize = 1 << 21;

/// Clauses per run: an endless shader ends within ten seconds of processor time.
pub const WORK_LIMIT: u64 = 1 << 28;
/// More clauses per recording byte: set-up reorders hundreds of megabytes of weights.
pub const WORK_PER_BYTE: u64 = 2;

/// A modelled GPU with memory of its own.
///
/// The clock stands still during chains: slowness ends no wait early. A hopeless wait advances it by the whole time.
/// Endless runs end at a work limit ([`Options::work_limit`], [`WORK_LIMIT`]), which [`OnModel::renew_work`] renews
/// for segments.
pub struct OnModel<B: Bus = Ram> {
    body: Body<B>,
    memory: Memory,
    format: Format,
    started: Instant,
    working: Duration,
    skipped: Duration,
    chains: u64,
    default_work: bool,
    observer: Option<Arc<dyn Observer>>,
}

enum Body<B: Bus> {
    Chains(Box<mali_model::Gpu<B>>),
    Streams(Firmware<B>),
}

impl OnModel {
    /// # Errors
    /// The operating system has no address space left.
    pub fn new(model: impl Into<Product>, options: Options) -> io::Result<Self> {
        let ram = Arc::new(Ram::new(PAGES)?);
        Ok(Self::on_bus(model, options, ram.clone(), ram))
    }
}

impl<B: Bus> OnModel<B> {
    const ADDRESS_SPACE: u8 = 0;

    /// Pages come from `ram`; `bus` can watch.
    pub fn on_bus(model: impl Into<Product>, options: Options, ram: Arc<Ram>, bus: Arc<B>) -> Self {
        let default_work = options.work_limit.is_none();
        let options = Options {
            work_limit: options.work_limit.or(Some(WORK_LIMIT)),
            ..options
        };
        Self {
            observer: options.observer.clone(),
            body: match model.into() {
                Product::Chains(profile) => {
                    Body::Chains(Box::new(mali_model::Gpu::new(profile, bus, options)))
                }
                Product::Streams(gpu) => Body::Streams(Firmware::new(gpu, bus, options)),
            },
            memory: Memory::new(ram),
            format: Format::Lpae,
            started: Instant::now(),
            working: Duration::ZERO,
            skipped: Duration::ZERO,
            chains: 0,
            default_work,
        }
    }

    /// Replaces the Mali LPAE page-table format.
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Total time of chains.
    pub fn working(&self) -> Duration {
        self.working
    }

    /// Chains run so far.
    pub fn chains(&self) -> u64 {
        self.chains
    }

    /// The whole limit again.
    pub fn renew_work(&mut self) {
        match &mut self.body {
            Body::Chains(gpu) => gpu.renew_work(),
            Body::Streams(gpu) => gpu.renew_work(),
        }
    }

    /// What writes the byte at `va` in a chain, or a launch of these words; `None` if unknown.
    pub fn writer(&mut self, chain: &Chain, words: &[u8], va: u64) -> Option<Writer> {
        match &mut self.body {
            Body::Chains(gpu) => gpu.writer(chain.space.into(), chain.head, va),
            Body::Streams(gpu) => gpu.writer(&self.memory, words, va),
        }
    }

    /// Pages in use, with page tables.
    pub fn pages(&self) -> usize {
        self.memory.pages()
    }

    fn wrote(&self, va: u64, bytes: u64) {
        if let Some(observer) = &self.observer {
            observer.wrote(va, bytes);
        }
    }

    fn tables(&mut self, format: Format) -> Result<PageTables, DeviceError> {
        let mut tables = Tables {
            memory: &mut self.memory,
        };
        let mut root = PageTables::new(format, &mut tables).ok_or(DeviceError::OutOfMemory)?;
        for (va, pa, access) in tables.memory.mappings() {
            root.map(&mut tables, va, pa, access)
                .ok_or(DeviceError::OutOfMemory)?;
        }
        Ok(root)
    }

    fn raised(&self) -> Lines {
        let Body::Chains(gpu) = &self.body else {
            return Lines::NONE;
        };
        let irq = gpu.irq();
        let line = |raised, line: Lines| if raised { line.0 } else { 0 };
        Lines(line(irq.job, Lines::JOB) | line(irq.mmu, Lines::MMU) | line(irq.gpu, Lines::GPU))
    }
}

impl<B: Bus> Gpu for OnModel<B> {
    fn read32(&mut self, register: u32) -> u32 {
        match &mut self.body {
            Body::Chains(gpu) => gpu.read32(register),
            Body::Streams(gpu) => gpu.read32(register),
        }
    }

    fn write32(&mut self, register: u32, value: u32) {
        if let Body::Chains(gpu) = &mut self.body {
            gpu.write32(register, value);
        }
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if let Body::Chains(gpu) = &mut self.body
            && gpu.has_work()
        {
            let start = Instant::now();
            self.chains += gpu.run() as u64;
            self.working += start.elapsed();
        }
        let raised = Lines(self.raised().0 & lines.0);
        if raised == Lines::NONE {
            // Nothing happens before the next access.
            self.skipped += Duration::from_micros(timeout_us.into());
        }
        raised
    }

    fn now_us(&mut self) -> u64 {
        let idle = self.started.elapsed().saturating_sub(self.working);
        u64::try_from((idle + self.skipped).as_micros()).unwrap_or(u64::MAX)
    }

    fn expect_recording(&mut self, bytes: u64) {
        if self.default_work {
            let more = bytes.saturating_mul(WORK_PER_BYTE);
            let limit = WORK_LIMIT.saturating_add(more);
            match &mut self.body {
                Body::Chains(gpu) => gpu.set_work_limit(limit),
                Body::Streams(gpu) => gpu.set_work_limit(limit),
            }
        }
    }

    fn used_up(&mut self) -> Option<UsedUp> {
        match &self.body {
            Body::Chains(gpu) => gpu.used_up().map(|used_up| UsedUp {
                job: used_up.job,
                slot: u8::try_from(used_up.slot).unwrap_or(u8::MAX),
                limit: used_up.limit,
            }),
            Body::Streams(gpu) => gpu.used_up(),
        }
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        if chain.index == 0 {
            self.renew_work();
        }
        Ok(())
    }

    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        let Body::Streams(_) = &self.body else {
            return None;
        };
        // Firmware makes all settings.
        Some(Err(ErrorKind::Device(DeviceError::Refused(0))))
    }

    fn start(&mut self, _: u32) -> Option<Result<(), ErrorKind>> {
        let Body::Streams(gpu) = &self.body else {
            return None;
        };
        if gpu.is_ready() {
            return Some(Ok(()));
        }
        let tables = streams::map(&mut self.memory).and_then(|()| self.tables(Format::AArch64));
        Some(match (tables, &mut self.body) {
            (Ok(tables), Body::Streams(gpu)) => {
                gpu.begin(tables.root());
                Ok(())
            }
            (Err(error), _) => Err(ErrorKind::Device(error)),
            (Ok(_), Body::Chains(_)) => Err(ErrorKind::Internal),
        })
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        let Body::Streams(gpu) = &mut self.body else {
            return None;
        };
        let start = Instant::now();
        let ended = gpu.launch(&self.memory, work.words);
        self.working += start.elapsed();
        self.chains += u64::from(ended.is_ok());
        Some(ended)
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.memory.map(va, pages, access)
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        if let Body::Chains(_) = &self.body {
            let root = self.tables(self.format)?;
            root.activate(self, Self::ADDRESS_SPACE, true)?;
        }
        Ok(Self::ADDRESS_SPACE)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        match &self.body {
            Body::Chains(_) => mali_drive::reset(self),
            Body::Streams(_) => Ok(()),
        }
    }

    fn release(&mut self) {
        if let Body::Streams(gpu) = &mut self.body {
            gpu.end();
        }
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
