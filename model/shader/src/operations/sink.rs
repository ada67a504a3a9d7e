// SPDX-License-Identifier: MIT OR Apache-2.0
//! The address of a missing texel.

/// Its mark is in the top bits.
pub const SINK: u64 = 8 << 60;

/// Stores are dropped, loads give zero. No page is there: the top 16 bits of a page's address are equal.
pub fn is_sink(va: u64) -> bool {
    va >> 60 == SINK >> 60
}
