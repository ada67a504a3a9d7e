// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples whether a job wrote what it does not list.
//!
//! The app may change what it has mapped: a change proves nothing, unless its other threads slept from the look
//! before the job to the look after it. What it has not mapped needs no audit: the next look sees a change.

use crate::files::File;
use crate::object::Object;
use crate::threads::Asleep;

/// One part in so many of the time since the trace began.
const SHARE: u64 = 20;

#[derive(Default)]
pub(crate) struct Audit {
    spent_ns: u64,
    next_va: u64,
    asleep: Option<Asleep>,
    /// GPU addresses of objects, and their pages before the job.
    held: Vec<(u64, Vec<u64>)>,
}

impl Audit {
    pub(crate) fn before(
        &mut self,
        file: &File,
        began: u64,
        now: impl Fn() -> u64,
        asleep: impl FnOnce() -> Option<Asleep>,
    ) {
        self.held.clear();
        let start = now();
        let Some(allowed) = (start.saturating_sub(began) / SHARE).checked_sub(self.spent_ns) else {
            return;
        };
        self.asleep = asleep();
        if self.asleep.is_none() {
            return;
        }
        let later = file.objects().filter(|object| object.va >= self.next_va);
        let first = file.objects().filter(|object| object.va < self.next_va);
        let mut next = 0;
        for object in later.chain(first).filter(|object| is_audited(object)) {
            self.held.push((object.va, object.pages_now()));
            // The look after the job takes as long.
            if now().saturating_sub(start) > allowed / 2 {
                next = object.va + object.size;
                break;
            }
        }
        self.next_va = next;
        self.spent_ns += now().saturating_sub(start);
    }

    /// Gives a page that the job wrote and does not list.
    pub(crate) fn after(
        &mut self,
        file: &File,
        now: impl Fn() -> u64,
        asleep: impl FnOnce() -> Option<Asleep>,
    ) -> Option<u64> {
        let before = self.asleep.take()?;
        let start = now();
        let changed = self
            .held
            .iter()
            .find_map(|(va, pages)| file.at(*va)?.first_change_since(pages));
        let certain = changed.is_some() && asleep().as_ref() == Some(&before);
        self.spent_ns += now().saturating_sub(start);
        changed.filter(|_| certain)
    }
}

fn is_audited(object: &Object) -> bool {
    object.mapped && !object.listed && !object.shared && !object.purgeable
}
