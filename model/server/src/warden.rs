// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops the guest while a job runs, so that time stands still for its driver.
//!
//! Drivers give a job half a second. The model may need longer, so the guest is stopped when a job has run for a
//! short grace period, and continued when it has ended. A guest also runs while an access waits for its driver (a
//! page fault), and when a job exceeds the limit: then its driver's own time-out ends it.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mali_model::{Level, Log};

use crate::qmp::{Qmp, QmpError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Running {
        since: Instant,
    },
    /// An access waits for the driver.
    Stalled,
    Quit,
}

/// Shared between the thread that runs jobs, the one that serves registers, and the warden's own.
pub(crate) struct Warden {
    phase: Mutex<Phase>,
    changed: Condvar,
    grace: Duration,
    limit: Duration,
}

impl Warden {
    /// Jobs that run longer than `grace` stop the guest, those that run longer than `limit` continue it.
    pub(crate) fn new(grace: Duration, limit: Duration) -> Arc<Warden> {
        Arc::new(Warden {
            phase: Mutex::new(Phase::Idle),
            changed: Condvar::new(),
            grace,
            limit,
        })
    }

    /// Jobs are about to run.
    pub(crate) fn begin(&self) {
        self.enter(Phase::Running {
            since: Instant::now(),
        });
    }

    /// No job runs, and interrupts are raised.
    pub(crate) fn end(&self) {
        self.enter(Phase::Idle);
    }

    /// A job waits for the driver.
    pub(crate) fn stall(&self) {
        self.enter(Phase::Stalled);
    }

    /// The driver has dealt with a fault, if a job waits for that.
    pub(crate) fn resume(&self) {
        let mut phase = self.lock();
        if *phase == Phase::Stalled {
            *phase = Phase::Running {
                since: Instant::now(),
            };
            self.changed.notify_all();
        }
    }

    /// Ends [`Warden::watch`].
    pub(crate) fn quit(&self) {
        self.enter(Phase::Quit);
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        *self.lock() = phase;
        self.changed.notify_all();
    }

    /// Whether the guest is to be stopped now, and when to look again at the latest. `None`: the end.
    fn decide(&self, phase: Phase, now: Instant) -> Option<(bool, Option<Instant>)> {
        match phase {
            Phase::Quit => None,
            Phase::Idle | Phase::Stalled => Some((false, None)),
            Phase::Running { since } => {
                let (stop, end) = (since + self.grace, since + self.limit);
                Some(if now < stop.min(end) {
                    (false, Some(stop))
                } else if now < end {
                    (true, Some(end))
                } else {
                    (false, None)
                })
            }
        }
    }

    /// Stops and continues the guest until [`Warden::quit`].
    pub(crate) fn watch(&self, monitor: &mut Monitor) {
        let mut phase = self.lock();
        let mut stopped = false;
        while let Some((stop, wake)) = self.decide(*phase, Instant::now()) {
            if stop != stopped {
                drop(phase);
                monitor.set_stopped(stop);
                stopped = stop;
                phase = self.lock();
                continue;
            }
            phase = match wake {
                None => self
                    .changed
                    .wait(phase)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let wait = at.saturating_duration_since(Instant::now());
                    self.changed
                        .wait_timeout(phase, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        drop(phase);
        if stopped {
            monitor.set_stopped(false);
        }
    }
}

/// QEMU's monitor, connected when first needed: QEMU makes its socket only after it has found the device.
pub(crate) struct Monitor {
    path: PathBuf,
    log: Arc<dyn Log>,
    qmp: Option<Qmp>,
}

impl Monitor {
    pub(crate) fn new(path: PathBuf, log: Arc<dyn Log>) -> Monitor {
        Monitor {
            path,
            log,
            qmp: None,
        }
    }

    fn set_stopped(&mut self, stop: bool) {
        if let Err(error) = self.request(stop) {
            self.qmp = None;
            let what = if stop { "stop" } else { "continue" };
            let path = self.path.display();
            self.log.write(
                Level::Error,
                format_args!(
                    "cannot {what} the guest through {path}: {error}; its driver may time out"
                ),
            );
        }
    }

    fn request(&mut self, stop: bool) -> Result<(), QmpError> {
        let qmp = match &mut self.qmp {
            Some(qmp) => qmp,
            None => self.qmp.insert(Qmp::connect(&self.path)?),
        };
        if stop { qmp.stop() } else { qmp.cont() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_stopped_between_grace_and_limit() {
        let (grace, limit) = (Duration::from_millis(20), Duration::from_secs(5));
        let warden = Warden::new(grace, limit);
        let since = Instant::now();
        let running = Phase::Running { since };
        for (phase, after, expected) in [
            (Phase::Idle, Duration::ZERO, Some((false, None))),
            (Phase::Stalled, Duration::ZERO, Some((false, None))),
            (Phase::Quit, Duration::ZERO, None),
            (running, Duration::ZERO, Some((false, Some(since + grace)))),
            (running, grace, Some((true, Some(since + limit)))),
            (running, limit, Some((false, None))),
        ] {
            assert_eq!(
                warden.decide(phase, since + after),
                expected,
                "{phase:?} {after:?}"
            );
        }
        let immediate = Warden::new(Duration::ZERO, limit);
        assert_eq!(
            immediate.decide(running, since),
            Some((true, Some(since + limit)))
        );
    }
}
