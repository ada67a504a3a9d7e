// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stops the guest's time while a job runs.
//!
//! Drivers give a job half a second, which may be too short here. The guest stops after a grace period until the
//! job's end. It runs while an access waits for its driver, and beyond the limit: then the driver's time-out ends
//! the job.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mali_model::{Level, Log};

use crate::qmp::{Qmp, QmpError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Running { since: Instant },
    Quit,
}

#[derive(Clone, Copy, Debug)]
struct State {
    phase: Phase,
    /// Accesses that wait for the driver.
    stalled: usize,
}

pub(crate) struct Warden {
    state: Mutex<State>,
    changed: Condvar,
    grace: Duration,
    limit: Duration,
}

impl Warden {
    pub(crate) fn new(grace: Duration, limit: Duration) -> Arc<Warden> {
        Arc::new(Warden {
            state: Mutex::new(State {
                phase: Phase::Idle,
                stalled: 0,
            }),
            changed: Condvar::new(),
            grace,
            limit,
        })
    }

    pub(crate) fn begin(&self) {
        self.enter(Phase::Running {
            since: Instant::now(),
        });
    }

    pub(crate) fn end(&self) {
        self.enter(Phase::Idle);
    }

    /// An access begins to wait for the driver, or goes on.
    pub(crate) fn stall(&self, begins: bool) {
        let mut state = self.lock();
        state.stalled = match begins {
            true => state.stalled + 1,
            false => state.stalled.saturating_sub(1),
        };
        if let Phase::Running { since } = &mut state.phase {
            *since = Instant::now();
        }
        self.changed.notify_all();
    }

    pub(crate) fn quit(&self) {
        self.enter(Phase::Quit);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
        self.changed.notify_all();
    }

    /// Whether to stop the guest now, and when to look again. `None`: the end.
    fn decide(&self, state: State, now: Instant) -> Option<(bool, Option<Instant>)> {
        match state.phase {
            Phase::Quit => None,
            Phase::Idle => Some((false, None)),
            Phase::Running { .. } if state.stalled != 0 => Some((false, None)),
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

    pub(crate) fn watch(&self, monitor: &mut Monitor) {
        let mut state = self.lock();
        let mut stopped = false;
        while let Some((stop, wake)) = self.decide(*state, Instant::now()) {
            if stop != stopped {
                drop(state);
                monitor.set_stopped(stop);
                stopped = stop;
                state = self.lock();
                continue;
            }
            state = match wake {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let wait = at.saturating_duration_since(Instant::now());
                    self.changed
                        .wait_timeout(state, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        drop(state);
        if stopped {
            monitor.set_stopped(false);
        }
    }
}

/// Connected late: QEMU makes its socket after finding the device.
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
        for (phase, stalled, after, expected) in [
            (Phase::Idle, 0, Duration::ZERO, Some((false, None))),
            (running, 1, grace, Some((false, None))),
            (Phase::Quit, 1, Duration::ZERO, None),
            (
                running,
                0,
                Duration::ZERO,
                Some((false, Some(since + grace))),
            ),
            (running, 0, grace, Some((true, Some(since + limit)))),
            (running, 0, limit, Some((false, None))),
        ] {
            let state = State { phase, stalled };
            assert_eq!(
                warden.decide(state, since + after),
                expected,
                "{state:?} {after:?}"
            );
        }
        let immediate = Warden::new(Duration::ZERO, limit);
        let state = State {
            phase: running,
            stalled: 0,
        };
        assert_eq!(
            immediate.decide(state, since),
            Some((true, Some(since + limit)))
        );
    }
}
