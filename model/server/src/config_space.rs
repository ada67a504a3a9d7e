// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI configuration space.

use std::ops::Range;

pub(crate) const SIZE: usize = 256;

/// Of QEMU's test devices; no driver claims it.
const VENDOR: u16 = 0x1234;

/// Base class 0xff: no class driver binds.
const CLASS: [u8; 3] = [0x00, 0x80, 0xff];

const COMMAND: Range<usize> = 0x04..0x06;
const STATUS: usize = 0x06;
const BAR0: Range<usize> = 0x10..0x14;
const INTERRUPT_LINE: usize = 0x3c;
const INTERRUPT_PIN: usize = 0x3d;

const INTERRUPT_STATUS: u8 = 1 << 3;

pub(crate) struct ConfigSpace {
    bytes: [u8; SIZE],
    writable: [u8; SIZE],
}

impl ConfigSpace {
    /// One memory BAR (a power of two, at least 16), pin INTA.
    pub(crate) fn new(device: u16, bar_size: u32) -> ConfigSpace {
        let mut bytes = [0; SIZE];
        bytes[0..2].copy_from_slice(&VENDOR.to_le_bytes());
        bytes[2..4].copy_from_slice(&device.to_le_bytes());
        bytes[9..12].copy_from_slice(&CLASS);
        bytes[INTERRUPT_PIN] = 1;
        let mut writable = [0; SIZE];
        // Memory space, bus master, parity and system error, interrupt disable.
        writable[COMMAND].copy_from_slice(&0x0546u16.to_le_bytes());
        writable[BAR0].copy_from_slice(&(!(bar_size - 1)).to_le_bytes());
        writable[INTERRUPT_LINE] = 0xff;
        ConfigSpace { bytes, writable }
    }

    /// Beyond the end it reads 0.
    pub(crate) fn read(&self, offset: u64, to: &mut [u8], interrupt: bool) {
        for (byte, at) in to.iter_mut().zip(start(offset)..) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
            if at == STATUS && interrupt {
                *byte |= INTERRUPT_STATUS;
            }
        }
    }

    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) {
        for (value, at) in from.iter().zip(start(offset)..) {
            if let (Some(byte), Some(mask)) = (self.bytes.get_mut(at), self.writable.get(at)) {
                *byte = *byte & !mask | value & mask;
            }
        }
    }

    pub(crate) fn reset(&mut self) {
        for (byte, mask) in self.bytes.iter_mut().zip(self.writable) {
            *byte &= !mask;
        }
    }
}

fn start(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(SIZE).min(SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(config: &ConfigSpace, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        config.read(offset, &mut bytes, false);
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn the_bar_reports_its_size() {
        let mut config = ConfigSpace::new(0x7212, 0x10000);
        assert_eq!(word(&config, 0), 0x7212_1234);
        config.write(0x10, &[0xff; 4]);
        assert_eq!(word(&config, 0x10), 0xffff_0000);
        config.write(0x10, &0x1000_0000u32.to_le_bytes());
        assert_eq!(word(&config, 0x10), 0x1000_0000);
        config.write(0x14, &[0xff; 4]);
        assert_eq!(word(&config, 0x14), 0);
        config.reset();
        assert_eq!(word(&config, 0x10), 0);
    }

    #[test]
    fn identity_cannot_be_written_and_the_end_is_safe() {
        let mut config = ConfigSpace::new(0x7212, 0x10000);
        config.write(0, &[0xff; 4]);
        config.write(254, &[0xff; 8]);
        config.write(u64::MAX, &[1]);
        assert_eq!(word(&config, 0), 0x7212_1234);
        assert_eq!(word(&config, 254), 0);
        let mut status = [0; 2];
        config.read(6, &mut status, true);
        assert_eq!(status, [8, 0]);
    }
}
