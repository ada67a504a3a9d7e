// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded waits for registers, and what devices do by register accesses alone: reset, cleaning of caches.

use mali_regs::gpu::{GPU_CMD, GPU_INT_CLEAR, GPU_INT_MASK, GPU_INT_RAWSTAT};
use mali_regs::{GpuCommand, GpuInterrupt};

use super::Gpu;
use crate::error::DeviceError;

/// Bound of each of the two resets, ten times what drivers allow.
const RESET_TIMEOUT_US: u32 = 100_000;
/// Bound of a cache clean, as drivers have it.
const CLEAN_TIMEOUT_US: u32 = 100_000;

/// Reads a register until `read & mask == value`, without waiting for interrupts.
///
/// # Errors
/// The time is over; the value is what was read last.
pub fn poll<G: Gpu + ?Sized>(
    gpu: &mut G,
    register: u32,
    mask: u32,
    value: u32,
    timeout_us: u32,
) -> Result<(), u32> {
    let start = gpu.now_us();
    loop {
        // The clock first: a register that changes just before the bound is still seen.
        let passed = gpu.now_us().wrapping_sub(start);
        let found = gpu.read32(register);
        if found & mask == value {
            return Ok(());
        }
        if passed > timeout_us.into() {
            return Err(found);
        }
    }
}

/// Has the GPU write its caches to memory and empty them.
///
/// # Errors
/// It did not end in time; the value is GPU_INT_RAWSTAT.
pub fn clean_caches<G: Gpu + ?Sized>(gpu: &mut G) -> Result<(), u32> {
    let cleaned = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits();
    gpu.write32(GPU_INT_CLEAR, cleaned);
    gpu.write32(GPU_CMD, GpuCommand::CleanInvalidateCaches as u32);
    poll(gpu, GPU_INT_RAWSTAT, cleaned, cleaned, CLEAN_TIMEOUT_US)
}

/// [`Gpu::reset`] by registers: a soft reset, then a hard one if that does not end.
///
/// # Errors
/// Neither ended in time.
pub fn reset<G: Gpu + ?Sized>(gpu: &mut G) -> Result<(), DeviceError> {
    let completed = GpuInterrupt::RESET_COMPLETED.bits();
    let mut command = GpuCommand::SoftReset;
    loop {
        gpu.write32(GPU_INT_MASK, 0);
        gpu.write32(GPU_INT_CLEAR, completed);
        gpu.write32(GPU_CMD, command as u32);
        if poll(gpu, GPU_INT_RAWSTAT, completed, completed, RESET_TIMEOUT_US).is_ok() {
            gpu.write32(GPU_INT_CLEAR, u32::MAX);
            return Ok(());
        }
        if matches!(command, GpuCommand::HardReset) {
            return Err(DeviceError::ResetFailed);
        }
        command = GpuCommand::HardReset;
    }
}

/// [`Gpu::fill_memory`] in blocks.
pub(crate) fn fill<G: Gpu + ?Sized>(
    gpu: &mut G,
    mut va: u64,
    mut left: u64,
    byte: u8,
) -> Result<(), DeviceError> {
    let block = [byte; 256];
    while left > 0 {
        let size = left.min(block.len() as u64);
        gpu.write_memory(va, block.get(..size as usize).unwrap_or(&block))?;
        va = va.wrapping_add(size);
        left -= size;
    }
    Ok(())
}
