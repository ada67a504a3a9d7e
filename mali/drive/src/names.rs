// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of a Mali as people read them.

use core::fmt::Display;

use mali_facts::registers::{FaultStatus, GpuId, JobStatus, lookup};

/// `Mali-G52 r0p0`.
pub fn gpu(id: u32) -> impl Display {
    GpuId(id)
}

/// `JS1_HEAD_NEXT_LO`; `None`: no name.
pub fn register(offset: u32) -> Option<impl Display> {
    lookup(offset)
}

/// `DONE`, `TRANSLATION_FAULT_3`.
pub fn job_status(status: u32) -> impl Display {
    JobStatus(status)
}

/// `DONE`; `None`: no name.
pub fn status(status: u32) -> Option<&'static str> {
    JobStatus(status).name()
}

/// In a sentence. `None`: unknown status.
pub fn meaning(status: u32) -> Option<&'static str> {
    JobStatus(status).meaning()
}

/// `PERMISSION_FAULT_3 on write`, of AS_FAULTSTATUS.
pub fn fault_status(status: u32) -> impl Display {
    FaultStatus(status)
}
