// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nano driver as a device.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use gpureplay_core::{Chain, DeviceError, ErrorKind, Gpu, Lines};
use gpureplay_format::{Access, PAGE_SIZE};
use mali_drive::{MASKS, clean_caches};
use nix::poll::{PollFd, PollFlags, PollTimeout};

use crate::chains::Chains;
use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::mappings::Mappings;
use crate::nano_abi as abi;
use crate::way_in::way_in;

/// The driver's device.
pub const PATH: &str = "/dev/gpureplay-nano";

/// [`DeviceError::Refused`] code: the GPU was taken away, by sleep or turn.
pub const TAKEN_AWAY: i32 = nix::Error::ESTALE as i32;
const LOST: PollFlags = PollFlags::POLLERR
    .union(PollFlags::POLLHUP)
    .union(PollFlags::POLLNVAL);

/// A reset and power-up cost less than a tenth of it.
const SHORTEST_TURN: Duration = Duration::from_millis(20);

/// Whether to take turns. Either way the kernel owns page tables and checks register writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Fails while the GPU is taken; never lends.
    Guarded,
    /// Waits, and lends the GPU between jobs.
    Shared,
}

/// The nano driver's GPU. Drop resets it and frees pages.
#[derive(Debug)]
pub struct Nano {
    file: File,
    coherent: bool,
    mappings: Mappings,
    wanted_masks: [u32; 3],
    silenced: Lines,
    turn: Option<Instant>,
    lent: u32,
    chains: Chains,
    start: Instant,
}

/// The driver's state, over all openers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The GPU snoops CPU caches.
    pub coherent: bool,
    /// Of GPU memory.
    pub pages: u64,
    /// An opener waits.
    pub waiting: bool,
}

/// Reads the state without taking the GPU.
///
/// # Errors
/// The driver is missing, forbidden, or too old.
pub fn state(path: &Path) -> Result<State, OpenError> {
    let info = information(&open_file(path)?)?;
    Ok(State {
        coherent: info.flags & abi::COHERENT != 0,
        pages: info.pages,
        waiting: info.waiting != 0,
    })
}

fn information(file: &File) -> Result<abi::Info, OpenError> {
    let mut info = abi::Info::default();
    // SAFETY: open descriptor, argument of the request's size.
    unsafe { abi::info(file.as_raw_fd(), &mut info) }.map_err(|errno| match errno {
        nix::Error::ENOTTY | nix::Error::EINVAL => OpenError::OldDriver,
        other => io_error("nano driver: information")(other.into()),
    })?;
    match info.features & abi::HAS_BASE {
        0 => Err(OpenError::OldDriver),
        _ => Ok(info),
    }
}

fn take_turn(file: &File, acquire: abi::Acquire) -> Result<(), nix::Error> {
    loop {
        // SAFETY: open descriptor, argument of the request's size.
        match unsafe { abi::acquire(file.as_raw_fd(), &acquire) } {
            Err(nix::Error::EINTR) => {}
            result => return result.map(drop),
        }
    }
}

fn open_file(path: &Path) -> Result<File, OpenError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(nix::libc::EACCES | nix::libc::EPERM) => OpenError::Permission {
                path: path.to_owned(),
                cure: way_in(path),
            },
            Some(nix::libc::ENOENT | nix::libc::ENODEV | nix::libc::ENXIO) => OpenError::NoDriver {
                path: path.to_owned(),
            },
            _ => OpenError::Io {
                what: path.display().to_string(),
                error,
            },
        })
}

fn raised_lines(event: &[u8]) -> u8 {
    let status = event.get(offset_of!(abi::Event, status)..).unwrap_or(&[]);
    let words = status.chunks_exact(4).take(MASKS.len());
    words
        .enumerate()
        .map(|(line, word)| u8::from(word != [0; 4]) << line)
        .sum()
}

fn gives_away(held: Option<Duration>, is_asked: impl FnOnce() -> bool) -> bool {
    held.is_some_and(|held| held >= SHORTEST_TURN) && is_asked()
}

fn is_lost(poll: &[PollFd<'_>]) -> bool {
    poll.iter()
        .any(|entry| entry.revents().is_some_and(|said| said.intersects(LOST)))
}

fn refused(errno: nix::Error) -> DeviceError {
    match errno {
        nix::Error::ENOMEM => DeviceError::OutOfMemory,
        nix::Error::ETIMEDOUT => DeviceError::ResetFailed,
        other => DeviceError::Refused(other as i32),
    }
}

fn io_error(what: &str) -> impl FnOnce(io::Error) -> OpenError + '_ {
    move |error| OpenError::Io {
        what: what.to_owned(),
        error,
    }
}

