// SPDX-License-Identifier: MIT OR Apache-2.0
//! LZ4 blocks of at most a page, with the segment's previous uploads as dictionary.
//!
//! Neighbouring jobs have similar descriptors and uniforms. Both sides append decoded blocks to a [`History`] of
//! [`WINDOW`] bytes; when a block does not fit, the second half moves to the first.

/// Bytes of a [`History`].
pub const WINDOW: usize = 32 * 1024;
const HALF: usize = WINDOW / 2;
/// Longest decoded block.
pub const MAX_BLOCK: usize = 4096;

/// Fill level of a history, with the sliding rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level(usize);

impl Level {
    /// Bytes in the buffer.
    pub const fn bytes(self) -> usize {
        self.0
    }

    const fn slides(self, length: usize) -> bool {
        self.0 + length > WINDOW
    }

    /// Level before a block of `length` bytes, after sliding if needed.
    pub const fn make_room(self, length: usize) -> Self {
        if self.slides(length) {
            Self(self.0.saturating_sub(HALF))
        } else {
            self
        }
    }
}

/// Decoded bytes, and room for the next block.
#[derive(Clone, Debug)]
pub struct History {
    halves: [[u8; HALF]; 2],
    level: Level,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// Empty history.
    pub const fn new() -> Self {
        Self {
            halves: [[0; HALF]; 2],
            level: Level(0),
        }
    }

    /// Forgets everything, at the start of each segment.
    pub fn clear(&mut self) {
        self.level = Level(0);
    }

    fn slide(&mut self, length: usize) {
        let room = self.level.make_room(length);
        if room != self.level {
            self.halves[0] = self.halves[1];
            self.level = room;
        }
    }

    /// Decodes a block and keeps its `length` bytes. `None` if [`check`] refuses it.
    pub fn decode(&mut self, block: &[u8], length: usize) -> Option<&[u8]> {
        if length > MAX_BLOCK {
            return None;
        }
        self.slide(length);
        let start = self.level.0;
        let end = start + length;
        let out = self.halves.as_flattened_mut().get_mut(..end)?;
        walk(block, out, start, end)?;
        self.level = Level(end);
        self.halves.as_flattened().get(start..end)
    }

    /// The whole history, and where the new bytes start.
    #[cfg(feature = "encode")]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (&[u8], usize) {
        self.slide(bytes.len());
        let start = self.level.0;
        let end = start + bytes.len();
        self.halves.as_flattened_mut()[start..end].copy_from_slice(bytes);
        self.level = Level(end);
        (&self.halves.as_flattened()[..end], start)
    }
}

/// The level after the block, if it decodes to exactly `length` bytes.
pub fn check(block: &[u8], level: Level, length: usize) -> Option<Level> {
    if length > MAX_BLOCK {
        return None;
    }
    let start = level.make_room(length).0;
    walk(block, &mut [], start, start + length)?;
    Some(Level(start + length))
}

fn extend(block: &mut &[u8], nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let (&byte, rest) = block.split_first()?;
            *block = rest;
            length += usize::from(byte);
            if length > MAX_BLOCK {
                return None;
            }
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}

/// Walks a block from output position `at` to `end`; an empty `out` only checks. `None` on any inconsistency.
fn walk(mut block: &[u8], out: &mut [u8], mut at: usize, end: usize) -> Option<()> {
    loop {
        let (&token, rest) = block.split_first()?;
        block = rest;
        let literals = extend(&mut block, token >> 4)?;
        let (bytes, rest) = block.split_at_checked(literals)?;
        block = rest;
        if literals > end - at {
            return None;
        }
        if let Some(to) = out.get_mut(at..at + literals) {
            to.copy_from_slice(bytes);
        }
        at += literals;
        if block.is_empty() {
            return (at == end && token & 15 == 0).then_some(());
        }
        let (&distance, rest) = block.split_first_chunk()?;
        block = rest;
        let distance = usize::from(u16::from_le_bytes(distance));
        let length = extend(&mut block, token & 15)? + 4;
        if distance == 0 || distance > at || length > end - at {
            return None;
        }
        // Takes time for the block, not for what it decodes to.
        if out.is_empty() {
            at += length;
            continue;
        }
        for _ in 0..length {
            if let Some(&byte) = out.get(at - distance)
                && let Some(to) = out.get_mut(at)
            {
                *to = byte;
            }
            at += 1;
        }
    }
}
