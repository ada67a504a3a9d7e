// SPDX-License-Identifier: MIT OR Apache-2.0
//! One interrupt block: RAWSTAT, CLEAR, MASK and STAT behind one level-triggered line.

/// Pending and enabled interrupts of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interrupts {
    /// RAWSTAT: everything pending.
    pub(crate) raw: u32,
    /// MASK: what reaches the line.
    pub(crate) mask: u32,
}

impl Interrupts {
    /// STAT: what is pending and enabled. The line is high while this is not 0.
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

/// Levels of the three interrupt lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IrqLines {
    /// A job slot has something to report.
    pub job: bool,
    /// An address space has faulted.
    pub mmu: bool,
    /// GPU control has something to report.
    pub gpu: bool,
}

impl IrqLines {
    /// True when any line is high, for hosts that join the three.
    pub fn any(self) -> bool {
        self.job || self.mmu || self.gpu
    }
}
