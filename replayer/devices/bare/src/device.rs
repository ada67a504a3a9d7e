// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU behind callbacks, with pages from an arena.

use core::ffi::c_void;

use gpureplay_core::page_table::{Format, PageTables, TableMemory};
use gpureplay_core::{DeviceError, Gpu, Lines};
use gpureplay_format::{Access, PAGE_SIZE};
use mali_regs::gpu::GPU_INT_RAWSTAT;
use mali_regs::job::JOB_INT_RAWSTAT;
use mali_regs::mmu::MMU_INT_RAWSTAT;

const PAGE: usize = PAGE_SIZE as usize;

/// What the surrounding firmware gives; `gpureplay_device` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Callbacks {
    /// Passed to every callback.
    pub context: *mut c_void,
    /// Reads the GPU's register at a byte offset.
    pub read32: extern "C" fn(*mut c_void, u32) -> u32,
    /// Writes the GPU's register at a byte offset.
    pub write32: extern "C" fn(*mut c_void, u32, u32),
    /// A clock in microseconds that never goes back.
    pub now_us: extern "C" fn(*mut c_void) -> u64,
    /// Returns after an interrupt of the GPU or after this many microseconds, and earlier if it likes. None: polling.
    pub wait_interrupt: Option<extern "C" fn(*mut c_void, u32)>,
    /// The processor wrote these bytes: makes them visible to the GPU. None: caches are coherent.
    pub clean: Option<extern "C" fn(*mut c_void, *const c_void, usize)>,
    /// The GPU wrote these bytes: makes them visible to the processor. None: caches are coherent.
    pub invalidate: Option<extern "C" fn(*mut c_void, *const c_void, usize)>,
    /// Memory for the GPU's pages and page tables, aligned to 4096; used by nobody else while a session is open.
    pub arena: *mut u8,
    /// Its size in bytes.
    pub arena_bytes: usize,
    /// Its address as the GPU sees it.
    pub arena_bus: u64,
    /// 1: page tables in the AArch64 format; 0: in Mali's LPAE format.
    pub aarch64_tables: u8,
}

impl Callbacks {
    /// An arena whose addresses are the same for the processor and the GPU; polling, coherent caches, no registers: a start for
    /// struct update syntax.
    pub const fn arena(address: usize, bytes: usize) -> Self {
        extern "C" fn read32(_: *mut c_void, _: u32) -> u32 {
            0
        }
        extern "C" fn write32(_: *mut c_void, _: u32, _: u32) {}
        extern "C" fn now_us(_: *mut c_void) -> u64 {
            u64::MAX
        }
        Self {
            context: core::ptr::null_mut(),
            read32,
            write32,
            now_us,
            wait_interrupt: None,
            clean: None,
            invalidate: None,
            arena: core::ptr::with_exposed_provenance_mut(address),
            arena_bytes: bytes,
            arena_bus: address as u64,
            aarch64_tables: 0,
        }
    }
}

/// The arena, handed out from its start on and taken back all at once.
struct Arena {
    callbacks: Callbacks,
    used: usize,
}

impl Arena {
    /// Zeroed pages; their offset.
    fn take(&mut self, pages: usize) -> Option<usize> {
        let start = self.used;
        let length = pages.checked_mul(PAGE)?;
        let end = start.checked_add(length)?;
        if end > self.callbacks.arena_bytes {
            return None;
        }
        self.used = end;
        self.fill(start, length, 0);
        Some(start)
    }

    /// Callers pass offsets and lengths inside of what `take` gave.
    fn fill(&mut self, offset: usize, length: usize, byte: u8) {
        // SAFETY: inside of the arena, which is the session's alone.
        unsafe { self.callbacks.arena.add(offset).write_bytes(byte, length) };
        self.clean(offset, length);
    }

    fn clean(&self, offset: usize, length: usize) {
        if let Some(clean) = self.callbacks.clean {
            clean(self.callbacks.context, self.at(offset).cast(), length);
        }
    }

    fn invalidate(&self, offset: usize, length: usize) {
        if let Some(invalidate) = self.callbacks.invalidate {
            invalidate(self.callbacks.context, self.at(offset).cast(), length);
        }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.callbacks.arena.wrapping_add(offset)
    }

    /// The word of a page table at a bus address.
    fn entry(&self, bus: u64) -> *mut u64 {
        self.at(bus.wrapping_sub(self.callbacks.arena_bus) as usize)
            .cast()
    }
}

