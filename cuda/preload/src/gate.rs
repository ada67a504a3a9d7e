// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gate: memory changes pass together, snapshots alone.
//!
//! A snapshot waits for running calls; no thread's launch, copy, memset or free begins before its end. So filter
//! out kernels that wait for the host to write.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::guard;
use crate::settings::{Mode, settings};

static GATE: RwLock<()> = RwLock::new(());

pub(crate) fn pass() -> Option<RwLockReadGuard<'static, ()>> {
    matches!(settings().mode, Mode::Record(_)).then(enter)
}

pub(crate) fn enter() -> RwLockReadGuard<'static, ()> {
    guard::read(&GATE)
}

pub(crate) fn close() -> RwLockWriteGuard<'static, ()> {
    guard::write(&GATE)
}
