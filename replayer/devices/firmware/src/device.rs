// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU as the replay engine wants it: bare registers, pages from the end of the image on, interrupts.

use core::sync::atomic::{AtomicBool, Ordering};

use gpureplay_core::page_table::{Format, PageTables, TableMemory};
use gpureplay_core::{DeviceError, Gpu, Lines};
use gpureplay_format::{Access, PAGE_SIZE};
use mali_regs::gpu::GPU_INT_RAWSTAT;
use mali_regs::job::JOB_INT_RAWSTAT;
use mali_regs::mmu::MMU_INT_RAWSTAT;

use crate::{cpu, gic, machine};

/// Set by the interrupt handler, which leaves the GPU's line disabled.
static RAISED: AtomicBool = AtomicBool::new(false);
/// The bound of a wait is over.
static LATE: AtomicBool = AtomicBool::new(false);

const PAGE: u64 = PAGE_SIZE as u64;
/// Address ranges that a recording may have here.
pub const RANGES: usize = 256;

/// Called by the interrupt vector: notes what happened and silences it.
pub fn interrupt() {
    while let Some(id) = gic::acknowledge() {
        if id == machine::TIMER_INTERRUPT {
            cpu::stop_timer();
            LATE.store(true, Ordering::Release);
        } else {
            gic::disable(id);
            RAISED.store(true, Ordering::Release);
        }
        gic::end(id);
    }
}

/// Contiguous pages, handed out from low to high and taken back all at once.
struct Pages {
    start: u64,
    next: u64,
    end: u64,
}

impl Pages {
    fn take(&mut self, pages: u64) -> Option<u64> {
        let start = self.next;
        let end = start.checked_add(pages.checked_mul(PAGE)?)?;
        if end > self.end {
            return None;
        }
        self.next = end;
        fill(start, end - start, 0);
        Some(start)
    }
}

impl TableMemory for Pages {
    fn allocate(&mut self) -> Option<u64> {
        self.take(1)
    }
    fn read(&mut self, pa: u64) -> u64 {
        // SAFETY: the builder passes slots of tables that `allocate` gave it; they lie in the pool, which no Rust
        // object shares.
        unsafe { (pa as *const u64).read_volatile() }
    }
    fn write(&mut self, pa: u64, entry: u64) {
        // SAFETY: as in `read`.
        unsafe { (pa as *mut u64).write_volatile(entry) }
    }
}

fn fill(pa: u64, length: u64, byte: u8) {
    // SAFETY: callers pass ranges of the pool, which no Rust object shares.
    unsafe { core::ptr::write_bytes(pa as *mut u8, byte, length as usize) }
}

/// Where a range of GPU addresses lies.
#[derive(Clone, Copy)]
pub struct Range {
    va: u64,
    pa: u64,
    length: u64,
}

impl Range {
    /// Nowhere.
    pub const EMPTY: Self = Self {
        va: 0,
        pa: 0,
        length: 0,
    };
}

/// The GPU on this machine.
pub struct Board {
    registers: usize,
    interrupt: u32,
    pages: Pages,
    tables: Option<PageTables>,
    ranges: &'static mut [Range; RANGES],
    used: usize,
    /// Interrupts taken for the GPU so far.
    pub interrupts: u32,
}

impl Board {
    /// A GPU at `registers` whose lines share one interrupt, with memory from `start` to `end` for its pages.
    pub const fn new(
        registers: usize,
        interrupt: u32,
        start: u64,
        end: u64,
        ranges: &'static mut [Range; RANGES],
    ) -> Self {
        Self {
            registers,
            interrupt,
            pages: Pages {
                start,
                next: start,
                end,
            },
            tables: None,
            ranges,
            used: 0,
            interrupts: 0,
        }
    }

    /// Bytes of memory in use for pages and tables.
    pub const fn memory_used(&self) -> u64 {
        self.pages.next - self.pages.start
    }

    /// Calls `each` with physical address and length for every part of a GPU address range.
    fn parts(
        &self,
        va: u64,
        length: u64,
        mut each: impl FnMut(u64, u64, u64),
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let at = va.wrapping_add(done);
            let ranges = self.ranges.get(..self.used).unwrap_or(&[]);
            let range = ranges
                .iter()
                .find(|range| at.wrapping_sub(range.va) < range.length)
                .ok_or(DeviceError::NotMapped(at))?;
            let offset = at - range.va;
            let size = (range.length - offset).min(length - done);
            each(range.pa + offset, done, size);
            done += size;
        }
        Ok(())
    }

    fn raised(&mut self) -> Lines {
        let mut lines = 0;
        for (line, register) in [JOB_INT_RAWSTAT, MMU_INT_RAWSTAT, GPU_INT_RAWSTAT]
            .into_iter()
            .enumerate()
        {
            // RAWSTAT + 12 is STAT: what the masks let through.
            if self.read32(register + 12) != 0 {
                lines |= 1 << line;
            }
        }
        Lines(lines)
    }
}

impl Gpu for Board {
    fn read32(&mut self, register: u32) -> u32 {
        machine::read32(self.registers + register as usize)
    }

    fn write32(&mut self, register: u32, value: u32) {
        cpu::barrier();
        machine::write32(self.registers + register as usize, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        RAISED.store(false, Ordering::Release);
        LATE.store(false, Ordering::Release);
        cpu::start_timer(timeout_us.into());
        gic::enable(self.interrupt);
        while !RAISED.load(Ordering::Acquire) && !LATE.load(Ordering::Acquire) {
            cpu::sleep_unless(|| RAISED.load(Ordering::Acquire) || LATE.load(Ordering::Acquire));
        }
        cpu::stop_timer();
        gic::disable(self.interrupt);
        if RAISED.load(Ordering::Acquire) {
            self.interrupts += 1;
        }
        Lines(self.raised().0 & lines.0)
    }

    fn now_us(&mut self) -> u64 {
        cpu::microseconds(cpu::ticks())
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let pa = self
            .pages
            .take(pages.into())
            .ok_or(DeviceError::OutOfMemory)?;
        let slot = self
            .ranges
            .get_mut(self.used)
            .ok_or(DeviceError::OutOfMemory)?;
        *slot = Range {
            va,
            pa,
            length: u64::from(pages) * PAGE,
        };
        self.used += 1;
        let mut tables = match self.tables {
            Some(tables) => tables,
            None => {
                PageTables::new(Format::Lpae, &mut self.pages).ok_or(DeviceError::OutOfMemory)?
            }
        };
        for page in 0..u64::from(pages) {
            tables
                .map(&mut self.pages, va + page * PAGE, pa + page * PAGE, access)
                .ok_or(DeviceError::OutOfMemory)?;
        }
        self.tables = Some(tables);
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let tables = self.tables.ok_or(DeviceError::NotMapped(0))?;
        tables.activate(self, 0, true)?;
        Ok(0)
    }

    fn release(&mut self) {
        self.used = 0;
        self.tables = None;
        self.pages.next = self.pages.start;
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.parts(va, bytes.len() as u64, |pa, done, size| {
            // SAFETY: `pa` lies in the pool for `size` bytes, and `done + size` is within `bytes`.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    bytes.as_ptr().add(done as usize),
                    pa as *mut u8,
                    size as usize,
                );
            }
        })
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let to = bytes.as_mut_ptr();
        self.parts(va, bytes.len() as u64, |pa, done, size| {
            // SAFETY: as in `write_memory`, in the other direction.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    pa as *const u8,
                    to.add(done as usize),
                    size as usize,
                );
            }
        })
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        self.parts(va, length, |pa, _, size| fill(pa, size, byte))
    }
}
