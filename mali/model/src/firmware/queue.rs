// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream's state.

use mali_valhall::streams::{Sequencer, Sync};

/// What outlives a suspension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) sequencer: Sequencer,
    pub(super) waiting: Option<Sync>,
    /// Fault since the last barrier of errors; dispatches do nothing meanwhile.
    pub(super) error: u32,
    /// Ended with a fatal fault.
    pub(super) failed: bool,
}
