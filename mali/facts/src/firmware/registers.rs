// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers unlike the job manager's: identity, power, MMU and GPU interrupts are alike.

/// In bytes, with doorbells.
pub const WINDOW_SIZE: u32 = 0x20_0000;

/// Read: front end, processor.
pub const CSF_ID: u32 = 0x1c;
/// Write: a [`Command`].
pub const GPU_COMMAND: u32 = 0x30;
/// Write: a [`Processor`] state.
pub const MCU_CONTROL: u32 = 0x700;
/// Read: the firmware's processor.
pub const MCU_STATUS: u32 = 0x704;
/// Raw. [`clear`](JOB_INT_CLEAR), [`mask`](JOB_INT_MASK), [`status`](JOB_INT_STAT) follow.
pub const JOB_INT_RAWSTAT: u32 = 0x1000;
/// Write: clears bits.
pub const JOB_INT_CLEAR: u32 = 0x1004;
/// Bits that reach the line.
pub const JOB_INT_MASK: u32 = 0x1008;
/// Raw and not masked.
pub const JOB_INT_STAT: u32 = 0x100c;
/// Firmware interrupt; group `n` has bit `n`.
pub const GLOBAL_INTERFACE: u32 = 1 << 31;
/// GPU interrupt.
pub const MCU_STATUS_CHANGED: u32 = 1 << 19;
/// Read: latest cache flush's number. Apps map this page.
pub const LATEST_FLUSH: u32 = 0x1_0000;
/// Write: doorbell 0 (global); a page each.
pub const DOORBELLS: u32 = 0x8_0000;
/// In bytes.
pub const DOORBELL_STRIDE: u32 = 0x1_0000;

/// Number of the doorbell at an offset.
pub const fn doorbell(offset: u32) -> Option<u32> {
    match offset >= DOORBELLS && offset < WINDOW_SIZE && offset.is_multiple_of(DOORBELL_STRIDE) {
        true => Some((offset - DOORBELLS) / DOORBELL_STRIDE),
        false => None,
    }
}

/// Commands of [`GPU_COMMAND`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    Nop,
    /// Soft or hard reset.
    Reset,
    /// Clean or invalidate caches.
    FlushCaches,
}

impl Command {
    /// As written.
    pub const HARD_RESET: u32 = 0x201;

    /// Command from a written value.
    pub const fn from_bits(value: u32) -> Option<Command> {
        match (value & 0xff, value >> 8) {
            (0, 0) => Some(Command::Nop),
            (1, 1 | 2) => Some(Command::Reset),
            (4, _) => Some(Command::FlushCaches),
            _ => None,
        }
    }
}

/// The firmware's processor, [`MCU_STATUS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Processor {
    /// Off.
    #[default]
    Disabled = 0,
    /// The firmware runs.
    Enabled = 1,
    /// The firmware ended on request.
    Halted = 2,
    /// The firmware cannot go on.
    Fatal = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_have_a_page_each() {
        assert_eq!(doorbell(0x8_0000), Some(0));
        assert_eq!(doorbell(0x9_0000), Some(1));
        assert_eq!(doorbell(0x1f_0000), Some(23));
        assert_eq!(doorbell(0x9_0004), None);
        assert_eq!(doorbell(LATEST_FLUSH), None);
        assert_eq!(doorbell(WINDOW_SIZE), None);
    }

    #[test]
    fn commands_have_a_type_and_a_payload() {
        for value in [0x101, 0x201] {
            assert_eq!(Command::from_bits(value), Some(Command::Reset));
        }
        assert_eq!(Command::from_bits(0x3304), Some(Command::FlushCaches));
        for value in [1, 0x301, 2, 7] {
            assert_eq!(Command::from_bits(value), None, "{value:#x}");
        }
    }
}
