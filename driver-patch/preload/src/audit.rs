// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sample of what a job does not list: has the job written there all the same?
//!
//! What the app has mapped it may change itself at any time, so that a change proves nothing, unless the app's other threads slept from
//! the look before the job to the look after it. What it has not mapped needs no audit: there a change is seen at the next look.

use crate::files::File;
use crate::object::Object;
use crate::threads::Asleep;

/// The share of the time since the trace began that audits may take: one in so many.
const SHARE: u64 = 20;

/// Audits so far, and the one around the job that runs.
#[derive(Default)]
pub(crate) struct Audit {
    /// Nanoseconds spent.
    spent: u64,
    /// The GPU virtual address from which the next one goes on.
    next: u64,
    /// The other threads before the job.
    asleep: Option<Asleep>,
}

impl Audit {
    /// The app's memory is about to be looked at, before a job.
    pub(crate) fn before(&mut self, asleep: impl FnOnce() -> Option<Asleep>) {
        self.asleep = asleep();
    }

    /// Looks after a job, at memory of which the trace holds what was there before it; `now` is the clock, and `began`
    /// when the trace began. Returns the address of a page that
    /// the job wrote and does not list.
    pub(crate) fn after(
        &mut self,
        file: &File,
        began: u64,
        now: impl Fn() -> u64,
        asleep: impl FnOnce() -> Option<Asleep>,
    ) -> Option<u64> {
        let before = self.asleep.take()?;
        let start = now();
        let allowed = (start.saturating_sub(began) / SHARE).checked_sub(self.spent)?;
        let unlisted = |object: &&Object| is_audited(object);
        let later = file.objects().filter(|object| object.va >= self.next);
        let first = file.objects().filter(|object| object.va < self.next);
        let mut changed = None;
        let mut next = 0;
        for object in later.chain(first).filter(unlisted) {
            changed = object.first_change();
            if changed.is_some() {
                break;
            }
            if now().saturating_sub(start) > allowed {
                next = object.va + object.size;
                break;
            }
        }
        self.next = next;
        let certain = changed.is_some() && asleep().as_ref() == Some(&before);
        self.spent += now().saturating_sub(start);
        changed.filter(|_| certain)
    }
}

/// Whether the last job could not change an object by right, and the look before it saw all of it.
fn is_audited(object: &Object) -> bool {
    object.mapped && object.seen && !object.listed && !object.shared && !object.purgeable
}