impl TableMemory for Arena {
    fn allocate(&mut self) -> Option<u64> {
        let offset = self.take(1)?;
        self.callbacks.arena_bus.checked_add(offset as u64)
    }
    fn read(&mut self, bus: u64) -> u64 {
        // SAFETY: the builder passes slots of tables that `allocate` gave it.
        unsafe { self.entry(bus).read() }
    }
    fn write(&mut self, bus: u64, entry: u64) {
        // SAFETY: as in `read`.
        unsafe { self.entry(bus).write(entry) };
        self.clean(bus.wrapping_sub(self.callbacks.arena_bus) as usize, 8);
    }
}

/// A [`Gpu`] of callbacks.
pub struct Device {
    arena: Arena,
    tables: Option<PageTables>,
}

impl Device {
    /// A device of these callbacks.
    ///
    /// # Safety
    /// `arena` points at `arena_bytes` bytes, aligned to 4096, that nobody else uses as long as the device lives.
    pub const unsafe fn new(callbacks: Callbacks) -> Self {
        Self {
            arena: Arena { callbacks, used: 0 },
            tables: None,
        }
    }

    /// Bytes of the arena in use.
    pub const fn memory_used(&self) -> usize {
        self.arena.used
    }

    /// Calls `each` with offset in the arena, bytes done before, and length for every part of a GPU address range.
    fn parts(
        &mut self,
        va: u64,
        length: usize,
        mut each: impl FnMut(&mut Arena, usize, usize, usize),
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let at = va.wrapping_add(done as u64);
            let missing = DeviceError::NotMapped(at);
            let tables = self.tables.ok_or(missing)?;
            let bus = tables.find(&mut self.arena, at).ok_or(missing)?;
            let offset = bus.wrapping_sub(self.arena.callbacks.arena_bus) as usize;
            let size = (PAGE - at as usize % PAGE).min(length - done);
            each(&mut self.arena, offset, done, size);
            done += size;
        }
        Ok(())
    }
}

impl Gpu for Device {
    fn read32(&mut self, register: u32) -> u32 {
        (self.arena.callbacks.read32)(self.arena.callbacks.context, register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        (self.arena.callbacks.write32)(self.arena.callbacks.context, register, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        if let Some(wait) = self.arena.callbacks.wait_interrupt {
            wait(self.arena.callbacks.context, timeout_us);
        }
        let mut raised = 0;
        for (bit, register) in [
            (1, JOB_INT_RAWSTAT),
            (2, MMU_INT_RAWSTAT),
            (4, GPU_INT_RAWSTAT),
        ] {
            // RAWSTAT + 12 is STAT: what the masks let through.
            if self.read32(register + 12) != 0 {
                raised |= bit;
            }
        }
        Lines(raised & lines.0)
    }

    fn now_us(&mut self) -> u64 {
        (self.arena.callbacks.now_us)(self.arena.callbacks.context)
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let offset = self
            .arena
            .take(pages as usize)
            .ok_or(DeviceError::OutOfMemory)?;
        let format = if self.arena.callbacks.aarch64_tables == 0 {
            Format::Lpae
        } else {
            Format::AArch64
        };
        let mut tables = match self.tables {
            Some(tables) => tables,
            None => PageTables::new(format, &mut self.arena).ok_or(DeviceError::OutOfMemory)?,
        };
        let bus = self.arena.callbacks.arena_bus.wrapping_add(offset as u64);
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
        let coherent = self.arena.callbacks.clean.is_none();
        let tables = self.tables.ok_or(DeviceError::NotMapped(0))?;
        tables.activate(self, 0, coherent)?;
        Ok(0)
    }

    fn release(&mut self) {
        self.tables = None;
        self.arena.used = 0;
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.parts(va, bytes.len(), |arena, offset, done, size| {
            let from = bytes.as_ptr().wrapping_add(done);
            // SAFETY: `done + size` is within `bytes`, `offset + size` within the arena; they do not overlap.
            unsafe { arena.at(offset).copy_from_nonoverlapping(from, size) };
            arena.clean(offset, size);
        })
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let to = bytes.as_mut_ptr();
        self.parts(va, bytes.len(), |arena, offset, done, size| {
            arena.invalidate(offset, size);
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
        self.parts(va, length, |arena, offset, _, size| {
            arena.fill(offset, size, byte)
        })
    }
}
