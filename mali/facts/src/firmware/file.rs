// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware without code: the model is its processor.

use super::interface::{SECTION, SECTION_SIZE};

const HEADER: u32 = 20;
const ENTRY: u32 = 24;
/// In bytes.
pub const FILE_SIZE: usize = (HEADER + ENTRY) as usize;
const MAGIC: u32 = 0xc3f1_3a6e;
/// Version 0.3.
const VERSION: u32 = 3;
/// Read, written, coherent, shared, zero at the start.
const FLAGS: u32 = 1 | 1 << 1 | 3 << 3 | 1 << 30 | 1 << 31;

/// Firmware file, as the driver's `/lib/firmware/arm/mali/arch10.8/mali_csffw.bin`.
pub const fn file() -> [u8; FILE_SIZE] {
    let words = [
        MAGIC,
        VERSION,
        0,
        0,
        HEADER + ENTRY,
        // Type 0, and the entry's bytes.
        ENTRY << 8,
        FLAGS,
        SECTION,
        SECTION + SECTION_SIZE,
        // No data from the file.
        0,
        0,
    ];
    let mut file = [0; FILE_SIZE];
    let mut at = 0;
    while at < FILE_SIZE {
        file[at] = (words[at / 4] >> (8 * (at % 4))) as u8;
        at += 1;
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_a_header_and_one_section() {
        let file = file();
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| file[at + byte]));
        assert_eq!(word(0), 0xc3f1_3a6e);
        // The major version.
        assert_eq!(file[5], 0);
        assert_eq!(word(16) as usize, file.len());
        assert_eq!(word(20), 24 << 8);
        assert_eq!(word(24) & 1 << 30, 1 << 30);
        assert_eq!([word(28), word(32) % 4096], [0x0400_0000, 0]);
        assert!(word(32) > word(28));
    }
}
