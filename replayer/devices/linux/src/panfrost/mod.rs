// SPDX-License-Identifier: MIT OR Apache-2.0
//! panfrost: no module, no root, other programs go on.

mod abi;
mod fit;
mod node;
mod placement;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use gpureplay_format::Recording;
use mali_uapi::panfrost::parameter;

pub use crate::refusal::{ENDLESS, FAULTED, MISPLACED, TOO_LONG, UNFIT, refusal};
pub use node::find;

use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::misfit::Misfit;
use crate::stock::{self, Stock, Wanted, refused};
use crate::watched;
use node::Node;
use placement::Range;

/// For other programs' chains, which end after 500 ms (`JOB_TIMEOUT_MS` of `panfrost_job.c`).
const QUEUE: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Panfrost {
    path: PathBuf,
    identity: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Loaded {
    mappings: Mappings,
    objects: Vec<u32>,
    /// Per recording: just used objects keep their addresses for a while.
    node: Node,
}

/// # Errors
/// Missing or forbidden, another driver, or another page size.
pub fn open(path: &Path) -> Result<Stock, OpenError> {
    let node = Node::open(path)?;
    Stock::new(Box::new(Panfrost {
        path: path.to_owned(),
        identity: parameter::registers(|number| node.parameter(number)).collect(),
    }))
}

impl Loaded {
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
        // Without fillers, access outside the recording's memory faults.
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
}

impl stock::Loaded for Loaded {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind> {
        let requirements = match work.queue() {
            0 => abi::FRAGMENT,
            1 => 0,
            other => return Err(ErrorKind::NoSuchSlot(other)),
        };
        let time = Duration::from_micros(work.timeout_us().into()) + QUEUE;
        watched::run(&self.mappings, work, time, || {
            let submitted = self.node.submit(work.head(), &self.objects, requirements);
            submitted.map_err(refused)?;
            self.node.shared().wait(time).map_err(refused)
        })
    }
}

impl stock::Driver for Panfrost {
    fn name(&self) -> &str {
        "panfrost"
    }

    fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        fit::fits(recording)
    }

    fn register(&self, offset: u32) -> u32 {
        self.identity.get(&offset).copied().unwrap_or(0)
    }

    fn load(&self, wanted: &[Wanted]) -> Result<Box<dyn stock::Loaded>, DeviceError> {
        let ranges = wanted
            .iter()
            .map(|it| fit::range(it.va, it.pages, it.access));
        Ok(Box::new(Loaded::new(
            &self.path,
            &ranges.collect::<Vec<_>>(),
        )?))
    }
}
