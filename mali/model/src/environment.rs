// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a chain runs with, its stops and faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use gpureplay_memory::Bus;
use gpureplay_shader::{Control, MmuFault, Threads, WorkLimit};
use mali_facts::registers::JobStatus;
use mali_facts::{LONGEST_CHAIN, Profile};

use crate::clock::Clock;
use crate::log::Log;
use crate::observer::Observer;
use crate::space::Space;

pub(crate) const RUN: u8 = 0;
pub(crate) const STOP_AFTER_JOB: u8 = 1;
const STOP_NOW: u8 = 2;

#[derive(Debug)]
pub(crate) struct ChainControl {
    request: AtomicU8,
    /// As many as clauses, as each compute job takes one; a longer chain is taken for a loop.
    pub(crate) jobs: u64,
    pub(crate) shader: Control,
}

impl ChainControl {
    pub(crate) fn new(clauses: u64, work: Arc<WorkLimit>) -> ChainControl {
        ChainControl {
            request: AtomicU8::new(RUN),
            jobs: clauses.min(LONGEST_CHAIN.into()),
            shader: Control::within(clauses, work),
        }
    }

    pub(crate) fn stop_after_job(&self) {
        self.request.fetch_max(STOP_AFTER_JOB, Ordering::Relaxed);
    }

    pub(crate) fn stop_now(&self) {
        self.request.store(STOP_NOW, Ordering::Relaxed);
        self.shader.abort();
    }

    pub(crate) fn request(&self) -> u8 {
        self.request.load(Ordering::Relaxed)
    }
}

pub(crate) struct Environment<B: Bus> {
    pub(crate) profile: &'static Profile,
    pub(crate) bus: Arc<B>,
    pub(crate) space: Arc<Space>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) control: Arc<ChainControl>,
    pub(crate) clock: Clock,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) notify: Option<Arc<dyn Fn(bool) + Send + Sync>>,
    pub(crate) seed: u64,
    pub(crate) cores_ready: u64,
    pub(crate) l2_ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobFault {
    pub(crate) status: JobStatus,
    pub(crate) pointer: u64,
    pub(crate) mmu: Option<MmuFault>,
    pub(crate) text: String,
}

impl JobFault {
    pub(crate) fn new(status: JobStatus, pointer: u64, text: impl Into<String>) -> JobFault {
        JobFault {
            status,
            pointer,
            mmu: None,
            text: text.into(),
        }
    }

    pub(crate) fn descriptor(status: JobStatus, fault: MmuFault) -> JobFault {
        JobFault {
            status,
            pointer: fault.va,
            mmu: Some(fault),
            text: format!("descriptor: {fault}"),
        }
    }
}

impl From<MmuFault> for JobFault {
    fn from(fault: MmuFault) -> JobFault {
        JobFault {
            status: JobStatus(fault.code.into()),
            pointer: fault.va,
            mmu: Some(fault),
            text: fault.to_string(),
        }
    }
}
