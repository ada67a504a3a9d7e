// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reset, cache cleaning and interrupt lines.

use mali_facts::registers::gpu::{
    GPU_CMD, GPU_INT_CLEAR, GPU_INT_MASK, GPU_INT_RAWSTAT, GPU_INT_STAT,
};
use mali_facts::registers::job::{JOB_INT_MASK, JOB_INT_RAWSTAT, JOB_INT_STAT};
use mali_facts::registers::mmu::{MMU_INT_MASK, MMU_INT_RAWSTAT, MMU_INT_STAT};
use mali_facts::registers::{GpuCommand, GpuInterrupt};

use gpureplay_core::DeviceError;
use gpureplay_core::gpu::{Gpu, Lines, poll};

/// Of each reset; ten times the drivers'.
const RESET_TIMEOUT_US: u32 = 100_000;
/// As drivers have it.
const CLEAN_TIMEOUT_US: u32 = 100_000;

/// Cleans and empties the caches.
///
/// # Errors
/// GPU_INT_RAWSTAT, if not in time.
pub fn clean_caches<G: Gpu + ?Sized>(gpu: &mut G) -> Result<(), u32> {
    let cleaned = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits();
    gpu.write32(GPU_INT_CLEAR, cleaned);
    gpu.write32(GPU_CMD, GpuCommand::CleanInvalidateCaches as u32);
    poll(gpu, GPU_INT_RAWSTAT, cleaned, cleaned, CLEAN_TIMEOUT_US)
}

/// [`Gpu::reset`]: soft, then hard.
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

/// Mask registers, in the order of [`Lines`].
pub const MASKS: [u32; 3] = [JOB_INT_MASK, MMU_INT_MASK, GPU_INT_MASK];

/// Pending, and let through by the masks.
pub fn raised(read: impl FnMut(u32) -> u32) -> Lines {
    lines([JOB_INT_STAT, MMU_INT_STAT, GPU_INT_STAT], read)
}

/// Pending lines, whatever the masks.
pub fn pending(read: impl FnMut(u32) -> u32) -> Lines {
    lines([JOB_INT_RAWSTAT, MMU_INT_RAWSTAT, GPU_INT_RAWSTAT], read)
}

fn lines(registers: [u32; 3], mut read: impl FnMut(u32) -> u32) -> Lines {
    let mut raised = 0;
    for (line, register) in registers.into_iter().enumerate() {
        raised |= u8::from(read(register) != 0) << line;
    }
    Lines(raised)
}
