// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal line for work longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::terminal::is_quiet;

const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows progress until dropped; nothing without a terminal.
pub(crate) struct Progress {
    shared: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(
        what: &'static str,
        done: Arc<AtomicU64>,
        total: Option<u64>,
        units: &'static str,
    ) -> Self {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let wanted = std::io::stderr().is_terminal() && !is_quiet();
        let thread = wanted.then(|| {
            let shared = shared.clone();
            let of = total.map_or(String::new(), |total| format!(" of {total}"));
            let watches = move || {
                let text = || format!("{what}: {}{of} {units}", done.load(Ordering::Relaxed));
                watch(text, &shared);
            };
            std::thread::Builder::new().spawn(watches).ok()
        });
        let thread = thread.flatten();
        Self { shared, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in it changes no result.
            let _ = thread.join();
        }
    }
}

fn watch(text: impl Fn() -> String, shared: &(Mutex<bool>, Condvar)) {
    let start = Instant::now();
    let mut shown = false;
    let mut over = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !*over {
        let wait = shared
            .1
            .wait_timeout(over, INTERVAL)
            .unwrap_or_else(PoisonError::into_inner);
        over = wait.0;
        if start.elapsed() >= PATIENCE && !*over {
            shown = true;
            let seconds = start.elapsed().as_secs_f64();
            let mut out = std::io::stderr();
            let _ = write!(out, "\r{}, {seconds:.1} s ", text()).and_then(|()| out.flush());
        }
    }
    if shown {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}
