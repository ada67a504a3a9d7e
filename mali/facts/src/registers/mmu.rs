// SPDX-License-Identifier: MIT OR Apache-2.0
//! MMU interrupts.

use crate::registers::register::registers;

registers! {
    MMU_INT_RAWSTAT = 0x2000, Read, Interrupt, 0, "Pending MMU interrupts: bit n page fault, bit 16 + n bus error.";
    MMU_INT_CLEAR = 0x2004, Write, Interrupt, 0, "Clears the pending MMU interrupts written as 1.";
    MMU_INT_MASK = 0x2008, ReadWrite, Interrupt, 0, "MMU interrupts that reach the line.";
    MMU_INT_STAT = 0x200C, Read, Interrupt, 0, "MMU_INT_RAWSTAT and MMU_INT_MASK.";
}

/// Interrupt bit: page fault in `space`.
pub const fn page_fault(space: u32) -> u32 {
    1 << (space & 15)
}

/// Interrupt bit: bus error of a walk in `space`.
pub const fn bus_error(space: u32) -> u32 {
    1 << (16 + (space & 15))
}
