// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses failing calls.
//!
//! A right run's successor makes few calls; after an error a run reopens the device. So calls fail in pairs, one of
//! a run, one of the next; the third must be right.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Call,
    Right,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No failures before this many right runs.
    Undisturbed(u32),
    Run,
    AfterError,
    Rest,
    Ended,
}

#[derive(Debug)]
pub(crate) struct Sweep {
    stride: u32,
    phase: Phase,
    /// Since the last right run or error.
    calls: u32,
    /// Calls of an undisturbed run after a right one.
    run: u32,
    /// Next failing call: of a run, of one after an error.
    next: [u32; 2],
    failed: bool,
    count: usize,
    /// Numbers of failed calls that an error reported.
    told: Vec<usize>,
}

impl Sweep {
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

    /// # Errors
    /// An error without a failed call.
    pub(crate) fn fails(&mut self, event: Event) -> Result<bool, String> {
        match event {
            Event::Call => {
                let fails = match self.phase {
                    Phase::Run => self.calls == self.next[0] % self.run,
                    Phase::AfterError => self.calls == self.next[1],
                    _ => false,
                };
                self.calls += 1;
                if fails && !self.failed {
                    self.failed = true;
                    self.next[usize::from(self.phase == Phase::AfterError)] += self.stride;
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
                    Phase::AfterError if !self.failed => Phase::Ended,
                    Phase::Run | Phase::AfterError | Phase::Rest => Phase::Run,
                    Phase::Ended => Phase::Ended,
                };
            }
            Event::Error if !self.failed => {
                return Err(format!("an error without a call that failed, {self:?}"));
            }
            Event::Error => {
                self.told.push(self.count - 1);
                self.phase = match self.phase {
                    Phase::Run => Phase::AfterError,
                    _ => Phase::Rest,
                };
            }
        }
        (self.calls, self.failed) = (0, false);
        Ok(false)
    }

    pub(crate) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    pub(crate) fn told(&self) -> &[usize] {
        &self.told
    }
}
