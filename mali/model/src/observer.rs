// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches a model's jobs.

use std::time::Duration;

use gpureplay_shader::probe::Analyser;
use gpureplay_shader::{Access, Statistics};
use mali_facts::registers::JobStatus;
use mali_isa::Identity;
use mali_shader::Dispatch;

/// Ended job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// Job slot.
    pub slot: u32,
    /// Its number.
    pub address_space: u32,
    /// Of its descriptor.
    pub address: u64,
    /// Its type: `COMPUTE`.
    pub kind: &'static str,
    /// How it ended.
    pub status: JobStatus,
    /// Time on the host.
    pub duration: Duration,
    /// For compute jobs with sensible descriptors.
    pub compute: Option<ComputeReport>,
}

/// What a compute job did.
#[derive(Clone, Debug)]
pub struct ComputeReport {
    /// Its address.
    pub shader: u64,
    /// Threads, by dimension.
    pub workgroup_size: [u32; 3],
    /// Work groups, by dimension.
    pub workgroup_count: [u32; 3],
    /// If asked for and decodable.
    pub kernel: Option<Identity>,
    /// `None`: the job failed.
    pub statistics: Option<Statistics>,
}

/// Watches jobs.
pub trait Observer: Send + Sync {
    /// A job ended.
    fn job(&self, report: &JobReport);

    /// Whether to fill [`ComputeReport::kernel`], which costs time.
    fn wants_kernels(&self) -> bool {
        false
    }

    /// Whether to call [`Observer::page`], which costs time.
    fn wants_pages(&self) -> bool {
        false
    }

    /// The running job reached a page. Each thread tells at least once per page and kind of access, before
    /// [`Observer::job`]; descriptors count.
    fn page(&self, va: u64, access: Access) {
        let _ = (va, access);
    }

    /// An analyser for a compute job; [`Observer::job`] follows.
    fn analyser(&self, address: u64, dispatch: &Dispatch) -> Option<Box<dyn Analyser>> {
        let _ = (address, dispatch);
        None
    }

    /// By the host or the job manager (a status, a write-value job).
    fn wrote(&self, va: u64, bytes: u64) {
        let _ = (va, bytes);
    }
}
