// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a chain and checks its end: Linux 6.1 reports success for faults. So all headers are cleared first,
//! whichever the recording makes ready, and decide.

use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use mali_drive::ends::{Ends, Job, WRITTEN_BACK};

use crate::mappings::Mappings;
use crate::refusal::{ENDLESS, FAULTED, TOO_LONG};
use crate::stock::Ended;

fn jobs(memory: &Mappings, head: u64) -> Result<Vec<Job>, DeviceError> {
    let read = |va, to: &mut [u8]| memory.read(va, to, |_, _| Ok(())).is_ok();
    let ends = Ends::of(read, head);
    match ends.is_whole() {
        true => Ok(ends.jobs().collect()),
        false => Err(DeviceError::Refused(ENDLESS)),
    }
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
        memory.write(job.address, &[0; WRITTEN_BACK], |_, _| Ok(()))?;
    }
    let ended = submit()?;
    let after = jobs(memory, head)?;
    let addresses = |jobs: &[Job]| jobs.iter().map(|job| job.address).collect::<Vec<_>>();
    if addresses(&before) != addresses(&after) {
        return Err(DeviceError::Refused(ENDLESS).into());
    }
    let left = after.iter().find(|job| !job.is_done());
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
        (Ended::Cancelled, Some(_)) if job.was_interrupted() => {
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
