// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that depend on the device: settings, power, and work. A device with registers is driven by its family's code; one
//! without takes each step as a whole.

use gpureplay_format::Opcode;
use gpureplay_format::layout::ActionEntry;

use super::Session;
use crate::error::ErrorKind;
use crate::family::{Failed, Family};
use crate::gpu::{Chain, Gpu, Submission};

impl<G: Gpu, F: Family> Session<'_, '_, G, F> {
    /// Makes a setting.
    pub(super) fn apply(&mut self, entry: &ActionEntry) -> Result<(), Failed> {
        let (register, value) = (entry.b.get().into(), entry.c.get());
        let Some(applied) = self.driver.gpu.apply(register, value) else {
            self.driver.gpu.write32(register, value);
            return Ok(());
        };
        self.driver.take(applied)
    }

    /// What precedes the first action that is no setting, unless that is done already.
    pub(super) fn power_up(&mut self) -> Result<(), Failed> {
        if self.powered {
            return Ok(());
        }
        let header = self.recording.recording().header();
        if let Some(started) = self.driver.gpu.start(header.unused_cores.get()) {
            self.driver.take(started)?;
        } else {
            F::power_up(&mut self.driver, header)?;
            match self.driver.gpu.activate() {
                Ok(space) => self.driver.space = space,
                Err(error) => return self.driver.fail(ErrorKind::Device(error)),
            }
        }
        self.powered = true;
        Ok(())
    }

    /// Runs work and waits for its end.
    pub(super) fn submit(&mut self, work: &Submission<'_>) -> Result<(), Failed> {
        let chain = Chain {
            index: self.submits,
            head: work.head(),
            queue: work.queue(),
            space: self.driver.space,
        };
        let allowed = self.driver.gpu.before_chain(&chain);
        self.driver.take(allowed)?;
        self.submits = self.submits.wrapping_add(1);
        let ended = match self.driver.gpu.run_chain(work) {
            Some(ended) => self.driver.take(ended),
            None => F::submit(&mut self.driver, work),
        };
        let result = if ended.is_ok() {
            Ok(())
        } else {
            Err(self.driver.error)
        };
        self.driver.gpu.after_chain(&chain, result);
        ended
    }

    /// Requires that every header that was made ready for the chain that just ended is done.
    pub(super) fn check_headers(&mut self, since: &[ActionEntry]) -> Result<(), Failed> {
        for entry in since {
            if entry.op == Opcode::Submit.code() {
                break;
            }
            if entry.op == Opcode::Rearm.code() {
                F::done(&mut self.driver, entry.d.get())?;
            }
        }
        Ok(())
    }
}
