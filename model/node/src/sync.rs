// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fences and sync objects. A chain or a stream has ended when its request returns, so there is no fence that waits: a sync object has one that tells how
//! one ended, or none.

use std::sync::{Mutex, PoisonError};

use crate::errno::Errno;

/// How the work in front of a fence ended.
pub(crate) type Fence = Result<(), Errno>;

/// A sync object, which files can share. It may be a time line, whose points are reached in their order.
#[derive(Debug, Default)]
pub(crate) struct SyncObject(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    fence: Option<Fence>,
    /// The last point; 0 without a time line.
    point: u64,
}

impl SyncObject {
    pub(crate) fn new(fence: Option<Fence>) -> Self {
        Self(Mutex::new(State { fence, point: 0 }))
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        self.state().fence
    }

    /// The fence of a point, 0 being all that there is; `None` for one that nothing was submitted for.
    pub(crate) fn fence_at(&self, point: u64) -> Option<Fence> {
        let state = self.state();
        state.fence.filter(|_| point <= state.point)
    }

    pub(crate) fn point(&self) -> u64 {
        self.state().point
    }

    /// Replaces what there was, and its time line.
    pub(crate) fn set(&self, fence: Option<Fence>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { fence, point: 0 };
    }

    /// Adds a point to the time line; 0 replaces it.
    pub(crate) fn reach(&self, point: u64, fence: Fence) {
        if point == 0 {
            return self.set(Some(fence));
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.fence = Some(fence);
        state.point = state.point.max(point);
    }

    fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of two fences, the one that stands for both.
pub(crate) fn both(first: Fence, second: Fence) -> Fence {
    first.and(second)
}

/// The status of a fence as a sync file tells it: 1, or the error.
pub(crate) fn status(fence: Fence) -> i32 {
    match fence {
        Ok(()) => 1,
        Err(error) => -error.0,
    }
}
