// SPDX-License-Identifier: MIT OR Apache-2.0
//! A register of a batch: 32 bits per lane.

pub(crate) const LANES: usize = 64;

/// Handled at once; batches narrower than [`LANES`] are multiples.
pub(crate) const CHUNK: usize = 16;

/// For classified addresses.
pub(crate) const GROUP: usize = 8;

#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Row(pub(crate) [u32; LANES]);

impl Row {
    pub(crate) const ZERO: Row = Row([0; LANES]);
}

pub(crate) fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}
