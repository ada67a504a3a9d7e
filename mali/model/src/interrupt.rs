// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interrupt block: RAWSTAT, CLEAR, MASK, STAT, a level-triggered line.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interrupts {
    pub(crate) raw: u32,
    pub(crate) mask: u32,
}

impl Interrupts {
    pub(crate) fn status(self) -> u32 {
        self.raw & self.mask
    }

    pub(crate) fn raise(&mut self, bits: u32) {
        self.raw |= bits;
    }

    pub(crate) fn clear(&mut self, bits: u32) {
        self.raw &= !bits;
    }
}

/// Levels of the interrupt lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IrqLines {
    /// From a job slot.
    pub job: bool,
    /// An address space has faulted.
    pub mmu: bool,
    /// From GPU control.
    pub gpu: bool,
}

impl IrqLines {
    /// Whether any is high, for hosts that join them.
    pub fn any(self) -> bool {
        self.job || self.mmu || self.gpu
    }
}
