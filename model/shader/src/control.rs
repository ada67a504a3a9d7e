// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound on what a dispatch may take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Lets another thread stop a dispatch, and bounds it: an endless shader ends.
#[derive(Debug)]
pub struct Control {
    abort: AtomicBool,
    remaining: AtomicU64,
}

impl Default for Control {
    /// Room for 2^40 clauses: hours.
    fn default() -> Control {
        Control::new(1 << 40)
    }
}

impl Control {
    /// Allows `clauses` clauses, counted once for each batch of up to 64 lanes that executes one together. All
    /// dispatches that use this control share the budget.
    pub fn new(clauses: u64) -> Control {
        Control {
            abort: AtomicBool::new(false),
            remaining: AtomicU64::new(clauses),
        }
    }

    /// Asks a running dispatch to stop; it does within about a thousand clauses.
    pub fn abort(&self) {
        self.abort.store(true, Relaxed);
    }

    /// Whether [`abort`](Control::abort) was called.
    pub fn is_aborted(&self) -> bool {
        self.abort.load(Relaxed)
    }

    /// Takes `clauses` clauses for work that no shader does. False when that was the last of the budget, or when the dispatch is to
    /// stop.
    pub fn spend(&self, clauses: u64) -> bool {
        self.take(clauses) == clauses && !self.is_aborted()
    }

    /// Takes up to `wanted` clauses from the budget and returns how many there were.
    pub(crate) fn take(&self, wanted: u64) -> u64 {
        let taken = self
            .remaining
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(wanted)));
        taken.unwrap_or_else(|left| left).min(wanted)
    }

    /// Gives back clauses that were taken and not used.
    pub(crate) fn give_back(&self, unused: u64) {
        self.remaining.fetch_add(unused, Relaxed);
    }
}
