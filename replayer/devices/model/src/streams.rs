// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of a GPU with command streams as a device: it takes whole launches, as a driver with firmware does.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpureplay_core::gpu::Submission;
use gpureplay_core::{DeviceError, ErrorKind, Gpu, Lines};
use gpureplay_format::Access;
use mali_drive::page_table::{Format, PageTables};
use mali_facts::StreamGpu;
use mali_facts::registers::gpu;
use mali_memory::{PAGE_SIZE, Ram};
use mali_model::{Observer, Options, Sequencer, Streams};

use crate::memory::{Memory, Tables};
use crate::{PAGES, WORK_LIMIT, WORK_PER_BYTE};

/// Where a launch's instructions lie while they run: above what a recording can map.
const STREAM: u64 = 1 << 47;
/// Pages for them: the most that a launch has.
const STREAM_PAGES: u32 = 16;

/// A modelled GPU with command streams, and memory of its own.
///
/// What a run may do ([`WORK_LIMIT`], [`WORK_PER_BYTE`]) counts for each launch by itself.
pub struct OnStreams {
    streams: Streams<Ram>,
    memory: Memory,
    /// Page tables of what is mapped, once work can start.
    root: Option<u64>,
    started: Instant,
    working: Duration,
    default_work: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl OnStreams {
    /// A GPU with power on.
    ///
    /// # Errors
    /// The operating system has no address space left.
    pub fn new(gpu: &'static StreamGpu, options: Options) -> io::Result<Self> {
        let ram = Arc::new(Ram::new(PAGES)?);
        let default_work = options.work_limit.is_none();
        let options = Options {
            work_limit: options.work_limit.or(Some(WORK_LIMIT)),
            ..options
        };
        Ok(Self {
            observer: options.observer.clone(),
            streams: Streams::new(gpu, ram.clone(), options),
            memory: Memory::new(ram),
            root: None,
            started: Instant::now(),
            working: Duration::ZERO,
            default_work,
        })
    }

    /// Time that launches have taken so far.
    pub fn working(&self) -> Duration {
        self.working
    }

    /// Tells the observer of bytes that the host wrote.
    fn wrote(&self, va: u64, bytes: u64) {
        if let Some(observer) = &self.observer {
            observer.wrote(va, bytes);
        }
    }

    fn tables(&mut self) -> Result<u64, DeviceError> {
        self.memory.map(STREAM, STREAM_PAGES, Access::READ)?;
        let mut tables = Tables {
            memory: &mut self.memory,
        };
        let out = || DeviceError::OutOfMemory;
        let mut root = PageTables::new(Format::AArch64, &mut tables).ok_or_else(out)?;
        for (va, pa, access) in tables.memory.mappings() {
            root.map(&mut tables, va, pa, access).ok_or_else(out)?;
        }
        Ok(root.root())
    }

    fn launch(&mut self, words: &[u8]) -> Result<(), ErrorKind> {
        let root = self.root.ok_or(ErrorKind::Internal)?;
        let length = u32::try_from(words.len()).map_err(|_| ErrorKind::Internal)?;
        // A chain has no words: it is work of another family.
        if words.is_empty() || words.len() > STREAM_PAGES as usize * PAGE_SIZE {
            return Err(ErrorKind::Device(DeviceError::Refused(0)));
        }
        self.memory.write(STREAM, words)?;
        let start = Instant::now();
        // Each launch says all that it needs: nothing is left of the one before.
        let ended = self
            .streams
            .run(&mut Sequencer::new(), root, STREAM, length);
        self.working += start.elapsed();
        ended.map_err(|fault| ErrorKind::JobFault {
            slot: 0,
            status: fault.status.0,
            tail: fault.at,
            fault_address: 0,
        })
    }
}

impl Gpu for OnStreams {
    fn read32(&mut self, register: u32) -> u32 {
        let profile = &self.streams.gpu().profile;
        match register {
            gpu::GPU_ID => profile.gpu_id.0,
            gpu::L2_FEATURES => profile.l2_features,
            gpu::MMU_FEATURES => profile.mmu_features,
            gpu::THREAD_MAX_THREADS => profile.max_threads,
            gpu::THREAD_FEATURES => profile.thread_features,
            gpu::SHADER_PRESENT_LO => profile.shader_present as u32,
            gpu::SHADER_PRESENT_HI => (profile.shader_present >> 32) as u32,
            _ => 0,
        }
    }

    fn write32(&mut self, _: u32, _: u32) {}

    fn wait_irq(&mut self, _: Lines, _: u32) -> Lines {
        Lines::NONE
    }

    fn now_us(&mut self) -> u64 {
        let idle = self.started.elapsed().saturating_sub(self.working);
        u64::try_from(idle.as_micros()).unwrap_or(u64::MAX)
    }

    fn expect_recording(&mut self, bytes: u64) {
        if self.default_work {
            let more = bytes.saturating_mul(WORK_PER_BYTE);
            self.streams.set_work_limit(WORK_LIMIT.saturating_add(more));
        }
    }

    /// Firmware makes all settings: the family allows none.
    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        Some(Err(ErrorKind::Device(DeviceError::Refused(0))))
    }

    fn start(&mut self, _: u32) -> Option<Result<(), ErrorKind>> {
        if self.root.is_some() {
            return Some(Ok(()));
        }
        let root = self.tables();
        self.root = root.ok();
        Some(root.map(drop).map_err(ErrorKind::Device))
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        Some(self.launch(work.words))
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.memory.map(va, pages, access)
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        Ok(0)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn release(&mut self) {
        self.root = None;
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
