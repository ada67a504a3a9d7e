// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bare firmware provides.

use mali_drive::page_table::Format;

/// Memory for GPU pages and page tables.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// For the processor; aligned to 4096.
    pub start: *mut u8,
    /// Size.
    pub bytes: usize,
    /// Start as the GPU sees it.
    pub bus: u64,
}

/// A machine with a GPU; [`crate::Callbacks`] is one for C.
pub trait Machine {
    /// `false` leaves [`Machine::is_cancelled`] out.
    const CANCELS: bool = false;

    /// Reads a GPU register.
    fn read32(&mut self, register: u32) -> u32;

    /// Writes a GPU register once the GPU sees earlier memory writes.
    fn write32(&mut self, register: u32, value: u32);

    /// Monotonic clock.
    fn now_us(&mut self) -> u64;

    /// Returns after an interrupt or the timeout, or earlier.
    fn wait_interrupt(&mut self, timeout_us: u32);

    /// Asked before and during chains and before copies; ends the run and resets the GPU.
    fn is_cancelled(&mut self) -> bool {
        false
    }

    /// Exclusive memory, always the same.
    fn memory(&self) -> Memory;

    /// Page-table format.
    fn format(&self) -> Format {
        Format::Lpae
    }

    /// Whether the GPU sees the processor's caches. If not, implement [`Machine::clean`] and
    /// [`Machine::invalidate`].
    fn is_coherent(&self) -> bool {
        true
    }

    /// Makes processor writes visible to the GPU.
    fn clean(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }

    /// Makes GPU writes visible to the processor.
    fn invalidate(&self, start: *const u8, bytes: usize) {
        let _ = (start, bytes);
    }
}
