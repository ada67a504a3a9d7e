// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds and enables the GPU on bus 0.

use crate::machine::{PCI_CONFIG, PCI_FIRST_INTERRUPT, PCI_WINDOW, read32, write32};

const IDENTITY: usize = 0x00;
const COMMAND: usize = 0x04;
const BAR0: usize = 0x10;
const MEMORY_AND_MASTER: u32 = 6;
const NOBODY: u32 = 0xffff_ffff;

pub struct Function {
    /// Address.
    pub registers: usize,
    /// Interrupt id of INTA.
    pub interrupt: u32,
}

/// `identity`: device id in the high half, vendor id in the low half.
pub fn find(identity: u32, mask: u32) -> Option<Function> {
    for slot in 0..32usize {
        let config = PCI_CONFIG + (slot << 15);
        let found = read32(config + IDENTITY);
        if found == NOBODY || found & mask != identity & mask {
            continue;
        }
        write32(config + BAR0, PCI_WINDOW as u32);
        write32(
            config + COMMAND,
            read32(config + COMMAND) | MEMORY_AND_MASTER,
        );
        return Some(Function {
            registers: PCI_WINDOW,
            interrupt: PCI_FIRST_INTERRUPT + slot as u32 % 4,
        });
    }
    None
}
