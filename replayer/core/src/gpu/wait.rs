// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded waits, and fills of memory.

use super::Gpu;
use crate::error::DeviceError;

/// Reads a register until `read & mask == value`, without interrupts.
///
/// # Errors
/// The last value, at the end of the time.
pub fn poll<G: Gpu + ?Sized>(
    gpu: &mut G,
    register: u32,
    mask: u32,
    value: u32,
    timeout_us: u32,
) -> Result<(), u32> {
    let start = gpu.now_us();
    loop {
        // Clock first: a change just before the bound is seen.
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
