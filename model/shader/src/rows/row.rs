// SPDX-License-Identifier: MIT OR Apache-2.0
//! A register of a batch: 32 bits per lane.

/// Lanes of a batch.
pub const LANES: usize = 64;

/// Lanes handled at once; batches narrower than [`LANES`] are multiples.
pub(crate) const CHUNK: usize = 16;

/// Lanes whose addresses are classified together.
pub(crate) const GROUP: usize = 8;

/// A word per lane.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Row(pub [u32; LANES]);

impl Row {
    /// All zero.
    pub const ZERO: Row = Row([0; LANES]);
}

/// Set bits, ascending.
#[inline]
pub fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
