// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work groups in batches of lanes.

use std::ops::Range;

use crate::rows::LANES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: u32,
    /// Lanes between work groups; whole warps if lanes see one another.
    pub(crate) pitch: u32,
    pub(crate) together: u32,
    pub(crate) workgroups: u64,
}

impl Layout {
    pub(crate) fn sets(&self) -> u64 {
        self.workgroups.div_ceil(self.together.into())
    }

    pub(crate) fn lanes(&self) -> u32 {
        self.pitch * self.together
    }

    pub(crate) fn batches(&self) -> usize {
        (self.lanes() as usize).div_ceil(LANES).max(1)
    }

    pub(crate) fn groups(&self, batch: usize) -> impl Iterator<Item = Range<usize>> {
        let (pitch, first) = (self.pitch as usize, batch * LANES);
        let lane = move |number: usize| number.saturating_sub(first).min(LANES);
        (0..self.together as usize).map(move |group| lane(group * pitch)..lane((group + 1) * pitch))
    }
}