impl Nano {
    /// Resets the GPU.
    ///
    /// # Errors
    /// Missing, busy, forbidden, or too old.
    pub fn open(path: &Path, mode: Mode) -> Result<Self, OpenError> {
        let file = open_file(path)?;
        let info = information(&file)?;
        let acquire = abi::Acquire {
            flags: if mode == Mode::Shared { abi::WAIT } else { 0 },
            ..abi::Acquire::default()
        };
        take_turn(&file, acquire).map_err(|errno| match errno {
            nix::Error::EBUSY => OpenError::Busy {
                path: path.to_owned(),
            },
            nix::Error::ETIMEDOUT => OpenError::Stuck,
            other => io_error("nano driver: take the GPU")(other.into()),
        })?;
        Ok(Self {
            file,
            coherent: info.flags & abi::COHERENT != 0,
            mappings: Mappings::default(),
            wanted_masks: [0; 3],
            silenced: Lines::NONE,
            turn: (mode == Mode::Shared).then(Instant::now),
            lent: 0,
            chains: Chains::default(),
            start: Instant::now(),
        })
    }

    /// How often the GPU was lent.
    pub fn lent(&self) -> u32 {
        self.lent
    }

    /// Ended job chains.
    pub fn chains(&self) -> u64 {
        self.chains.ended
    }

    /// Time of ended chains, until their interrupts are acknowledged.
    pub fn working(&self) -> Duration {
        self.chains.working
    }

    fn access(&self, offset: u32, write: bool, value: u32) -> Result<u32, nix::Error> {
        let mut access = abi::Access {
            offset,
            write: write.into(),
            value,
            reserved: 0,
        };
        let mut list = abi::Registers {
            list: (&raw mut access) as u64,
            count: 1,
            done: 0,
        };
        // SAFETY: `list` names one access that lives until the call returns.
        unsafe { abi::registers(self.file.as_raw_fd(), &mut list) }?;
        Ok(access.value)
    }

    fn sync(&self, va: u64, bytes: usize, direction: u32) -> Result<(), DeviceError> {
        if self.coherent || bytes == 0 {
            return Ok(());
        }
        let sync = abi::Sync {
            va,
            bytes: bytes as u64,
            direction,
            reserved: 0,
        };
        // SAFETY: plain data in, nothing out.
        unsafe { abi::sync(self.file.as_raw_fd(), &sync) }
            .map(|_| ())
            .map_err(refused)
    }

    fn allocate(&self, va: u64, pages: u64, flags: u32) -> Result<Mapped, DeviceError> {
        let mut map = abi::Map {
            va,
            pages,
            flags,
            ..abi::Map::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::map(self.file.as_raw_fd(), &mut map) }.map_err(refused)?;
        let length = usize::try_from(pages)
            .ok()
            .and_then(|pages| pages.checked_mul(PAGE_SIZE as usize))
            .ok_or(DeviceError::OutOfMemory)?;
        Mapped::new(&self.file, map.mmap_offset, length)
            .map_err(|error| DeviceError::Refused(error.raw_os_error().unwrap_or(0)))
    }

    fn said(&self, wanted: PollFlags) -> PollFlags {
        let mut poll = [PollFd::new(self.file.as_fd(), wanted)];
        match nix::poll::poll(&mut poll, PollTimeout::ZERO) {
            Ok(1..) => poll
                .first()
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty()),
            _ => PollFlags::empty(),
        }
    }

    fn is_lost(&self) -> bool {
        self.said(PollFlags::empty()).intersects(LOST)
    }

    fn take_events(&mut self) -> Lines {
        let mut raised = 0;
        let mut bytes = [0u8; size_of::<abi::Event>()];
        while matches!((&self.file).read(&mut bytes), Ok(length) if length == bytes.len()) {
            raised |= raised_lines(&bytes);
        }
        self.silenced = Lines(self.silenced.0 | raised);
        Lines(raised)
    }
}

impl Gpu for Nano {
    fn read32(&mut self, register: u32) -> u32 {
        self.access(register, false, 0).unwrap_or(u32::MAX)
    }

