// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests and their verdicts.

use std::{sync::Mutex, thread, time::Instant};

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

pub(super) fn run_all(folder: &Folder, tests: &[&(&str, TestFunction)], jobs: u32) -> Verdict {
    let waiting = Mutex::new(tests.iter());
    let work = || {
        let mut sum = Verdict::default();
        loop {
            let Some((name, test)) = waiting.lock().ok().and_then(|mut them| them.next()) else {
                return sum;
            };
            sum.add(&run(folder, name, *test));
        }
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
