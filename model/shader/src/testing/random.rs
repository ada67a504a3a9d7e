// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that are the same each time.

/// State of a generator, not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.word() % n
    }
}
