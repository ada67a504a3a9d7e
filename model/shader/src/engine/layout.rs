// SPDX-License-Identifier: MIT OR Apache-2.0
//! How work groups are laid out in batches of lanes.

use std::ops::Range;

use crate::rows::LANES;

/// The same for all host threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: u32,
    /// Lanes from one work group to the next in a batch; whole warps if lanes see one another.
    pub(crate) pitch: u32,
    pub(crate) together: u32,
    pub(crate) workgroups: u64,
}

impl Layout {
    /// How many times work groups run together.
    pub(crate) fn sets(&self) -> u64 {
        self.workgroups.div_ceil(self.together.into())
    }

    /// Per host thread.
    pub(crate) fn lanes(&self) -> u32 {
        self.pitch * self.together
    }

    /// Per host thread.
    pub(crate) fn batches(&self) -> usize {
        (self.lanes() as usize).div_ceil(LANES).max(1)
    }

    /// Per work group, with the lanes between groups.
    pub(crate) fn groups(&self, batch: usize) -> impl Iterator<Item = Range<usize>> {
        let (pitch, first) = (self.pitch as usize, batch * LANES);
        let lane = move |number: usize| number.saturating_sub(first).min(LANES);
        (0..self.together as usize).map(move |group| lane(group * pitch)..lane((group + 1) * pitch))
    }
}
