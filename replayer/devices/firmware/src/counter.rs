// SPDX-License-Identifier: MIT OR Apache-2.0
//! A growing counter in NOR flash: Intel command set (JEDEC JESD68).
//!
//! Each value is its own record in one erase block: an interrupted write loses no older value. A full block accepts
//! no more: 16,384 updates.

use crate::machine::{FLASH, FLASH_BLOCK, read32, write32};

/// Words: low and high half, and both inverted.
const RECORD: usize = 4;
const RECORDS: usize = FLASH_BLOCK / (RECORD * 4);
const ERASED: u32 = u32::MAX;
/// Both 16-bit chips take the command.
const READ_ARRAY: u32 = 0x00ff_00ff;
const PROGRAM: u32 = 0x0040_0040;
/// Both chips are ready, without error.
const READY: u32 = 0x0080_0080;
/// State reads per write.
const PATIENCE: u32 = 1_000_000;

pub struct Counter {
    /// Largest stored; 0 for none.
    pub value: u64,
    free: usize,
}

fn word(record: usize, at: usize) -> usize {
    FLASH + (record * RECORD + at) * 4
}

/// `None` without flash or place for another value.
pub fn read() -> Option<Counter> {
    write32(FLASH, READ_ARRAY);
    let mut value = 0;
    for record in 0..RECORDS {
        let [low, high, not_low, not_high] = [0, 1, 2, 3].map(|at| read32(word(record, at)));
        if low & high & not_low & not_high == ERASED {
            let free = record;
            return Some(Counter { value, free });
        }
        if low == !not_low && high == !not_high {
            value = value.max(u64::from(high) << 32 | u64::from(low));
        }
    }
    None
}

impl Counter {
    /// Stores a value, only upwards; `false` when the flash did not take it.
    pub fn raise(&self, value: u64) -> bool {
        if value <= self.value {
            return true;
        }
        let (low, high) = (value as u32, (value >> 32) as u32);
        let mut written = true;
        for (at, half) in [low, high, !low, !high].into_iter().enumerate() {
            written &= program(word(self.free, at), half);
        }
        written && read().is_some_and(|after| after.value == value)
    }
}

fn program(address: usize, value: u32) -> bool {
    write32(address, PROGRAM);
    write32(address, value);
    let ready = (0..PATIENCE).any(|_| read32(address) & READY == READY);
    write32(address, READ_ARRAY);
    ready
}
