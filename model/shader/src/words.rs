// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words and bytes of an access to memory.

/// Of an access of at most 16 bytes.
pub type Words = [u32; 4];

/// In little-endian order.
#[inline]
pub fn words_of(bytes: [u8; 16]) -> Words {
    let value = u128::from_le_bytes(bytes);
    [
        value as u32,
        (value >> 32) as u32,
        (value >> 64) as u32,
        (value >> 96) as u32,
    ]
}

/// In little-endian order.
#[inline]
pub fn bytes_of(words: Words) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
