// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the addresses of an access have in common: the usual cases need no look at each lane.

use mali_model::probe::Access;

/// What the addresses of an access have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All lanes have this address.
    Uniform(u64),
    /// The lanes' bytes follow each other without a gap from this address on.
    Consecutive(u64),
    /// Anything else.
    Scattered,
}

impl Pattern {
    pub(crate) fn of(access: &Access<'_>) -> Pattern {
        let first = access.visit.lanes.active.trailing_zeros() as usize;
        if access.is_consecutive() {
            Pattern::Consecutive(access.address(first))
        } else if access.is_uniform() {
            Pattern::Uniform(access.address(first))
        } else {
            Pattern::Scattered
        }
    }
}
