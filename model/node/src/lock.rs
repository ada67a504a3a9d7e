// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks, though a thread panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
