// SPDX-License-Identifier: MIT OR Apache-2.0
//! One register of a batch: one 32-bit value for each lane.

/// Lanes of a batch: threads that execute together.
pub(crate) const LANES: usize = 64;

/// Lanes that a loop handles at once; the unit in which a batch may be narrower than [`LANES`].
pub(crate) const CHUNK: usize = 16;

/// Lanes whose addresses are classified together.
pub(crate) const GROUP: usize = 8;

/// One 32-bit value for each lane.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Row(pub(crate) [u32; LANES]);

impl Row {
    pub(crate) const ZERO: Row = Row([0; LANES]);
}

/// Lanes whose bits are set.
pub(crate) fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
