// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job slot.

use std::sync::Arc;

use gpureplay_shader::WorkLimit;
use mali_facts::registers::{JobConfig, JobConfigFlags, JobStatus, job, job_slot};

use crate::chain::{Chain, Outcome};
use crate::environment::ChainControl;

#[derive(Debug)]
struct Running {
    chain: Chain,
    control: Arc<ChainControl>,
    /// By a thread; otherwise a stop acts at once.
    taken: bool,
}

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) chain: Chain,
    pub(crate) control: Arc<ChainControl>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Soft,
    Hard,
}

#[derive(Debug)]
pub(crate) struct Slot {
    index: u32,
    words: [u32; (job_slot::STRIDE / 4) as usize],
    running: Option<Running>,
    /// COMMAND_NEXT holds START.
    pending: bool,
}

impl Slot {
    pub(crate) fn new(index: u32) -> Slot {
        Slot {
            index,
            words: [0; (job_slot::STRIDE / 4) as usize],
            running: None,
            pending: false,
        }
    }

    pub(crate) fn word(&self, register: u32) -> u32 {
        self.words.get(register as usize / 4).copied().unwrap_or(0)
    }

    pub(crate) fn set_word(&mut self, register: u32, value: u32) {
        if let Some(word) = self.words.get_mut(register as usize / 4) {
            *word = value;
        }
    }

    fn pair(&self, low: u32) -> u64 {
        u64::from(self.word(low)) | u64::from(self.word(low + 4)) << 32
    }

    fn set_pair(&mut self, low: u32, value: u64) {
        self.set_word(low, value as u32);
        self.set_word(low + 4, (value >> 32) as u32);
    }

    pub(crate) fn state_bits(&self) -> u32 {
        let active = if self.running.is_some() {
            job::active(self.index)
        } else {
            0
        };
        let next = if self.pending {
            job::next_pending(self.index)
        } else {
            0
        };
        active | next
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn queue(&mut self) {
        self.pending = true;
        self.set_word(
            job_slot::COMMAND_NEXT,
            mali_facts::registers::JobCommand::Start as u32,
        );
    }

    /// The other NEXT registers stay.
    pub(crate) fn unqueue(&mut self) {
        self.pending = false;
        self.set_word(job_slot::COMMAND_NEXT, 0);
    }

    pub(crate) fn promote(&mut self, clauses: u64, work: &Arc<WorkLimit>) {
        if self.running.is_some() || !self.pending {
            return;
        }
        self.unqueue();
        let chain = Chain {
            slot: self.index,
            head: self.pair(job_slot::HEAD_NEXT_LO),
            config: JobConfig(self.word(job_slot::CONFIG_NEXT)),
            affinity: self.pair(job_slot::AFFINITY_NEXT_LO),
        };
        self.set_pair(job_slot::HEAD_LO, chain.head);
        self.set_pair(job_slot::TAIL_LO, chain.head);
        self.set_pair(job_slot::AFFINITY_LO, chain.affinity);
        self.set_word(job_slot::CONFIG, chain.config.0);
        self.set_word(job_slot::XAFFINITY, self.word(job_slot::XAFFINITY_NEXT));
        self.set_word(
            job_slot::COMMAND,
            mali_facts::registers::JobCommand::Start as u32,
        );
        self.set_word(job_slot::STATUS, JobStatus::ACTIVE.0);
        let control = Arc::new(ChainControl::new(clauses, Arc::clone(work)));
        self.running = Some(Running {
            chain,
            control,
            taken: false,
        });
    }

    pub(crate) fn has_work(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.taken)
    }

    pub(crate) fn take(&mut self) -> Option<Started> {
        let running = self.running.as_mut().filter(|running| !running.taken)?;
        running.taken = true;
        Some(Started {
            chain: running.chain,
            control: running.control.clone(),
        })
    }

    /// Stops the chain with this flag, or any. Returns the outcome if no thread runs it.
    pub(crate) fn stop(&mut self, stop: Stop, flag: Option<bool>) -> Option<Outcome> {
        let running = self.running.as_ref()?;
        let chain_flag = running
            .chain
            .config
            .flags()
            .contains(JobConfigFlags::CHAIN_FLAG);
        if flag.is_some_and(|flag| flag != chain_flag) {
            return None;
        }
        if running.taken {
            match stop {
                Stop::Soft => running.control.stop_after_job(),
                Stop::Hard => running.control.stop_now(),
            }
            return None;
        }
        let status = match stop {
            Stop::Soft => JobStatus::STOPPED,
            Stop::Hard => JobStatus::TERMINATED,
        };
        Some(Outcome {
            status,
            tail: running.chain.head,
            mmu: None,
        })
    }

    pub(crate) fn reset(&mut self) {
        if let Some(running) = self.running.take() {
            running.control.stop_now();
        }
        *self = Slot::new(self.index);
    }

    /// Address space and job interrupt.
    pub(crate) fn retire(&mut self, outcome: &Outcome) -> Option<(u32, u32)> {
        let running = self.running.take()?;
        self.set_word(job_slot::STATUS, outcome.status.0);
        self.set_pair(job_slot::TAIL_LO, outcome.tail);
        let interrupt = match outcome.status {
            JobStatus::DONE => job::done(self.index),
            _ => job::failed(self.index),
        };
        Some((running.chain.config.address_space(), interrupt))
    }
}
