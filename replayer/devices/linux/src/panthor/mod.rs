// SPDX-License-Identifier: MIT OR Apache-2.0
//! panthor: no module, no root, other programs go on.
//!
//! This device fills an address space as recorded, and puts launches' instructions into memory that the GPU only reads.

mod abi;
mod fit;
mod node;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use gpureplay_format::Recording;

pub use node::find;

use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::misfit::Misfit;
use crate::stock::{self, Ended, Stock, Wanted, refused};
use fit::{Range, STREAM, gap};
use node::{Node, Told};

/// For other programs' streams, which end after 5 s (`JOB_TIMEOUT_MS` of `panthor_sched.c`).
const QUEUE: Duration = Duration::from_secs(20);

/// [`DeviceError::Refused`] code: no room.
pub const NO_ROOM: i32 = -11;
/// [`DeviceError::Refused`] code: a stream faulted.
pub const FAULTED: i32 = -12;
/// [`DeviceError::Refused`] code: ended after 5 s.
pub const TOO_LONG: i32 = -13;

/// Meaning of a [`DeviceError::Refused`] code.
pub fn refusal(code: i32) -> Option<&'static str> {
    match code {
        NO_ROOM => {
            Some("panthor's address space has no room for the instructions of the recording")
        }
        FAULTED => Some(
            "a command stream ended with a fault: most likely it accessed memory that it does not have; the kernel's log has the address (sudo dmesg)",
        ),
        TOO_LONG => Some(
            "panthor ended a command stream that ran for more than 5 s, or with the GPU that another program hung",
        ),
        _ => None,
    }
}

#[derive(Debug)]
struct Panthor {
    path: PathBuf,
    told: Arc<Told>,
}

#[derive(Debug)]
struct Loaded {
    mappings: Mappings,
    stream: (u64, Mapped),
    vm: u32,
    group: u32,
    told: Arc<Told>,
    node: Node,
}

/// # Errors
/// Missing or forbidden, another driver, or another page size.
pub fn open(path: &Path) -> Result<Stock, OpenError> {
    let node = Node::open(path)?;
    let told = Told::new(&node).map_err(|errno| OpenError::Io {
        what: format!("{}: what the GPU is", path.display()),
        error: errno.into(),
    })?;
    Stock::new(Box::new(Panthor {
        path: path.to_owned(),
        told: Arc::new(told),
    }))
}

impl Loaded {
    fn new(path: &Path, told: &Arc<Told>, ranges: &[Range]) -> Result<Self, DeviceError> {
        let node = Node::open(path).map_err(|error| match error {
            OpenError::Io { error, .. } => {
                refused(nix::Error::from_raw(error.raw_os_error().unwrap_or(0)))
            }
            _ => DeviceError::Refused(nix::libc::ENODEV),
        })?;
        let space = node.space().map_err(refused)?;
        let mut mappings = Mappings::default();
        for range in ranges {
            if range.end() > space.end {
                return Err(DeviceError::Refused(NO_ROOM));
            }
            let memory = space.map(range.va, range.bytes, range.flags());
            mappings.insert(range.va, memory.map_err(refused)?);
        }
        let at = gap(ranges, space.end).ok_or(DeviceError::Refused(NO_ROOM))?;
        let flags = abi::MAP_READ_ONLY | abi::MAP_NO_EXECUTE;
        let stream = space.map(at, STREAM, flags).map_err(refused)?;
        let vm = space.vm;
        let group = node.group(vm, &told.info).map_err(refused)?;
        Ok(Self {
            mappings,
            stream: (at, stream),
            vm,
            group,
            told: told.clone(),
            node,
        })
    }

    fn call(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind> {
        let (at, memory) = &self.stream;
        let bytes = u32::try_from(work.words.len()).map_err(|_| ErrorKind::Internal)?;
        if bytes == 0 || !memory.write(0, work.words) {
            return Err(ErrorKind::Internal);
        }
        let time = Duration::from_micros(work.timeout_us().into()) + QUEUE;
        let stream = (*at, bytes);
        let latest = self.told.latest_flush();
        match self.node.submit(self.group, stream, latest) {
            // The group's time was up just when its last stream had ended well.
            Err(nix::Error::EINVAL) => {
                let group = self.node.renew(self.group, self.vm, &self.told.info);
                self.group = group.map_err(refused)?;
                self.node.submit(self.group, stream, latest)
            }
            submitted => submitted,
        }
        .map_err(refused)?;
        match self.node.shared().wait(time).map_err(refused)? {
            Ended::Well if self.node.has_fault(self.group).map_err(refused)? => {
                Err(DeviceError::Refused(FAULTED).into())
            }
            Ended::Well => Ok(()),
            Ended::Failed => Err(DeviceError::Refused(FAULTED).into()),
            Ended::Cancelled => Err(DeviceError::Refused(TOO_LONG).into()),
            Ended::Runs => Err(ErrorKind::JobTimeout {
                slot: work.queue(),
                status: 0,
                tail: 0,
                timeout_us: time.as_micros().try_into().unwrap_or(u32::MAX),
            }),
        }
    }
}

impl stock::Loaded for Loaded {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    /// A failed group takes no more work: replaces it.
    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind> {
        let result = self.call(work);
        if result.is_err()
            && let Ok(group) = self.node.renew(self.group, self.vm, &self.told.info)
        {
            self.group = group;
        }
        result
    }
}

impl stock::Driver for Panthor {
    fn name(&self) -> &str {
        "panthor"
    }

    fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        fit::fits(recording)
    }

    fn register(&self, offset: u32) -> u32 {
        self.told.register(offset)
    }

    /// Firmware makes all settings: no recording has one.
    fn apply(&self) -> Result<(), ErrorKind> {
        Err(ErrorKind::Internal)
    }

    fn load(&self, wanted: &[Wanted]) -> Result<Box<dyn stock::Loaded>, DeviceError> {
        let ranges = wanted
            .iter()
            .map(|it| Range::new(it.va, it.pages, it.access));
        let ranges: Vec<Range> = ranges.collect();
        Ok(Box::new(Loaded::new(&self.path, &self.told, &ranges)?))
    }
}
