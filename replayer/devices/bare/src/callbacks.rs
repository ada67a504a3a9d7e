// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine of callbacks for firmware in C.

use core::ffi::c_void;

use mali_drive::page_table::Format;

use crate::machine::{Machine, Memory};

/// `gpureplay_device` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Callbacks {
    /// Passed to every callback.
    pub context: *mut c_void,
    /// Reads a GPU register.
    pub read32: extern "C" fn(*mut c_void, u32) -> u32,
    /// Writes a GPU register.
    pub write32: extern "C" fn(*mut c_void, u32, u32),
    /// Monotonic clock in microseconds.
    pub now_us: extern "C" fn(*mut c_void) -> u64,
    /// Returns after an interrupt or this many microseconds, or earlier. None: polling.
    pub wait_interrupt: Option<extern "C" fn(*mut c_void, u32)>,
    /// Makes processor writes visible to the GPU. None: coherent.
    pub clean: Option<extern "C" fn(*mut c_void, *const c_void, usize)>,
    /// Makes GPU writes visible to the processor. None: coherent.
    pub invalidate: Option<extern "C" fn(*mut c_void, *const c_void, usize)>,
    /// For pages and page tables; aligned to 4096, exclusive during a session.
    pub arena: *mut u8,
    /// Size in bytes.
    pub arena_bytes: usize,
    /// Address as the GPU sees it.
    pub arena_bus: u64,
    /// 1: AArch64 tables; 0: Mali's LPAE.
    pub aarch64_tables: u8,
    /// Not 0 ends the run. None: never.
    pub cancelled: Option<extern "C" fn(*mut c_void) -> i32>,
}

impl Callbacks {
    /// Arena with one address for both sides; polling, coherent, no registers: for struct update.
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
            cancelled: None,
        }
    }
}

impl Machine for Callbacks {
    const CANCELS: bool = true;

    fn read32(&mut self, register: u32) -> u32 {
        (self.read32)(self.context, register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        (self.write32)(self.context, register, value);
    }

    fn now_us(&mut self) -> u64 {
        (self.now_us)(self.context)
    }

    fn wait_interrupt(&mut self, timeout_us: u32) {
        if let Some(wait) = self.wait_interrupt {
            wait(self.context, timeout_us);
        }
    }

    fn is_cancelled(&mut self) -> bool {
        self.cancelled
            .is_some_and(|cancelled| cancelled(self.context) != 0)
    }

    fn memory(&self) -> Memory {
        Memory {
            start: self.arena,
            bytes: self.arena_bytes,
            bus: self.arena_bus,
        }
    }

    fn format(&self) -> Format {
        if self.aarch64_tables == 0 {
            Format::Lpae
        } else {
            Format::AArch64
        }
    }

    fn is_coherent(&self) -> bool {
        self.clean.is_none()
    }

    fn clean(&self, start: *const u8, bytes: usize) {
        if let Some(clean) = self.clean {
            clean(self.context, start.cast(), bytes);
        }
    }

    fn invalidate(&self, start: *const u8, bytes: usize) {
        if let Some(invalidate) = self.invalidate {
            invalidate(self.context, start.cast(), bytes);
        }
    }
}
