// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings, power, work: by registers or as whole steps.

use gpureplay_format::Opcode;
use gpureplay_format::layout::ActionEntry;

use super::Session;
use crate::error::ErrorKind;
use crate::family::{Failed, Family};
use crate::gpu::{Chain, Gpu, Submission};

impl<G: Gpu, F: Family> Session<'_, '_, G, F> {
    pub(super) fn apply(&mut self, entry: &ActionEntry) -> Result<(), Failed> {
        let (register, value) = (entry.b.get().into(), entry.c.get());
        let Some(applied) = self.driver.gpu.apply(register, value) else {
            self.driver.gpu.write32(register, value);
            return Ok(());
        };
        self.driver.take(applied)
    }

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
