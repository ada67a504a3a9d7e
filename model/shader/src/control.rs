// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A job's cost besides its shader, in clauses.
pub const JOB_COST: u64 = 1 << 11;

/// Clauses charged per decoded clause.
pub(crate) const DECODING_COST: u64 = 1 << 9;

/// Clauses charged per micro-operation.
pub(crate) const SPECIALISING_COST: u64 = 8;

/// A shared limit, in clauses of up to 64 lanes or what takes as long.
#[derive(Debug)]
pub struct WorkLimit {
    limit: AtomicU64,
    left: AtomicU64,
    used_up: AtomicBool,
}

impl Default for WorkLimit {
    fn default() -> WorkLimit {
        WorkLimit::new(u64::MAX)
    }
}

impl WorkLimit {
    /// Allows so many clauses; [`u64::MAX`]: no limit.
    pub fn new(clauses: u64) -> WorkLimit {
        WorkLimit {
            limit: AtomicU64::new(clauses),
            left: AtomicU64::new(clauses),
            used_up: AtomicBool::new(false),
        }
    }

    /// Clauses allowed, used or not.
    pub fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Replaces the allowance.
    pub fn set(&self, clauses: u64) {
        self.limit.store(clauses, Relaxed);
        self.renew();
    }

    /// Renews the first allowance.
    pub fn renew(&self) {
        self.left.store(self.limit(), Relaxed);
        self.used_up.store(false, Relaxed);
    }

    /// Clauses left.
    pub fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// Whether something was refused.
    pub fn is_used_up(&self) -> bool {
        self.used_up.load(Relaxed)
    }

    fn take(&self, wanted: u64) -> u64 {
        if self.limit() == u64::MAX {
            return wanted;
        }
        let taken = take(&self.left, wanted);
        if taken == 0 && wanted > 0 {
            self.used_up.store(true, Relaxed);
        }
        taken
    }

    fn give_back(&self, unused: u64) {
        if self.limit() != u64::MAX {
            self.left.fetch_add(unused, Relaxed);
        }
    }
}

fn take(from: &AtomicU64, wanted: u64) -> u64 {
    let taken = from.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(wanted)));
    taken.unwrap_or_else(|left| left).min(wanted)
}

/// Stops a dispatch from another thread, and bounds it.
#[derive(Debug)]
pub struct Control {
    abort: AtomicBool,
    remaining: AtomicU64,
    work: Arc<WorkLimit>,
}

impl Default for Control {
    /// 2^40 clauses: hours.
    fn default() -> Control {
        Control::new(1 << 40)
    }
}

impl Control {
    /// Allows `clauses`, per batch of up to 64 lanes, for all its dispatches.
    pub fn new(clauses: u64) -> Control {
        Control::within(clauses, Arc::default())
    }

    /// As [`Control::new`], within a shared limit.
    pub fn within(clauses: u64, work: Arc<WorkLimit>) -> Control {
        Control {
            abort: AtomicBool::new(false),
            remaining: AtomicU64::new(clauses),
            work,
        }
    }

    /// The shared limit.
    pub fn work(&self) -> &WorkLimit {
        &self.work
    }

    /// Asks a running dispatch to stop; it does within about 1000 clauses.
    pub fn abort(&self) {
        self.abort.store(true, Relaxed);
    }

    /// Whether [`abort`](Control::abort) was called.
    pub fn is_aborted(&self) -> bool {
        self.abort.load(Relaxed)
    }

    /// Takes clauses. False: those were the last, or the dispatch is to stop.
    pub fn spend(&self, clauses: u64) -> bool {
        let own = take(&self.remaining, clauses) == clauses;
        own && self.charge(clauses) && !self.is_aborted()
    }

    /// From the shared limit alone. False: those were the last.
    #[must_use]
    pub fn charge(&self, clauses: u64) -> bool {
        let enough = self.work.take(clauses) == clauses;
        if !enough {
            self.work.used_up.store(true, Relaxed);
        }
        enough
    }

    pub(crate) fn take(&self, wanted: u64) -> u64 {
        let own = take(&self.remaining, wanted);
        let shared = self.work.take(own);
        if shared < own {
            self.remaining.fetch_add(own - shared, Relaxed);
        }
        shared
    }

    pub(crate) fn give_back(&self, unused: u64) {
        self.remaining.fetch_add(unused, Relaxed);
        self.work.give_back(unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_share_a_limit() {
        let work = Arc::new(WorkLimit::new(100));
        let [first, second] = [(); 2].map(|()| Control::within(80, work.clone()));
        assert_eq!(first.take(70), 70);
        assert_eq!(second.take(70), 30);
        assert!(!work.is_used_up(), "nothing was refused");
        assert!(!first.charge(1));
        assert!(work.is_used_up());
        first.give_back(20);
        assert_eq!((work.left(), second.take(5)), (20, 5));
        work.renew();
        assert!(work.left() == 100 && !work.is_used_up());
        assert!(first.spend(30), "its own budget is left");
        assert!(!first.spend(1));
        assert!(!work.is_used_up(), "the limit had more");
        let third = Control::within(1000, work.clone());
        assert!(!third.spend(71));
        assert!(work.is_used_up(), "70 of 71 were left");
        work.set(7);
        assert_eq!((work.limit(), work.left()), (7, 7));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let control = Control::new(10);
        assert!(control.charge(u64::MAX));
        assert!(control.spend(10) && !control.work().is_used_up());
        assert!(!control.spend(1));
    }
}
