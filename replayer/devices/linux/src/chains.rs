// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device did with its time, learned from the registers that start and end job chains.

use std::time::{Duration, Instant};

use mali_regs::gpu::GPU_CMD;
use mali_regs::job::JOB_INT_CLEAR;
use mali_regs::job_slot::{self, COMMAND_NEXT};
use mali_regs::{GpuCommand, JobCommand};

/// Counts job chains that were started and acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    started: Option<Instant>,
    /// Chains that ended.
    pub(crate) ended: u64,
    /// From the start of each chain to the acknowledgement of its interrupt.
    pub(crate) working: Duration,
}

/// Job slots that the architecture has registers for.
const SLOTS: u32 = 16;

impl Chains {
    /// Told of each register write.
    pub(crate) fn written(&mut self, register: u32, value: u32) {
        if register == JOB_INT_CLEAR {
            // Interrupts that nobody started a chain for are cleared as well.
            if let Some(started) = self.started.take() {
                self.ended += 1;
                self.working += started.elapsed();
            }
        } else if register == GPU_CMD {
            let resets = [GpuCommand::SoftReset as u32, GpuCommand::HardReset as u32];
            if resets.contains(&value) {
                self.reset();
            }
        } else if value == JobCommand::Start as u32
            && (0..SLOTS).any(|slot| register == job_slot::offset(slot, COMMAND_NEXT))
        {
            self.started = Some(Instant::now());
        }
    }

    /// Told of each reset, which ends a chain without a result.
    pub(crate) fn reset(&mut self) {
        self.started = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_counts_when_its_interrupt_is_cleared() {
        let mut chains = Chains::default();
        let start = |slot| job_slot::offset(slot, COMMAND_NEXT);
        chains.written(JOB_INT_CLEAR, u32::MAX);
        chains.written(start(1), JobCommand::SoftStop as u32);
        chains.written(JOB_INT_CLEAR, 2);
        assert_eq!(chains.ended, 0);
        chains.written(start(1), JobCommand::Start as u32);
        std::thread::sleep(Duration::from_millis(2));
        chains.written(JOB_INT_CLEAR, 2);
        chains.written(JOB_INT_CLEAR, 2);
        assert_eq!(chains.ended, 1);
        assert!(chains.working >= Duration::from_millis(2));
        chains.written(start(0), JobCommand::Start as u32);
        chains.written(GPU_CMD, GpuCommand::SoftReset as u32);
        chains.written(JOB_INT_CLEAR, 1);
        assert_eq!(chains.ended, 1);
    }
}
