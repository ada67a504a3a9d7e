// SPDX-License-Identifier: MIT OR Apache-2.0
//! How work groups are laid out in batches of lanes.

use std::ops::Range;

use crate::rows::LANES;

/// How work groups are laid out in batches; the same for all host threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Threads of a work group.
    pub(crate) size: u32,
    /// Lanes from one work group to the next when several share a batch; a whole number of warps if lanes see one
    /// another.
    pub(crate) pitch: u32,
    /// Work groups that run together.
    pub(crate) together: u32,
    /// Work groups in all.
    pub(crate) workgroups: u64,
}

impl Layout {
    /// How many times work groups run together.
    pub(crate) fn sets(&self) -> u64 {
        self.workgroups.div_ceil(self.together.into())
    }

    /// Lanes that a host thread has.
    pub(crate) fn lanes(&self) -> u32 {
        self.pitch * self.together
    }

    /// Batches of lanes that a host thread has.
    pub(crate) fn batches(&self) -> usize {
        (self.lanes() as usize).div_ceil(LANES).max(1)
    }

    /// The lanes of a batch that each of the work groups has, those between groups included.
    pub(crate) fn groups(&self, batch: usize) -> impl Iterator<Item = Range<usize>> {
        let (pitch, first) = (self.pitch as usize, batch * LANES);
        let lane = move |number: usize| number.saturating_sub(first).min(LANES);
        (0..self.together as usize).map(move |group| lane(group * pitch)..lane((group + 1) * pitch))
    }
}
