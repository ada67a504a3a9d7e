// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which calls of one process fail, so that in the end each call of a run has failed, and each of the run that follows an error.
//!
//! A run after a right one makes few calls, a run after an error opens the device anew. So calls fail in pairs: one of a run, then one of the
//! run after it; the third must be right.

/// What a process does that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It makes a call to the device.
    Call,
    /// It says that a run was right.
    Right,
    Error,
}

/// What is to fail next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing before this number of right runs.
    Undisturbed(u32),
    /// A call of the run after a right one.
    Run,
    /// A call of the run after an error.
    Again,
    /// Nothing before a right run.
    Rest,
    /// Nothing any more.
    Ended,
}

/// The state of a process that is disturbed.
#[derive(Debug)]
pub(crate) struct Sweep {
    stride: u32,
    phase: Phase,
    /// Calls since the last right run or error.
    calls: u32,
    /// Calls of an undisturbed run after a right one.
    run: u32,
    /// The next call that fails: of a run, and of one after an error.
    next: [u32; 2],
    /// Whether a call failed of which nothing was told yet.
    failed: bool,
    /// How many calls failed.
    count: usize,
    /// The failed calls, by their order, of which an error told.
    told: Vec<usize>,
}

impl Sweep {
    /// Lets two runs be right, then disturbs every `stride`-th call.
    pub(crate) fn new(stride: u32) -> Self {
        Self {
            stride: stride.max(1),
            phase: Phase::Undisturbed(2),
            calls: 0,
            run: 1,
            next: [0; 2],
            failed: false,
            count: 0,
            told: Vec::new(),
        }
    }

    /// Whether this call fails.
    ///
    /// # Errors
    /// The process told an error though no call had failed.
    pub(crate) fn fails(&mut self, event: Event) -> Result<bool, String> {
        match event {
            Event::Call => {
                let fails = match self.phase {
                    Phase::Run => self.calls == self.next[0] % self.run,
                    Phase::Again => self.calls == self.next[1],
                    _ => false,
                };
                self.calls += 1;
                if fails && !self.failed {
                    self.failed = true;
                    self.next[usize::from(self.phase == Phase::Again)] += self.stride;
                    self.count += 1;
                    return Ok(true);
                }
                return Ok(false);
            }
            Event::Right => {
                self.phase = match self.phase {
                    Phase::Undisturbed(2..) => Phase::Undisturbed(1),
                    Phase::Undisturbed(_) => {
                        self.run = self.calls.max(1);
                        Phase::Run
                    }
                    // It makes no such call, nor one behind it.
                    Phase::Again if !self.failed => Phase::Ended,
                    Phase::Run | Phase::Again | Phase::Rest => Phase::Run,
                    Phase::Ended => Phase::Ended,
                };
            }
            Event::Error if !self.failed => {
                return Err(format!("an error without a call that failed, {self:?}"));
            }
            Event::Error => {
                self.told.push(self.count - 1);
                self.phase = match self.phase {
                    Phase::Run => Phase::Again,
                    _ => Phase::Rest,
                };
            }
        }
        (self.calls, self.failed) = (0, false);
        Ok(false)
    }

    /// Whether every call had its turn.
    pub(crate) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The failed calls, by their order, of which an error told.
    pub(crate) fn told(&self) -> &[usize] {
        &self.told
    }
}
