// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text on the PL011, without formatting machinery.

use crate::machine::{UART, read32, write32};

const FLAGS: usize = UART + 0x18;
const TRANSMIT_FULL: u32 = 1 << 5;

pub fn byte(value: u8) {
    // Bounded: a dead port does not stop the firmware.
    for _ in 0..1_000_000 {
        if read32(FLAGS) & TRANSMIT_FULL == 0 {
            break;
        }
    }
    write32(UART, u32::from(value));
}

pub fn text(text: &str) {
    for value in text.bytes() {
        byte(value);
    }
}

/// Writes a number in decimal.
pub fn number(mut value: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        value /= 10;
        first -= 1;
        if value == 0 {
            break;
        }
    }
    for &digit in digits.iter().skip(first) {
        byte(digit);
    }
}

/// Writes a number in hexadecimal, with prefix.
pub fn hex(value: u64) {
    text("0x");
    let digits = (64 - (value | 1).leading_zeros()).div_ceil(4);
    for digit in (0..digits).rev() {
        let nibble = (value >> (4 * digit)) as u8 & 15;
        byte(if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        });
    }
}
