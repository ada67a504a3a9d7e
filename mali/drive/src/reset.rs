// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reset and cache cleaning.

use mali_facts::registers::gpu::{GPU_CMD, GPU_INT_CLEAR, GPU_INT_MASK, GPU_INT_RAWSTAT};
use mali_facts::registers::{GpuCommand, GpuInterrupt};

use gpureplay_core::DeviceError;
use gpureplay_core::gpu::{Gpu, poll};

/// Each; ten times the drivers'.
const RESET_TIMEOUT_US: u32 = 100_000;
/// As drivers have it.
const CLEAN_TIMEOUT_US: u32 = 100_000;

/// Cleans caches and empties them.
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