    fn write32(&mut self, register: u32, value: u32) {
        for (mask, at) in self.wanted_masks.iter_mut().zip(MASKS) {
            if at == register {
                *mask = value;
            }
        }
        // The engine notices a refused write by its waits.
        let _ = self.access(register, true, value);
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let deadline = Instant::now() + Duration::from_micros(timeout_us.into());
        // The driver's handler masked these lines; a raised level interrupts again once unmasked.
        for (line, at) in MASKS.into_iter().enumerate() {
            if self.silenced.intersects(Lines(1 << line)) {
                let value = self.wanted_masks.get(line).copied().unwrap_or(0);
                self.write32(at, value);
            }
        }
        self.silenced = Lines::NONE;
        loop {
            let raised = self.take_events();
            if raised.intersects(lines) {
                return Lines(raised.0 & lines.0);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Lines::NONE;
            }
            let milliseconds = left.as_micros().div_ceil(1000).min(60_000) as u16;
            let mut poll = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            match nix::poll::poll(&mut poll, PollTimeout::from(milliseconds)) {
                // Unbound, asleep, or taken away: no interrupt comes.
                Ok(_) if is_lost(&poll) => return Lines::NONE,
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(_) => return Lines::NONE,
            }
        }
    }

    fn now_us(&mut self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        let memory = self.allocate(va, pages.into(), access.0.into())?;
        self.mappings.insert(va, memory);
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        // SAFETY: no argument.
        unsafe { abi::activate(self.file.as_raw_fd()) }.map_err(refused)?;
        Ok(0)
    }

    fn release(&mut self) {
        self.mappings.take();
        // SAFETY: no argument. What cannot be freed now is freed when the file is closed.
        let _ = unsafe { abi::release(self.file.as_raw_fd()) };
    }

    fn lend(&mut self) -> Result<bool, DeviceError> {
        let is_asked = || self.said(PollFlags::POLLPRI) == PollFlags::POLLPRI;
        if !gives_away(self.turn.map(|since| since.elapsed()), is_asked) {
            return Ok(false);
        }
        // Cleaned before the driver's reset, which empties the caches.
        clean_caches(self).map_err(|_| DeviceError::ResetFailed)?;
        // SAFETY: no argument.
        match unsafe { abi::yield_gpu(self.file.as_raw_fd()) } {
            Ok(_) => {}
            Err(nix::Error::EINTR) => {
                let acquire = abi::Acquire {
                    flags: abi::WAIT,
                    ..abi::Acquire::default()
                };
                take_turn(&self.file, acquire).map_err(refused)?;
            }
            Err(errno) => return Err(refused(errno)),
        }
        self.wanted_masks = [0; 3];
        self.silenced = Lines::NONE;
        self.turn = Some(Instant::now());
        self.lent += 1;
        Ok(true)
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.mappings
            .write(va, bytes, |at, length| self.sync(at, length, abi::TO_GPU))
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.mappings
            .read(va, bytes, |at, length| self.sync(at, length, abi::FROM_GPU))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.wanted_masks = [0; 3];
        self.silenced = Lines::NONE;
        // SAFETY: no argument.
        unsafe { abi::reset(self.file.as_raw_fd()) }.map_err(refused)?;
        self.take_events();
        self.silenced = Lines::NONE;
        Ok(())
    }

    fn before_chain(&mut self, _: &Chain) -> Result<(), DeviceError> {
        // A long idle owner loses the GPU to a waiting one.
        if self.is_lost() {
            return Err(DeviceError::Refused(TAKEN_AWAY));
        }
        self.chains.start();
        Ok(())
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        self.chains.end(result.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_its_lines_and_nothing_behind_them() {
        let mut event = [0u8; size_of::<abi::Event>()];
        assert_eq!(raised_lines(&event), 0);
        event[offset_of!(abi::Event, status) + 4] = 1;
        assert_eq!(raised_lines(&event), 2);
        event.fill(1);
        assert_eq!(raised_lines(&event), 7);
    }

    #[test]
    fn a_gpu_is_given_away_at_most_once_in_twenty_milliseconds() {
        let turn = Duration::from_millis(20);
        assert!(gives_away(Some(turn), || true));
        assert!(!gives_away(Some(turn), || false));
        let early = turn - Duration::from_nanos(1);
        assert!(!gives_away(Some(early), || unreachable!()));
        assert!(!gives_away(None, || unreachable!()));
    }
}
