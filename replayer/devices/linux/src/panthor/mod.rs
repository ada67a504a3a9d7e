// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own panthor driver as a device for the replay engine: no module, no root, and other programs go on using the GPU.
//!
//! The driver has registers and firmware. It maps memory where it is told, calls streams from a queue of its own, and says how they ended. So
//! this device fills an address space as the recording says, and puts the instructions of each launch into memory that the GPU only reads.

mod abi;
mod fit;
mod node;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines, Submission};
use gpureplay_format::{Access, PAGE_SIZE};
use nix::unistd::{SysconfVar, sysconf};

pub use fit::fits;
pub use node::find;

use crate::chains::Chains;
use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::render_node::{Ended, refused};
use fit::{Range, STREAM, gap};
use node::{Node, Told};

/// How long a stream may wait for those of other programs, each of which the driver ends after 5 s (`JOB_TIMEOUT_MS` of `panthor_sched.c`).
const QUEUE: Duration = Duration::from_secs(20);

/// [`DeviceError::Refused`] has this number when the driver has no room for the recording.
pub const NO_ROOM: i32 = -11;
/// The same when a stream ended with a fault.
pub const FAULTED: i32 = -12;
/// The same when the driver ended a stream after 5 s.
pub const TOO_LONG: i32 = -13;

/// What a number of [`DeviceError::Refused`] means, if this device gives it.
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

/// A GPU behind panthor. Dropping it frees all memory and ends what still runs.
#[derive(Debug)]
pub struct Panthor {
    path: PathBuf,
    told: Told,
    wanted: Vec<Range>,
    loaded: Option<Loaded>,
    chains: Chains,
    start: Instant,
}

/// Memory in place.
#[derive(Debug)]
struct Loaded {
    mappings: Mappings,
    /// Where the instructions of a launch go.
    stream: (u64, Mapped),
    /// The number of the address space, and of the group that works in it.
    vm: u32,
    group: u32,
    /// A file of its own for each recording that is loaded.
    node: Node,
}

impl Panthor {
    /// Opens a render node.
    ///
    /// # Errors
    /// It is missing or forbidden, another driver has it, or the kernel's pages are not those of recordings.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let node = Node::open(path)?;
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(0);
        if page != PAGE_SIZE.into() {
            return Err(OpenError::PageSize { found: page });
        }
        let told = Told::new(&node).map_err(|errno| OpenError::Io {
            what: format!("{}: what the GPU is", path.display()),
            error: errno.into(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            told,
            wanted: Vec::new(),
            loaded: None,
            chains: Chains::default(),
            start: Instant::now(),
        })
    }

    /// Streams that have ended so far.
    pub fn chains(&self) -> u64 {
        self.chains.ended
    }

    /// Time from the submission of each stream to its end, all together; waits for other programs are part of it.
    pub fn working(&self) -> Duration {
        self.chains.working
    }

    fn mappings(&self, va: u64) -> Result<&Mappings, DeviceError> {
        let loaded = self.loaded.as_ref();
        loaded
            .map(|loaded| &loaded.mappings)
            .ok_or(DeviceError::NotMapped(va))
    }
}

impl Loaded {
    /// Puts memory in place, in an address space of its own.
    fn new(path: &Path, told: &Told, ranges: &[Range]) -> Result<Self, DeviceError> {
        let node = Node::open(path).map_err(|error| match error {
            OpenError::Io { error, .. } => DeviceError::Refused(error.raw_os_error().unwrap_or(0)),
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
            node,
        })
    }

    /// Calls the instructions of a launch and waits for their end. A group that failed takes no more work, so another takes its place.
    fn run(&mut self, work: &Submission<'_>, told: &Told) -> Result<(), ErrorKind> {
        let result = self.call(work, told.latest_flush());
        if result.is_err()
            && let Ok(group) = self.node.renew(self.group, self.vm, &told.info)
        {
            self.group = group;
        }
        result
    }

    fn call(&self, work: &Submission<'_>, latest_flush: u32) -> Result<(), ErrorKind> {
        let (at, memory) = &self.stream;
        let bytes = u32::try_from(work.words.len()).map_err(|_| ErrorKind::Internal)?;
        if bytes == 0 || !memory.write(0, work.words) {
            return Err(ErrorKind::Internal);
        }
        let time = Duration::from_micros(work.timeout_us().into()) + QUEUE;
        let submitted = self.node.submit(self.group, (*at, bytes), latest_flush);
        submitted.map_err(refused)?;
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

impl Gpu for Panthor {
    fn read32(&mut self, register: u32) -> u32 {
        self.told.register(register)
    }

    fn write32(&mut self, _: u32, _: u32) {}

    fn wait_irq(&mut self, _: Lines, _: u32) -> Lines {
        Lines::NONE
    }

    fn now_us(&mut self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        self.wanted.push(Range::new(va, pages, access));
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        Ok(0)
    }

    /// Firmware makes all settings: no recording of the family has one.
    fn apply(&mut self, _: u32, _: u32) -> Option<Result<(), ErrorKind>> {
        Some(Err(ErrorKind::Internal))
    }

    fn start(&mut self, _: u32) -> Option<Result<(), ErrorKind>> {
        if self.loaded.is_none() {
            match Loaded::new(&self.path, &self.told, &self.wanted) {
                Ok(loaded) => self.loaded = Some(loaded),
                Err(error) => return Some(Err(error.into())),
            }
        }
        Some(Ok(()))
    }

    fn run_chain(&mut self, work: &Submission<'_>) -> Option<Result<(), ErrorKind>> {
        Some(match &mut self.loaded {
            Some(loaded) => loaded.run(work, &self.told),
            None => Err(ErrorKind::Internal),
        })
    }

    /// The GPU is the driver's to reset. What may still run ends with its file, which [`Gpu::release`] closes.
    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn release(&mut self) {
        self.wanted.clear();
        self.loaded = None;
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.mappings(va)?.write(va, bytes, |_, _| Ok(()))
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.mappings(va)?.read(va, bytes, |_, _| Ok(()))
    }

    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        self.chains.start();
        Ok(())
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        self.chains.end(result.is_ok());
    }
}
