// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a firmware without operating system gives: registers, a clock, interrupts, memory.

use mali_drive::page_table::Format;

/// Memory for the GPU's pages and page tables.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Where it starts, as the processor sees it; aligned to 4096.
    pub start: *mut u8,
    /// Its size in bytes.
    pub bytes: usize,
    /// Where it starts, as the GPU sees it.
    pub bus: u64,
}

/// A machine with a GPU in it.
///
/// A firmware in Rust implements this; one in C fills [`crate::Callbacks`], which implement it.
pub trait Machine {
    /// Whether [`Machine::is_cancelled`] is asked at all. A firmware that cancels nothing does not carry the code for it.
    const CANCELS: bool = false;

    /// Reads the GPU's register at a byte offset.
    fn read32(&mut self, register: u32) -> u32;

    /// Writes the GPU's register at a byte offset. What was written to memory before must be visible to the GPU first.
    fn write32(&mut self, register: u32, value: u32);

    /// A clock in microseconds that never goes back.
    fn now_us(&mut self) -> u64;

    /// Returns after an interrupt of the GPU or after this many microseconds, and earlier if it likes: at once when the machine
    /// has no interrupts.
    fn wait_interrupt(&mut self, timeout_us: u32);

    /// Whether the run in progress should end: asked before each chain, while one runs, and before memory is copied. The run then fails,
    /// and the GPU is reset as after any error.
    fn is_cancelled(&mut self) -> bool {
        false
    }

    /// Memory that is the GPU's alone; always the same.
    fn memory(&self) -> Memory;

    /// Format of the page tables that the GPU gets.
    fn format(&self) -> Format {
        Format::Lpae
    }

    /// Whether the GPU sees what is in the processor's caches. Otherwise [`Machine::clean`] and [`Machine::invalidate`] matter.
    fn is_coherent(&self) -> bool {
        true
    }

    /// The processor wrote these bytes: makes them visible to the GPU.
    fn clean(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }

    /// The GPU wrote these bytes: makes them visible to the processor.
    fn invalidate(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }
}
