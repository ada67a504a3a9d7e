// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job interrupts.

use crate::registers::register::registers;

registers! {
    JOB_INT_RAWSTAT = 0x1000, Read, Interrupt, 0, "Pending job interrupts: bit n done, bit 16 + n failed.";
    JOB_INT_CLEAR = 0x1004, Write, Interrupt, 0, "Clears the pending job interrupts written as 1.";
    JOB_INT_MASK = 0x1008, ReadWrite, Interrupt, 0, "Job interrupts that reach the line.";
    JOB_INT_STAT = 0x100C, Read, Interrupt, 0, "JOB_INT_RAWSTAT and JOB_INT_MASK.";
    JOB_INT_JS_STATE = 0x1010, Read, Status, 0, "Bit n: slot n runs a job; bit 16 + n: its NEXT registers hold one.";
    JOB_INT_THROTTLE = 0x1014, ReadWrite, Quirk, 0, "Cycles between two job interrupts.";
}

/// Interrupt bit: a chain completed on `slot`.
pub const fn done(slot: u32) -> u32 {
    1 << (slot & 15)
}

/// Interrupt bit: a chain failed on `slot`.
pub const fn failed(slot: u32) -> u32 {
    1 << (16 + (slot & 15))
}

/// JOB_INT_JS_STATE bit: `slot` runs a job.
pub const fn active(slot: u32) -> u32 {
    done(slot)
}

/// JOB_INT_JS_STATE: in NEXT registers.
pub const fn next_pending(slot: u32) -> u32 {
    failed(slot)
}
