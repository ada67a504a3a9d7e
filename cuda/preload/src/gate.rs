// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gate: what changes memory goes through together, a snapshot alone.
//!
//! A snapshot waits until the calls that are under way return, then no launch, copy, memset or free of any thread begins until
//! it is done. A kernel that waits for the host to write memory can so wait forever; such kernels must be filtered out.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::settings::{Mode, settings};

static GATE: RwLock<()> = RwLock::new(());

/// Goes through, together with others. Costs nothing where nothing is recorded.
pub(crate) fn pass() -> Option<RwLockReadGuard<'static, ()>> {
    matches!(settings().mode, Mode::Record(_)).then(enter)
}

/// Goes through where it is known that launches are recorded.
pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps everybody else out.
pub(crate) fn close() -> RwLockWriteGuard<'static, ()> {
    GATE.write().unwrap_or_else(PoisonError::into_inner)
}
