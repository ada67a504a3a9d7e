// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fences and sync objects. Work ends within its request: fences tell how, and never wait.

use std::sync::Mutex;

use crate::errno::Errno;
use crate::lock::locked;

pub(crate) type Fence = Result<(), Errno>;

/// Shared by files; maybe a time line, reached in order.
#[derive(Debug, Default)]
pub(crate) struct SyncObject(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    fence: Option<Fence>,
    /// 0: no time line.
    point: u64,
}

impl SyncObject {
    pub(crate) fn new(fence: Option<Fence>) -> Self {
        Self(Mutex::new(State { fence, point: 0 }))
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        self.state().fence
    }

    /// 0: all; `None`: not submitted.
    pub(crate) fn fence_at(&self, point: u64) -> Option<Fence> {
        let state = self.state();
        state.fence.filter(|_| point <= state.point)
    }

    pub(crate) fn point(&self) -> u64 {
        self.state().point
    }

    pub(crate) fn set(&self, fence: Option<Fence>) {
        *locked(&self.0) = State { fence, point: 0 };
    }

    /// 0 replaces all.
    pub(crate) fn reach(&self, point: u64, fence: Fence) {
        if point == 0 {
            return self.set(Some(fence));
        }
        let mut state = locked(&self.0);
        state.fence = Some(fence);
        state.point = state.point.max(point);
    }

    fn state(&self) -> State {
        *locked(&self.0)
    }
}

pub(crate) fn both(first: Fence, second: Fence) -> Fence {
    first.and(second)
}

/// As of a sync file: 1, or the error.
pub(crate) fn status(fence: Fence) -> i32 {
    match fence {
        Ok(()) => 1,
        Err(error) => -error.0,
    }
}
