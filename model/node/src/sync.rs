// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fences and sync objects. A chain has ended when SUBMIT returns, so there is no fence that waits: a sync object has one that tells how
//! a chain ended, or none.

use std::sync::{Mutex, PoisonError};

use crate::errno::Errno;

/// How the work in front of a fence ended.
pub(crate) type Fence = Result<(), Errno>;

/// A sync object, which files can share.
#[derive(Debug, Default)]
pub(crate) struct SyncObject(Mutex<Option<Fence>>);

impl SyncObject {
    pub(crate) fn new(fence: Option<Fence>) -> Self {
        Self(Mutex::new(fence))
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, fence: Option<Fence>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fence;
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
