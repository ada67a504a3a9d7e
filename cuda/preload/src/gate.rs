// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gate: memory changes pass together, a snapshot alone.
//!
//! A snapshot waits for running calls; then no thread's launch, copy, memset or free begins until it is done. A
//! kernel that waits for the host to write may so wait forever: filter it out.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::settings::{Mode, settings};

static GATE: RwLock<()> = RwLock::new(());

/// Together with others; free where nothing is recorded.
pub(crate) fn pass() -> Option<RwLockReadGuard<'static, ()>> {
    matches!(settings().mode, Mode::Record(_)).then(enter)
}

/// Where launches are known to be recorded.
pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps all others out.
pub(crate) fn close() -> RwLockWriteGuard<'static, ()> {
    GATE.write().unwrap_or_else(PoisonError::into_inner)
}
