// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU of a machine, in its memory.

use mali_drive::page_table::{PageTables, TableMemory};
use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines};
use gpureplay_format::{Access, PAGE_SIZE};

use crate::callbacks::Callbacks;
use crate::machine::Machine;

const PAGE: usize = PAGE_SIZE as usize;

/// [`DeviceError::Refused`] code.
const CANCELLED: i32 = 1;
/// Microseconds, beyond any wait of a recording (`Limits::DEFAULT`).
const HOUR_US: u64 = 3_600_000_000;

#[derive(Clone, Copy, Default)]
struct Cancellation {
    running: bool,
    chain: bool,
    cancelled: bool,
}

struct Arena<M> {
    machine: M,
    used: usize,
}

impl<M: Machine> Arena<M> {
    fn take(&mut self, pages: usize) -> Option<usize> {
        let start = self.used;
        let length = pages.checked_mul(PAGE)?;
        let end = start.checked_add(length)?;
        if end > self.machine.memory().bytes {
            return None;
        }
        self.used = end;
        self.fill(start, length, 0);
        Some(start)
    }

    /// The range lies inside what `take` gave.
    fn fill(&mut self, offset: usize, length: usize, byte: u8) {
        // SAFETY: inside of the machine's memory, which is the session's alone.
        unsafe { self.at(offset).write_bytes(byte, length) };
        self.machine.clean(self.at(offset), length);
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.machine.memory().start.wrapping_add(offset)
    }

    fn bus(&self, offset: usize) -> u64 {
        self.machine.memory().bus.wrapping_add(offset as u64)
    }

    fn offset(&self, bus: u64) -> usize {
        bus.wrapping_sub(self.machine.memory().bus) as usize
    }
}

impl<M: Machine> TableMemory for Arena<M> {
    fn allocate(&mut self) -> Option<u64> {
        let offset = self.take(1)?;
        Some(self.bus(offset))
    }
    fn read(&mut self, bus: u64) -> u64 {
        let entry: *mut u64 = self.at(self.offset(bus)).cast();
        // SAFETY: the builder passes slots of tables that `allocate` gave it.
        unsafe { entry.read_volatile() }
    }
    fn write(&mut self, bus: u64, value: u64) {
        let entry: *mut u64 = self.at(self.offset(bus)).cast();
        // SAFETY: as in `read`.
        unsafe { entry.write_volatile(value) };
        self.machine.clean(entry.cast(), size_of::<u64>());
    }
}

/// A machine's GPU as a [`Gpu`].
pub struct Device<M = Callbacks> {
    arena: Arena<M>,
    tables: Option<PageTables>,
    cancellation: Cancellation,
    ahead_us: u64,
}

impl<M: Machine> Device<M> {
    /// # Safety
    /// [`Machine::memory`] is aligned to 4096 and exclusive.
    pub const unsafe fn new(machine: M) -> Self {
        Self {
            arena: Arena { machine, used: 0 },
            tables: None,
            cancellation: Cancellation {
                running: false,
                chain: false,
                cancelled: false,
            },
            ahead_us: 0,
        }
    }

    /// Asks for cancellation from now on.
    pub fn begin_run(&mut self) {
        self.cancellation = Cancellation {
            running: true,
            ..Cancellation::default()
        };
    }

    /// Whether the run was cancelled.
    pub fn end_run(&mut self) -> bool {
        let cancelled = self.cancellation.cancelled;
        self.cancellation = Cancellation::default();
        cancelled
    }

    fn proceed(&mut self) -> Result<(), DeviceError> {
        if !M::CANCELS {
            return Ok(());
        }
        let asked = &mut self.cancellation;
        // What follows a cancellation, such as the reset, is not cancelled.
        if asked.running && !asked.cancelled {
            asked.cancelled = self.arena.machine.is_cancelled();
        }
        match asked.running && asked.cancelled {
            true => Err(DeviceError::Refused(CANCELLED)),
            false => Ok(()),
        }
    }

