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
    /// The sample: GPU virtual addresses of objects, and what their pages held before the job.
    held: Vec<(u64, Vec<u64>)>,
}

impl Audit {
    /// Looks before a job at what it does not list; `now` is the clock, and `began` when the trace began.
    pub(crate) fn before(
        &mut self,
        file: &File,
        began: u64,
        now: impl Fn() -> u64,
        asleep: impl FnOnce() -> Option<Asleep>,
    ) {
        self.held.clear();
        let start = now();
        let Some(allowed) = (start.saturating_sub(began) / SHARE).checked_sub(self.spent) else {
            return;
        };
        self.asleep = asleep();
        if self.asleep.is_none() {
            return;
        }
        let later = file.objects().filter(|object| object.va >= self.next);
        let first = file.objects().filter(|object| object.va < self.next);
        let mut next = 0;
        for object in later.chain(first).filter(|object| is_audited(object)) {
            self.held.push((object.va, object.pages_now()));
            // The look after the job takes as long.
            if now().saturating_sub(start) > allowed / 2 {
                next = object.va + object.size;
                break;
            }
        }
        self.next = next;
        self.spent += now().saturating_sub(start);
    }

    /// Looks again after the job. Returns the address of a page that the job wrote and does not list.
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
        self.spent += now().saturating_sub(start);
        changed.filter(|_| certain)
    }
}

/// Whether the last job could not change an object by right, and the app could.
fn is_audited(object: &Object) -> bool {
    object.mapped && !object.listed && !object.shared && !object.purgeable
}
