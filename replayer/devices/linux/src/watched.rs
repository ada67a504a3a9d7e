// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a chain and checks its end: Linux 6.1 reports success for faults. So all headers are cleared first,
//! whichever the recording makes ready, and decide.

use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use mali_facts::job::WRITTEN_BACK;
use mali_facts::registers::JobStatus;
use mali_facts::{ChainEnd, Memory, follow};

use crate::mappings::Mappings;
use crate::refusal::{ENDLESS, FAULTED, TOO_LONG};
use crate::stock::Ended;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    address: u64,
    status: u32,
    fault_address: u64,
}

impl Memory for Mappings {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        Mappings::read(self, va, to, |_, _| Ok(())).is_ok()
    }
}

fn jobs(memory: &Mappings, head: u64) -> Result<Vec<Job>, DeviceError> {
    let chain = follow(memory, head);
    if chain.end != ChainEnd::Complete {
        return Err(DeviceError::Refused(ENDLESS));
    }
    let jobs = chain.jobs(memory).map(|job| Job {
        address: job.address,
        status: job.header.exception_status() as u32,
        fault_address: job.header.fault_pointer(),
    });
    Ok(jobs.collect())
}

/// `submit` waits for this time at most.
pub(crate) fn run(
    memory: &Mappings,
    work: &Submission<'_>,
    time: Duration,
    submit: impl FnOnce() -> Result<Ended, DeviceError>,
) -> Result<(), ErrorKind> {
    let (slot, head) = (work.queue(), work.head());
    let before = jobs(memory, head)?;
    for job in &before {
        let cleared = [0; WRITTEN_BACK as usize];
        memory.write(job.address, &cleared, |_, _| Ok(()))?;
    }
    let ended = submit()?;
    let after = jobs(memory, head)?;
    let done = |job: &&Job| JobStatus(job.status) == JobStatus::DONE;
    let addresses = |jobs: &[Job]| jobs.iter().map(|job| job.address).collect::<Vec<_>>();
    if addresses(&before) != addresses(&after) {
        return Err(DeviceError::Refused(ENDLESS).into());
    }
    let left = after.iter().find(|job| !done(job));
    let Some(job) = left.or(after.last()) else {
        return Err(DeviceError::Refused(ENDLESS).into());
    };
    let tail = job.address;
    let status = job.status;
    match (ended, left) {
        (Ended::Well, None) => Ok(()),
        (Ended::Runs, _) => Err(ErrorKind::JobTimeout {
            slot,
            status,
            tail,
            timeout_us: time.as_micros().try_into().unwrap_or(u32::MAX),
        }),
        (Ended::Cancelled, Some(_)) if was_interrupted(status) => {
            Err(DeviceError::Refused(TOO_LONG).into())
        }
        (_, Some(_)) if status == 0 => Err(DeviceError::Refused(FAULTED).into()),
        (Ended::Well, Some(_)) => Err(ErrorKind::JobNotDone {
            header: tail,
            status,
        }),
        (Ended::Cancelled | Ended::Failed, _) => Err(ErrorKind::JobFault {
            slot,
            status,
            tail,
            fault_address: job.fault_address,
        }),
    }
}

/// Whether a job was taken off the GPU by no fault of its own.
fn was_interrupted(status: u32) -> bool {
    [0, 3, 4].contains(&(status & 0xff))
}
