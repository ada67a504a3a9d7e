// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of a GPU with command streams as a device: it takes whole launches, as a driver with firmware does.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpureplay_core::gpu::Submission;
use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, UsedUp};
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

/// A modelled GPU with command streams, and memory of its own. A work limit counts for all launches of a run together, as in
/// [`OnModel`](crate::OnModel).
pub struct OnStreams {
    streams: Streams<Ram>,
    memory: Memory,
    /// Page tables of what is mapped, once work can start.
    root: Option<u64>,
    started: Instant,
    working: Duration,
    default_work: bool,
    used_up: Option<UsedUp>,
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
            used_up: None,
        })
    }

    /// Time that launches have taken so far.
    pub fn working(&self) -> Duration {
        self.working
    }

    /// Begins a run: it has the whole work limit.
    pub fn renew_work(&mut self) {
        self.used_up = None;
        self.streams.renew_work();
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
        ended.map_err(|fault| {
            self.used_up = self.streams.used_up().map(|limit| UsedUp {
                job: fault.at,
                slot: 0,
                limit,
            });
            ErrorKind::JobFault {
                slot: 0,
                status: fault.status.0,
                tail: fault.at,
                fault_address: 0,
            }
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

    fn used_up(&mut self) -> Option<UsedUp> {
        self.used_up
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        if chain.index == 0 {
            self.renew_work();
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use gpureplay_format::layout::ActionEntry;
    use mali_facts::STREAM_GPUS;

    use super::*;

    #[test]
    fn the_launches_of_a_run_share_the_work_limit() {
        let options = Options {
            work_limit: Some(24),
            ..Options::default()
        };
        let mut device = OnStreams::new(&STREAM_GPUS[0], options).unwrap();
        assert_eq!(device.start(0), Some(Ok(())));
        let entry = &ActionEntry {
            op: 0,
            a: 0,
            b: 0.into(),
            c: 0.into(),
            d: 0.into(),
        };
        // Sixteen instructions that do nothing.
        let words = &[0; 128];
        let mut launch = |index| {
            let chain = Chain {
                index,
                head: 0,
                queue: 0,
                space: 0,
            };
            device.before_chain(&chain).unwrap();
            let ended = device.run_chain(&Submission { entry, words }).unwrap();
            (ended.is_ok(), device.used_up().map(|it| it.limit))
        };
        assert_eq!(launch(0), (true, None));
        assert_eq!(launch(1), (false, Some(24)));
        // The next run has all of it again.
        assert_eq!(launch(0), (true, None));
    }
}
