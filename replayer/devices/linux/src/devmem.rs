// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU through /dev/mem: polling, no module.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines};
use gpureplay_format::{Access, PAGE_SIZE};

use crate::board::Board;
use crate::chains::Chains;
use crate::device_tree::find_gpu_of;
use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::own_tables::{OwnTables, TablePages};

/// A GPU whose registers are mapped from /dev/mem.
///
/// It must be powered and cache-coherent: user space cannot maintain caches or switch clocks. Its memory is this
/// process's, pinned; /proc/self/pagemap has the physical addresses.
#[derive(Debug)]
pub struct DevMem {
    registers: Mapped,
    pagemap: File,
    mappings: Mappings,
    tables: OwnTables,
    chains: Chains,
    start: Instant,
}

impl DevMem {
    /// `board` helps where the device tree does not.
    ///
    /// # Errors
    /// No GPU, a driver on it, not coherent or powered, another board, or no access.
    pub fn open(board: Option<&Board>) -> Result<Self, OpenError> {
        let node = find_gpu_of(Path::new("/sys"), board)?;
        if let Some(driver) = node.driver {
            return Err(OpenError::Bound {
                driver,
                device: node.device,
            });
        }
        if !node.coherent {
            return Err(OpenError::NotCoherent);
        }
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_SYNC)
            .open("/dev/mem")
            .map_err(|error| {
                forbidden(
                    "/dev/mem",
                    &error,
                    "run as root on a kernel with CONFIG_DEVMEM",
                )
            })?;
        let length = usize::try_from(node.register_bytes)
            .ok()
            .filter(|length| (0x4000..=1 << 20).contains(length))
            .ok_or(OpenError::NoGpu)?;
        let registers = Mapped::new(&memory, node.registers, length).map_err(|error| {
            forbidden(
                "mapping the GPU's registers from /dev/mem",
                &error,
                "boot with iomem=relaxed, or unload the driver that claims them",
            )
        })?;
        let pagemap = File::open("/proc/self/pagemap")
            .map_err(|error| forbidden("/proc/self/pagemap", &error, "run as root"))?;
        let mut device = Self {
            registers,
            pagemap,
            mappings: Mappings::default(),
            tables: OwnTables::default(),
            chains: Chains::default(),
            start: Instant::now(),
        };
        let found = mali_drive::identify(&mut device);
        if found == 0 || found == u32::MAX {
            return Err(OpenError::NoAnswer { found });
        }
        let probe = pinnable()?;
        if device.physical(&probe).is_none() {
            return Err(OpenError::Forbidden {
                what: "reading physical addresses",
                reason: "/proc/self/pagemap holds none".into(),
                cure: "run with CAP_SYS_ADMIN",
            });
        }
        Ok(device)
    }

    /// Ended job chains.
    pub fn chains(&self) -> u64 {
        self.chains.ended
    }

    /// Time of ended chains, until their interrupts are acknowledged.
    pub fn working(&self) -> Duration {
        self.chains.working
    }

    /// Always 0: pages are pinned.
    ///
    /// # Errors
    /// /proc/self/pagemap cannot be read.
    pub fn moved_pages(&self) -> io::Result<usize> {
        let hidden = || io::Error::from(io::ErrorKind::PermissionDenied);
        let mut moved = 0;
        for mapping in self.mappings.iter() {
            let now = self.physical(&mapping.memory).ok_or_else(hidden)?;
            let told = self.tables.told(mapping.va, now.len());
            moved += now
                .iter()
                .zip(told)
                .filter(|(now, told)| **now != *told)
                .count();
        }
        Ok(moved)
    }

    /// `None` when the kernel hides them.
    fn physical(&self, memory: &Mapped) -> Option<Vec<u64>> {
        const PRESENT: u64 = 1 << 63;
        const FRAME: u64 = (1 << 55) - 1;
        let page = PAGE_SIZE as usize;
        (0..memory.len() / page)
            .map(|index| {
                let mut entry = [0; 8];
                let at = (memory.address() / page + index) as u64 * 8;
                self.pagemap.read_exact_at(&mut entry, at).ok()?;
                let entry = u64::from_ne_bytes(entry);
                let frame = entry & FRAME;
                (entry & PRESENT != 0 && frame != 0).then_some(frame * page as u64)
            })
            .collect()
    }

    fn raised(&self) -> Lines {
        mali_drive::pending(|register| self.registers.read32(register as usize))
    }
}

pub(crate) fn pinnable() -> Result<Mapped, OpenError> {
    Mapped::pinned(PAGE_SIZE as usize).map_err(|error| {
        forbidden(
            "pinning memory with io_uring",
            &error,
            match error.raw_os_error() {
                Some(nix::libc::EPERM) => "sysctl kernel.io_uring_disabled=0",
                Some(nix::libc::ENOSYS) => {
                    "use --device nano, or a kernel with CONFIG_IO_URING (5.6 or newer)"
                }
                _ => "raise RLIMIT_MEMLOCK or run as root",
            },
        )
    })
}

fn forbidden(what: &'static str, error: &io::Error, cure: &'static str) -> OpenError {
    OpenError::Forbidden {
        what,
        reason: error.to_string(),
        cure,
    }
}

impl Gpu for DevMem {
    fn read32(&mut self, register: u32) -> u32 {
        self.registers.read32(register as usize)
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.registers.write32(register as usize, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let deadline = Instant::now() + Duration::from_micros(timeout_us.into());
        let mut pause = Duration::from_micros(10);
        loop {
            let raised = self.raised();
            if raised.intersects(lines) {
                return Lines(raised.0 & lines.0);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Lines::NONE;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    fn now_us(&mut self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let length = (pages as usize)
            .checked_mul(PAGE_SIZE as usize)
            .ok_or(DeviceError::OutOfMemory)?;
        let memory = Mapped::pinned(length).map_err(|_| DeviceError::OutOfMemory)?;
        let addresses = self.physical(&memory).ok_or(DeviceError::OutOfMemory)?;
        self.tables.remember(va, &addresses, access);
        self.mappings.insert(va, memory);
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let pages =
            usize::try_from(self.tables.pages_needed()).map_err(|_| DeviceError::OutOfMemory)?;
        let memory =
            Mapped::pinned(pages * PAGE_SIZE as usize).map_err(|_| DeviceError::OutOfMemory)?;
        let addresses = self.physical(&memory).ok_or(DeviceError::OutOfMemory)?;
        let tables = self.tables.build(TablePages::new(memory, addresses))?;
        tables.activate(self, 0, true)?;
        Ok(0)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }

    fn release(&mut self) {
        self.mappings.take();
        self.tables.forget();
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.mappings.write(va, bytes, |_, _| Ok(()))
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.mappings.read(va, bytes, |_, _| Ok(()))
    }

    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        self.chains.start();
        Ok(())
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        self.chains.end(result.is_ok());
    }
}

impl Drop for DevMem {
    fn drop(&mut self) {
        // A running GPU must not write to pages that get another owner.
        if self.reset().is_err() {
            self.mappings.take().into_iter().for_each(std::mem::forget);
            std::mem::forget(std::mem::take(&mut self.tables));
        }
    }
}
