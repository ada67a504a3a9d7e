// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C as a wish to end soon: what is done by then is still reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpureplay_library::Canceller;
use nix::sys::signal::{SigSet, Signal};

/// What a shell takes for a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 128 + Signal::SIGINT as u8;

/// Time between two looks at whether it came.
const STEP: Duration = Duration::from_millis(20);

/// Notes SIGINT from its creation on. The second one ends the process.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Call it before other threads are started: they inherit that SIGINT waits. Where it cannot wait, it acts as ever.
    pub(crate) fn watch() -> Self {
        let came = Arc::new(AtomicBool::new(false));
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        if interrupt.thread_block().is_ok() {
            let came = came.clone();
            let notes = move || {
                while interrupt.wait().is_ok() {
                    if came.swap(true, Ordering::Relaxed) {
                        std::process::exit(EXIT_CODE.into());
                    }
                }
            };
            if std::thread::Builder::new().spawn(notes).is_err() {
                // Without a thread that waits, it acts as ever.
                let _ = interrupt.thread_unblock();
            }
        }
        Self(came)
    }

    /// Cancels runs in the secure world when it comes, from another thread.
    pub(crate) fn cancels(self, canceller: Canceller) {
        let cancels = move || {
            loop {
                // A wish that comes between two runs is for the next one.
                if self.came() {
                    canceller.cancel();
                }
                std::thread::sleep(STEP);
            }
        };
        // Without a thread left for it, the run goes on to its end.
        let _ = std::thread::Builder::new().spawn(cancels);
    }

    /// Whether it came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
