// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an access's addresses have in common.

use gpureplay_shader::probe::Access;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Uniform(u64),
    Consecutive(u64),
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
