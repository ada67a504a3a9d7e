// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C ends work soon, with a report.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gpureplay_library::Canceller;
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;

use crate::Result;
use crate::common::failure::{self, Failure};

const STEP: Duration = Duration::from_millis(20);

/// How far a command came that was to do more.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stopped {
    /// Runs or inputs that are done.
    after: usize,
    /// Those that were asked for.
    of: usize,
}

impl Stopped {
    pub(crate) fn of(after: usize, of: usize) -> Result<Option<Self>> {
        match after {
            0 => Err(Failure::Interrupted),
            _ => Ok((after < of).then_some(Self { after, of })),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {} of {}", self.after, self.of)
    }
}

/// One for the process: each signal is given to only one of its threads.
static CAME: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Notes SIGINT from its creation on. A second SIGINT ends the process.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Call before starting other threads: they inherit the waiting. If SIGINT cannot wait, it acts as usual.
    pub(crate) fn watch() -> Self {
        let mut first = false;
        let came = CAME.get_or_init(|| {
            first = true;
            Arc::default()
        });
        if !first {
            return Self(came.clone());
        }
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        if interrupt.thread_block().is_ok() {
            let came = came.clone();
            let notes = move || {
                while interrupt.wait().is_ok() {
                    if came.swap(true, Ordering::Relaxed) {
                        std::process::exit(failure::INTERRUPTED.into());
                    }
                }
            };
            if std::thread::Builder::new().spawn(notes).is_err() {
                let _ = interrupt.thread_unblock();
            }
        }
        Self(came.clone())
    }

    pub(crate) fn cancels(self, canceller: Canceller) {
        let cancels = move || {
            loop {
                // Cancels again and again: a signal between two runs ends the next one.
                if self.came() {
                    canceller.cancel();
                }
                std::thread::sleep(STEP);
            }
        };
        // Without this thread the run goes on to its end.
        let _ = std::thread::Builder::new().spawn(cancels);
    }

    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
