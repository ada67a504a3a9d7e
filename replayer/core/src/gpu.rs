// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the engine needs from a device.

use gpureplay_format::Access;
use mali_regs::gpu::{GPU_CMD, GPU_INT_CLEAR, GPU_INT_MASK, GPU_INT_RAWSTAT};
use mali_regs::{GpuCommand, GpuInterrupt};

/// A set of interrupt lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines(pub u8);

impl Lines {
    /// No line.
    pub const NONE: Self = Self(0);
    /// The job manager's line.
    pub const JOB: Self = Self(1);
    /// The MMU's line.
    pub const MMU: Self = Self(2);
    /// The line for resets, power and cache maintenance.
    pub const GPU: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);

    /// Whether a line of `other` is in `self`.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Why a device could not do what the engine asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There are not enough pages.
    OutOfMemory,
    /// Nothing is mapped at this GPU virtual address.
    NotMapped(u64),
    /// The GPU did not come back from a soft reset, nor from a hard one.
    ResetFailed,
    /// A command of the address space did not end.
    AddressSpaceStuck,
    /// The device is gone, or its driver refused; the number is the device's own.
    Refused(i32),
}

/// A Mali GPU with memory of its own.
///
/// Implementations: the model, the nano driver, /dev/mem, a firmware's registers. A device hands out zeroed pages, keeps
/// page tables for them (with [`crate::page_table`], or in the kernel) and does what caches need, so that `write_memory`
/// is seen by the GPU and `read_memory` sees what the GPU wrote.
pub trait Gpu {
    /// Reads the register at a byte offset.
    fn read32(&mut self, register: u32) -> u32;

    /// Writes the register at a byte offset.
    fn write32(&mut self, register: u32, value: u32);

    /// Waits until one of `lines` is raised or the time is over, and returns those that are raised. May return early with
    /// no line; the engine asks the registers and comes back.
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines;

    /// A clock that never goes back, in microseconds.
    fn now_us(&mut self) -> u64;

    /// Maps zeroed pages at a GPU virtual address. The engine maps everything before [`Gpu::activate`].
    ///
    /// # Errors
    /// Memory runs out, or the device refuses.
    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError>;

    /// Gives an address space the page tables of everything mapped so far and returns its number.
    ///
    /// # Errors
    /// The address space does not accept the command in time, or the device refuses.
    fn activate(&mut self) -> Result<u8, DeviceError>;

    /// Takes all mappings away and frees their pages. The engine resets the GPU before.
    fn release(&mut self);

    /// Puts bytes into mapped memory.
    ///
    /// # Errors
    /// The range is not mapped.
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Takes bytes out of mapped memory.
    ///
    /// # Errors
    /// The range is not mapped.
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Puts one repeated byte into mapped memory.
    ///
    /// # Errors
    /// The range is not mapped.
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        let block = [byte; 256];
        let (mut va, mut left) = (va, length);
        while left > 0 {
            let size = left.min(block.len() as u64);
            self.write_memory(va, block.get(..size as usize).unwrap_or(&block))?;
            va = va.wrapping_add(size);
            left -= size;
        }
        Ok(())
    }

    /// Asked between two chains: a device that is shared with others may give the GPU to one that waits, and returns when it has
    /// it again. `true` when it did so: the GPU is then reset, the memory untouched.
    ///
    /// # Errors
    /// The GPU did not come back.
    fn lend(&mut self) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Stops everything and brings the GPU to its state after power-on: a soft reset, then a hard one if that does
    /// not end.
    ///
    /// # Errors
    /// Neither ended in time.
    fn reset(&mut self) -> Result<(), DeviceError> {
        let completed = GpuInterrupt::RESET_COMPLETED.bits();
        let mut command = GpuCommand::SoftReset;
        loop {
            self.write32(GPU_INT_MASK, 0);
            self.write32(GPU_INT_CLEAR, completed);
            self.write32(GPU_CMD, command as u32);
            let reset = self.poll(GPU_INT_RAWSTAT, completed, completed, RESET_TIMEOUT_US);
            if reset.is_ok() {
                self.write32(GPU_INT_CLEAR, u32::MAX);
                return Ok(());
            }
            if matches!(command, GpuCommand::HardReset) {
                return Err(DeviceError::ResetFailed);
            }
            command = GpuCommand::HardReset;
        }
    }

    /// Reads a register until `read & mask == value`.
    ///
    /// # Errors
    /// The time is over; the value is what was read last.
    fn poll(&mut self, register: u32, mask: u32, value: u32, timeout_us: u32) -> Result<(), u32> {
        self.wait_for(register, mask, value, timeout_us, Lines::NONE)
    }

    /// Reads a register until `read & mask == value`, with a look each time that one of `lines` is raised.
    ///
    /// # Errors
    /// The time is over; the value is what was read last.
    fn wait_for(
        &mut self,
        register: u32,
        mask: u32,
        value: u32,
        timeout_us: u32,
        lines: Lines,
    ) -> Result<(), u32> {
        let start = self.now_us();
        loop {
            // The clock first: a register that changes just before the bound is still seen.
            let passed = self.now_us().wrapping_sub(start);
            let found = self.read32(register);
            if found & mask == value {
                return Ok(());
            }
            if passed > timeout_us.into() {
                return Err(found);
            }
            if lines != Lines::NONE {
                self.wait_irq(lines, slice(timeout_us));
            }
        }
    }
}

/// How long to wait for an interrupt before asking the registers again: a lost interrupt costs no more than this.
pub(crate) fn slice(timeout_us: u32) -> u32 {
    const LONGEST_US: u32 = 20_000;
    timeout_us.clamp(1, LONGEST_US)
}

/// Bound of each of the two resets, ten times what drivers allow.
const RESET_TIMEOUT_US: u32 = 100_000;

impl<G: Gpu + ?Sized> Gpu for &mut G {
    fn read32(&mut self, register: u32) -> u32 {
        (**self).read32(register)
    }
    fn write32(&mut self, register: u32, value: u32) {
        (**self).write32(register, value);
    }
    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        (**self).wait_irq(lines, timeout_us)
    }
    fn now_us(&mut self) -> u64 {
        (**self).now_us()
    }
    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        (**self).map(va, pages, access)
    }
    fn activate(&mut self) -> Result<u8, DeviceError> {
        (**self).activate()
    }
    fn release(&mut self) {
        (**self).release();
    }
    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        (**self).write_memory(va, bytes)
    }
    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        (**self).read_memory(va, bytes)
    }
    fn fill_memory(&mut self, va: u64, length: u64, byte: u8) -> Result<(), DeviceError> {
        (**self).fill_memory(va, length, byte)
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        (**self).lend()
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        (**self).reset()
    }
}
