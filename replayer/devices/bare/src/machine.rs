// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bare firmware gives: registers, a clock, interrupts, memory.

use mali_drive::page_table::Format;

/// Memory for GPU pages and page tables.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Start as the processor sees it; aligned to 4096.
    pub start: *mut u8,
    /// Size in bytes.
    pub bytes: usize,
    /// Start as the GPU sees it.
    pub bus: u64,
}

/// A machine with a GPU.
///
/// Firmware in C fills [`crate::Callbacks`], which implement it.
pub trait Machine {
    /// Whether [`Machine::is_cancelled`] is asked; `false` leaves its code out.
    const CANCELS: bool = false;

    /// Reads the GPU register at a byte offset.
    fn read32(&mut self, register: u32) -> u32;

    /// Writes the GPU register at a byte offset; earlier memory writes must be visible to the GPU first.
    fn write32(&mut self, register: u32, value: u32);

    /// Monotonic clock in microseconds.
    fn now_us(&mut self) -> u64;

    /// Returns after a GPU interrupt or this many microseconds, or earlier: at once without interrupts.
    fn wait_interrupt(&mut self, timeout_us: u32);

    /// Whether the run should end: asked before and during chains and before copies. The run fails and the GPU is
    /// reset.
    fn is_cancelled(&mut self) -> bool {
        false
    }

    /// Memory that only the GPU uses; always the same.
    fn memory(&self) -> Memory;

    /// Page-table format.
    fn format(&self) -> Format {
        Format::Lpae
    }

    /// Whether the GPU snoops caches. Otherwise implement [`Machine::clean`] and [`Machine::invalidate`].
    fn is_coherent(&self) -> bool {
        true
    }

    /// Makes bytes of the processor visible to the GPU.
    fn clean(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }

    /// Makes bytes of the GPU visible to the processor.
    fn invalidate(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }
}
