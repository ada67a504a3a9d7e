// SPDX-License-Identifier: MIT OR Apache-2.0
//! kbase, Arm's driver: no module, no root, on vendors' kernels and Android.

mod abi;
mod context;
mod gaps;
mod placement;
mod reserve;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Submission};
use gpureplay_format::{PAGE_SIZE, Recording};
use nix::unistd::{AccessFlags, access};

use crate::error::OpenError;
use crate::mappings::Mappings;
use crate::misfit::{Misfit, plain_chains};
use crate::refusal::{MISPLACED, UNFIT};
use crate::stock::{self, Stock, Wanted, refused};
use crate::watched;
use abi::Atom;
use context::Context;
use gaps::Gaps;
use placement::Range;
use reserve::Reservation;

/// The driver's device.
pub const PATH: &str = "/dev/mali0";

/// For other programs' chains, which end after 5 s (`DEFAULT_JS_HARD_STOP_TICKS_SS`).
const QUEUE: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Kbase {
    path: PathBuf,
    name: String,
    registers: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Loaded {
    mappings: Mappings,
    context: Context,
}

/// # Errors
/// Missing or forbidden, another interface, or another page size.
pub fn open(path: &Path) -> Result<Stock, OpenError> {
    let context = Context::open(path)?;
    let registers = context.registers().map_err(|errno| OpenError::Io {
        what: format!("{}: what the GPU is", path.display()),
        error: errno.into(),
    })?;
    let release = context.release().unwrap_or_default();
    Stock::new(Box::new(Kbase {
        path: path.to_owned(),
        name: format!("kbase {release}").trim_end().to_owned(),
        registers: registers.into_iter().collect(),
    }))
}

/// Does not open it, which would make a context.
pub fn may_open(path: &Path) -> bool {
    let device = fs::metadata(path).is_ok_and(|it| it.file_type().is_char_device());
    device && access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_ok()
}

impl Kbase {
    fn limit(&self) -> u64 {
        let told = |register| self.registers.get(&register).copied().unwrap_or(0);
        let bits = mali_drive::address_bits(told);
        1u64.checked_shl(bits).unwrap_or(u64::MAX)
    }
}

impl Loaded {
    fn new(path: &Path, ranges: &[Range], limit: u64) -> Result<Self, DeviceError> {
        let steps = placement::plan(ranges, limit).map_err(|_| DeviceError::Refused(UNFIT))?;
        let context = Context::open(path).map_err(|error| match error {
            OpenError::Io { error, .. } => DeviceError::Refused(error.raw_os_error().unwrap_or(0)),
            _ => DeviceError::Refused(nix::libc::ENODEV),
        })?;
        let mut made = Vec::with_capacity(steps.len());
        let mut reservation = Reservation::of_process(steps.len()).map_err(refused)?;
        // No memory may be asked for before the reservation is dropped.
        let result = steps.iter().try_for_each(|step| {
            let memory = reservation.place(step, || context.allocate(step));
            match memory.map_err(refused)? {
                Some(memory) if memory.address() as u64 == step.va => made.push(memory),
                _ => return Err(DeviceError::Refused(MISPLACED)),
            }
            Ok(())
        });
        drop(reservation);
        result?;
        let mut mappings = Mappings::default();
        for memory in made {
            mappings.insert(memory.address() as u64, memory);
        }
        // Freed tables come back full of invalid entries (`kbase_mmu_free_pgd` of r44p1).
        for step in &steps {
            for va in (step.va..step.end()).step_by(PAGE_SIZE as usize) {
                mappings.write(va, &[0; PAGE_SIZE as usize], |_, _| Ok(()))?;
            }
        }
        Ok(Self { mappings, context })
    }
}

impl stock::Loaded for Loaded {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn run(&mut self, work: &Submission<'_>) -> Result<(), ErrorKind> {
        let requirements = match work.queue() {
            0 => abi::requirement::FRAGMENT,
            1 => abi::requirement::COMPUTE,
            other => return Err(ErrorKind::NoSuchSlot(other)),
        };
        let atom = Atom {
            chain: work.head(),
            number: 1,
            requirements,
            ..Atom::default()
        };
        let time = Duration::from_micros(work.timeout_us().into()) + QUEUE;
        watched::run(&self.mappings, work, time, || {
            self.context.run(&atom, time).map_err(refused)
        })
    }
}

impl stock::Driver for Kbase {
    fn name(&self) -> &str {
        &self.name
    }

    fn fits(&self, recording: &Recording<'_>) -> Result<(), Misfit> {
        plain_chains(recording)?;
        let steps = placement::plan(&placement::ranges(recording), self.limit())?;
        placement::free(&steps, &Gaps::now().unwrap_or_default())
    }

    fn code_moves(&self, recording: &Recording<'_>) -> Result<BTreeMap<u64, u64>, Misfit> {
        plain_chains(recording)?;
        let gaps = Gaps::now().unwrap_or_default();
        placement::moves(&placement::ranges(recording), self.limit(), &gaps)
    }

    fn register(&self, offset: u32) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn load(&self, wanted: &[Wanted]) -> Result<Box<dyn stock::Loaded>, DeviceError> {
        let ranges = wanted
            .iter()
            .map(|it| Range::new(it.va, it.pages, it.access));
        let ranges: Vec<Range> = ranges.collect();
        Ok(Box::new(Loaded::new(&self.path, &ranges, self.limit())?))
    }
}