    /// The machine.
    pub const fn machine(&self) -> &M {
        &self.arena.machine
    }

    /// Bytes in use, with page tables.
    pub const fn memory_used(&self) -> usize {
        self.arena.used
    }

    /// `each` takes offset in memory, bytes done before, and length.
    fn parts(
        &mut self,
        va: u64,
        length: usize,
        mut each: impl FnMut(&mut Arena<M>, usize, usize, usize),
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let at = va.wrapping_add(done as u64);
            let missing = DeviceError::NotMapped(at);
            let tables = self.tables.ok_or(missing)?;
            let bus = tables.find(&mut self.arena, at).ok_or(missing)?;
            let offset = self.arena.offset(bus);
            let size = (PAGE - at as usize % PAGE).min(length - done);
            each(&mut self.arena, offset, done, size);
            done += size;
        }
        Ok(())
    }
}

impl<M: Machine> Gpu for Device<M> {
    fn read32(&mut self, register: u32) -> u32 {
        self.arena.machine.read32(register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.arena.machine.write32(register, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if M::CANCELS && self.cancellation.chain && self.proceed().is_err() {
            // Only the chain's wait ends; the reset's waits keep their time.
            self.cancellation.chain = false;
            self.ahead_us = self.ahead_us.saturating_add(HOUR_US);
            return Lines::NONE;
        }
        self.arena.machine.wait_interrupt(timeout_us);
        let raised = mali_drive::raised(|register| self.read32(register));
        Lines(raised.0 & lines.0)
    }

    fn now_us(&mut self) -> u64 {
        let ahead_us = if M::CANCELS { self.ahead_us } else { 0 };
        self.arena.machine.now_us().saturating_add(ahead_us)
    }

    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        self.proceed()?;
        if M::CANCELS {
            self.cancellation.chain = true;
        }
        Ok(())
    }

    fn after_chain(&mut self, _: &Chain, _: Result<(), ErrorKind>) {
        if M::CANCELS {
            self.cancellation.chain = false;
        }
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let offset = self
            .arena
            .take(pages as usize)
            .ok_or(DeviceError::OutOfMemory)?;
        let format = self.arena.machine.format();
        let mut tables = match self.tables {
            Some(tables) => tables,
            None => PageTables::new(format, &mut self.arena).ok_or(DeviceError::OutOfMemory)?,
        };
        let bus = self.arena.bus(offset);
        for page in 0..u64::from(pages) {
            let at = page * PAGE as u64;
            tables
                .map(
                    &mut self.arena,
                    va.wrapping_add(at),
                    bus.wrapping_add(at),
                    access,
                )
                .ok_or(DeviceError::OutOfMemory)?;
        }
        self.tables = Some(tables);
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        let coherent = self.arena.machine.is_coherent();
        let tables = self.tables.ok_or(DeviceError::NotMapped(0))?;
        tables.activate(self, 0, coherent)?;
        Ok(0)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }

    fn release(&mut self) {
        self.tables = None;
        self.arena.used = 0;
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.proceed()?;
        self.parts(va, bytes.len(), |arena, offset, done, size| {
            let from = bytes.as_ptr().wrapping_add(done);
            // SAFETY: `done + size` is within `bytes`, `offset + size` within the memory; they do not overlap.
            unsafe { arena.at(offset).copy_from_nonoverlapping(from, size) };
            arena.machine.clean(arena.at(offset), size);
        })
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let to = bytes.as_mut_ptr();
        self.parts(va, bytes.len(), |arena, offset, done, size| {
            arena.machine.invalidate(arena.at(offset), size);
            // SAFETY: as in `write_memory`, in the other direction.
            unsafe {
                arena
                    .at(offset)
                    .copy_to_nonoverlapping(to.wrapping_add(done), size)
            };
        })
    }

    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let length = usize::try_from(length).map_err(|_| DeviceError::NotMapped(va))?;
        self.proceed()?;
        self.parts(va, length, |arena, offset, _, size| {
            arena.fill(offset, size, byte)
        })
    }
}
