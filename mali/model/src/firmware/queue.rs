// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream's state.

use mali_isa::valhall::streams::{Sequencer, Sync};

/// Outlives a suspension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) sequencer: Sequencer,
    pub(super) waiting: Option<Sync>,
    /// Until a barrier of errors; dispatches do nothing meanwhile.
    pub(super) error: u32,
    pub(super) failed: bool,
}
