// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests and their verdicts.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use crate::{error::Result, folder::Folder, run::session::Checked};

#[derive(Default)]
pub(super) struct Verdict {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
    pub(super) reason: String,
}

impl Verdict {
    pub(super) fn fail(reason: impl Into<String>) -> Verdict {
        Verdict {
            failed: 1,
            reason: reason.into(),
            ..Verdict::default()
        }
    }

    pub(super) fn skip(reason: impl Into<String>) -> Verdict {
        Verdict {
            skipped: 1,
            reason: reason.into(),
            ..Verdict::default()
        }
    }

    pub(super) fn add(&mut self, other: &Verdict) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(super) fn of(result: Checked) -> Verdict {
        result.map_or_else(Verdict::fail, Verdict::from)
    }
}

pub(super) type TestFunction = fn(&Folder) -> Result<Verdict>;

impl From<()> for Verdict {
    fn from((): ()) -> Verdict {
        Verdict {
            passed: 1,
            ..Verdict::default()
        }
    }
}

/// How many were right, and what is wrong with the others.
pub(super) type Sample = (usize, Vec<String>);

impl From<Sample> for Verdict {
    fn from((passed, wrong): Sample) -> Verdict {
        Verdict {
            passed: u32::try_from(passed).unwrap_or(u32::MAX),
            failed: u32::try_from(wrong.len()).unwrap_or(u32::MAX),
            skipped: 0,
            reason: wrong.join("; "),
        }
    }
}

pub(super) fn run(folder: &Folder, name: &str, test: TestFunction) -> Verdict {
    let start = Instant::now();
    let verdict = test(folder).unwrap_or_else(|error| Verdict::fail(error.to_string()));
    let word = match &verdict {
        Verdict { failed: 1.., .. } => "FAIL",
        Verdict { passed: 0, .. } => "skip",
        _ => "ok  ",
    };
    let seconds = start.elapsed().as_secs_f64();
    let reason = if verdict.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", verdict.reason)
    };
    println!("{word} {name} ({seconds:.0} s){reason}");
    verdict
}

pub(super) const ALONE: u8 = u8::MAX;

/// A test, after the bits of what it has for itself.
pub(super) type Waiting<'a> = (u8, &'a (&'a str, TestFunction));

struct Queue<'a> {
    waiting: Vec<Waiting<'a>>,
    running: Vec<u8>,
}

impl<'a> Queue<'a> {
    /// Beside another test, one that others must wait for goes first. Those that run alone go last.
    fn take(&mut self) -> Option<Waiting<'a>> {
        let running = &self.running;
        let turn = |uses: u8| match uses {
            ALONE => running.is_empty().then_some(2),
            _ if running.iter().any(|one| one & uses != 0 || *one == ALONE) => None,
            _ => Some(u8::from(uses == 0 && !running.is_empty())),
        };
        let fitting = self.waiting.iter().enumerate();
        let fitting = fitting.filter_map(|(at, (uses, _))| Some((turn(*uses)?, at)));
        let test = self.waiting.remove(fitting.min()?.1);
        self.running.push(test.0);
        Some(test)
    }

    fn end(&mut self, uses: u8) {
        let at = self.running.iter().position(|one| *one == uses);
        at.map(|at| self.running.swap_remove(at));
    }
}

struct Shared<'a> {
    queue: Mutex<Queue<'a>>,
    ended: Condvar,
}

impl<'a> Shared<'a> {
    fn queue(&self) -> MutexGuard<'_, Queue<'a>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a test that uses nothing of those that run.
    fn next(&self) -> Option<Waiting<'a>> {
        let mut queue = self.queue();
        while !queue.waiting.is_empty() {
            match queue.take() {
                None => {
                    queue = self
                        .ended
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                test => return test,
            }
        }
        None
    }
}

/// On drop others may run, also after a panic.
struct Running<'a, 'b>(&'b Shared<'a>, u8);

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.0.queue().end(self.1);
        self.0.ended.notify_all();
    }
}

pub(super) fn run_all(folder: &Folder, waiting: Vec<Waiting<'_>>, jobs: u32) -> Verdict {
    let shared = Shared {
        queue: Mutex::new(Queue {
            waiting,
            running: Vec::new(),
        }),
        ended: Condvar::new(),
    };
    let work = || {
        let mut sum = Verdict::default();
        while let Some((uses, (name, test))) = shared.next() {
            let _running = Running(&shared, uses);
            sum.add(&run(folder, name, *test));
        }
        sum
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut sum = Verdict::default();
        for worker in workers {
            match worker.join() {
                Ok(part) => sum.add(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_share_something_or_run_alone_wait() {
        let test: (&str, TestFunction) = ("test", |_| Ok(().into()));
        let mut queue = Queue {
            waiting: [0, ALONE, 0, 1, 1, 3, 2].map(|uses| (uses, &test)).to_vec(),
            running: Vec::new(),
        };
        let mut take = |ends: &[u8]| {
            ends.iter().for_each(|uses| queue.end(*uses));
            queue.take().map(|(uses, _)| uses)
        };
        let first = [take(&[]), take(&[]), take(&[]), take(&[])];
        assert_eq!(first, [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!([take(&[0]), take(&[2])], [None; 2]);
        assert_eq!([take(&[1, 0]), take(&[])], [Some(1), None]);
        assert_eq!([take(&[1]), take(&[])], [Some(3), None]);
        assert_eq!([take(&[3]), take(&[])], [Some(ALONE), None]);
    }
}
