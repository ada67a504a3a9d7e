// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own panfrost driver as a device for the replay engine: no module, no root, and other programs go on using the GPU.
//!
//! The driver has the registers. It powers the GPU up, gives a file an address space, runs chains and resets the GPU when one fails. So this
//! device puts objects where the recording has memory (`placement`), submits chains, and looks how they ended.
//!
//! Headers of jobs decide: Linux 6.1 reports success for a chain that faulted. All headers of a chain are cleared before it starts, whichever
//! the recording makes ready.

mod abi;
mod fit;
mod identity;
mod node;
mod placement;

use std::path::{Path, PathBuf};
use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use mali_facts::job::WRITTEN_BACK;
use mali_facts::registers::JobStatus;
use mali_facts::{ChainEnd, Memory, follow};

pub use fit::{Misfit, fits};
pub use node::find;
pub use placement::Unplaceable;

use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::render_node::{Ended, refused};
use crate::stock::{self, Stock, Wanted};
use identity::Identity;
use node::Node;
use placement::Range;

/// How long a chain may wait for those of other programs, each of which the driver ends after 500 ms (`JOB_TIMEOUT_MS` of `panfrost_job.c`).
const QUEUE: Duration = Duration::from_secs(10);

/// [`DeviceError::Refused`] has this number when an object is not where the driver's rule says; its address was taken, or the rule has changed.
pub const MISPLACED: i32 = -1;
/// The same when the recording does not fit: see [`fits`], which says why.
pub const UNFIT: i32 = -2;
/// The same when a chain does not end, or leaves the recording's memory. Hardware would run it until it is reset.
pub const ENDLESS: i32 = -3;
/// The same when the driver ended a chain after 500 ms.
pub const TOO_LONG: i32 = -4;
/// The same when a job did not end, and its header does not say why.
pub const FAULTED: i32 = -5;

/// What a number of [`DeviceError::Refused`] means, if this device gives it.
pub fn refusal(code: i32) -> Option<&'static str> {
    match code {
        MISPLACED => Some(
            "panfrost put memory at another address than it should; please report the kernel's version",
        ),
        UNFIT => Some("panfrost cannot give the recording what it needs"),
        ENDLESS => Some(
            "a job chain returns to one of its jobs, or has one outside of the recording's memory; the recording is wrong",
        ),
        TOO_LONG => Some(
            "panfrost ended a chain of jobs that ran for more than 500 ms, or with the GPU that another program hung; shorter chains compute the same: gpureplay link --split",
        ),
        FAULTED => Some(
            "a job did not end: most likely it accessed memory that it does not have; the kernel's log has the address (sudo dmesg)",
        ),
        _ => None,
    }
}

/// What the driver tells of the GPU, and where it is.
#[derive(Debug)]
struct Panfrost {
    path: PathBuf,
    identity: Identity,
}

/// Memory in place.
#[derive(Debug)]
struct Loaded {
    mappings: Mappings,
    objects: Vec<u32>,
    /// A file of its own for each recording that is loaded: objects that a job has just used keep their addresses for a while.
    node: Node,
}

/// A job and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    address: u64,
    status: u32,
    fault_address: u64,
}

/// Opens a render node of panfrost.
///
/// # Errors
/// It is missing or forbidden, another driver has it, or the kernel's pages are not those of recordings.
pub fn open(path: &Path) -> Result<Stock, OpenError> {
    let node = Node::open(path)?;
    Stock::new(Box::new(Panfrost {
        path: path.to_owned(),
        identity: Identity::read(|number| node.parameter(number)),
    }))
}

impl Loaded {
    /// Puts memory in place, in an address space of its own.
    fn new(path: &Path, ranges: &[Range]) -> Result<Self, DeviceError> {
        let steps = placement::plan(ranges).map_err(|_| DeviceError::Refused(UNFIT))?;
        let node = Node::open(path).map_err(|error| match error {
            OpenError::Io { error, .. } => DeviceError::Refused(error.raw_os_error().unwrap_or(0)),
            _ => DeviceError::Refused(nix::libc::ENODEV),
        })?;
        let (mut placed, mut fillers) = (Vec::new(), Vec::new());
        for step in &steps {
            let bytes = u32::try_from(step.bytes).map_err(|_| DeviceError::Refused(UNFIT))?;
            let (handle, va) = node.create(bytes, step.flags).map_err(refused)?;
            if va != step.va {
                return Err(DeviceError::Refused(MISPLACED));
            }
            match step.filler {
                true => fillers.push(handle),
                false => placed.push((handle, step)),
            }
        }
        // What is not the recording's must fault.
        for filler in fillers {
            node.shared().close(filler).map_err(refused)?;
        }
        let mut mappings = Mappings::default();
        for (handle, step) in &placed {
            let offset = node.map_offset(*handle).map_err(refused)?;
            let length = usize::try_from(step.bytes).map_err(|_| DeviceError::OutOfMemory)?;
            let memory = Mapped::new(node.shared().file(), offset, length).map_err(|error| {
                refused(nix::Error::from_raw(error.raw_os_error().unwrap_or(0)))
            })?;
            mappings.insert(step.va, memory);
        }
        Ok(Self {
            mappings,
            objects: placed.iter().map(|(handle, _)| *handle).collect(),
            node,
        })
    }

    /// The jobs of a chain, as their headers are now.
    fn jobs(&self, head: u64) -> Result<Vec<Job>, DeviceError> {
        let chain = follow(self, head);
        if chain.end != ChainEnd::Complete {
            return Err(DeviceError::Refused(ENDLESS));
        }
        let jobs = chain.jobs(self).map(|job| Job {
            address: job.address,
            status: job.header.exception_status() as u32,
            fault_address: job.header.fault_pointer(),
        });
        Ok(jobs.collect())
    }
}

/// Whether a job was taken off the GPU before it ended, by no fault of its own.
fn was_interrupted(status: u32) -> bool {
    [0, 3, 4].contains(&(status & 0xff))
}

impl Memory for Loaded {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        self.mappings.read(va, to, |_, _| Ok(())).is_ok()
    }
}

impl stock::Loaded for Loaded {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind> {
        let (slot, head) = (work.queue(), work.head());
        let requirements = match slot {
            0 => abi::FRAGMENT,
            1 => 0,
            _ => return Err(ErrorKind::NoSuchSlot(slot)),
        };
        let before = self.jobs(head)?;
        for job in &before {
            let cleared = [0; WRITTEN_BACK as usize];
            self.mappings.write(job.address, &cleared, |_, _| Ok(()))?;
        }
        let time = Duration::from_micros(work.timeout_us().into()) + QUEUE;
        let submitted = self.node.submit(head, &self.objects, requirements);
        submitted.map_err(refused)?;
        let ended = self.node.shared().wait(time).map_err(refused)?;
        let after = self.jobs(head)?;
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
}

impl stock::Driver for Panfrost {
    fn register(&self, offset: u32) -> u32 {
        self.identity.register(offset)
    }

    /// The driver's own are right for this GPU; the verifier lets nothing else pass.
    fn apply(&self) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn load(
        &self,
        wanted: &[Wanted],
        unused_cores: u32,
    ) -> Result<Box<dyn stock::Loaded>, DeviceError> {
        if unused_cores != 0 {
            return Err(DeviceError::Refused(UNFIT));
        }
        let ranges = wanted
            .iter()
            .map(|it| fit::range(it.va, it.pages, it.access));
        Ok(Box::new(Loaded::new(
            &self.path,
            &ranges.collect::<Vec<_>>(),
        )?))
    }
}
