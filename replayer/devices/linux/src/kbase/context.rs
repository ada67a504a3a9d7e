// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open file of kbase.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use mali_uapi::kbase::properties;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::abi::{self, Atom, Event};
use super::placement::Step;
use super::reserve::Area;
use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::stock::Ended;

/// Releases have about a thousand bytes.
const MOST_PROPERTIES: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Context {
    /// Marks the owner process; keeps the file open while mapped.
    _owner: Area,
    file: File,
}

impl Context {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(nix::libc::EACCES | nix::libc::EPERM) => OpenError::Permission {
                path: path.to_owned(),
                cure: crate::way_in::to_render_node(path),
            },
            Some(nix::libc::ENOENT | nix::libc::ENODEV | nix::libc::ENXIO) => {
                OpenError::NoKbase(path.to_owned())
            }
            _ => OpenError::Io {
                what: path.display().to_string(),
                error,
            },
        })?;
        let failed = |call: &str| {
            let what = format!("{}: {call}", path.display());
            move |errno: Errno| OpenError::Io {
                what,
                error: errno.into(),
            }
        };
        let other = |found: String| OpenError::OtherDriver {
            path: path.to_owned(),
            wanted: "kbase with interface 11: releases r9p0 to r44p1 for GPUs with a job manager"
                .into(),
            found,
        };
        let mut version = abi::Version {
            major: abi::MAJOR,
            minor: abi::NEWEST,
        };
        // SAFETY: open descriptor, the request's structure.
        match unsafe { abi::check_version(file.as_raw_fd(), &mut version) } {
            Ok(_) if version.major == abi::MAJOR => {}
            Ok(_) => {
                let found = format!("interface {}.{}", version.major, version.minor);
                return Err(other(found));
            }
            Err(Errno::EPERM) => return Err(other("a build for command streams".into())),
            Err(Errno::ENOTTY) => return Err(other("another driver".into())),
            Err(errno) => return Err(failed("VERSION_CHECK")(errno)),
        }
        // SAFETY: as above.
        unsafe { abi::set_flags(file.as_raw_fd(), &abi::SetFlags::default()) }
            .map_err(failed("SET_FLAGS"))?;
        let owner = Area::of_file(&file, abi::TRACKING_PAGE).map_err(failed("mmap"))?;
        Ok(Self {
            _owner: owner,
            file,
        })
    }

    pub(crate) fn registers(&self) -> Result<Vec<(u32, u32)>, Errno> {
        let mut buffer = vec![0u8; MOST_PROPERTIES];
        let request = abi::Buffer {
            buffer: buffer.as_mut_ptr() as u64,
            size: MOST_PROPERTIES as u32,
            zero: 0,
        };
        // SAFETY: the driver writes at most `size` bytes to the buffer, which outlives the call.
        let written = unsafe { abi::properties(self.file.as_raw_fd(), &request) }?;
        let written = usize::try_from(written).unwrap_or(0);
        let told = properties(buffer.get(..written).unwrap_or(&[]));
        Ok(told.flat_map(mali_uapi::kbase::registers).collect())
    }

    /// Such as `K:r44p1-01eac0(GPL)`.
    pub(crate) fn release(&self) -> Option<String> {
        let mut buffer = [0u8; 128];
        let request = abi::Buffer {
            buffer: buffer.as_mut_ptr() as u64,
            size: buffer.len() as u32,
            zero: 0,
        };
        // SAFETY: as in `registers`.
        unsafe { abi::release(self.file.as_raw_fd(), &request) }.ok()?;
        let name = buffer.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// The driver chooses one address for CPU and GPU.
    pub(crate) fn allocate(&self, step: &Step) -> Result<Mapped, Errno> {
        let mut words = abi::Allocate {
            words: [step.pages, step.pages, 0, step.flags | abi::flags::SAME_VA],
        };
        // SAFETY: open descriptor, the request's structure.
        unsafe { abi::allocate(self.file.as_raw_fd(), &mut words) }?;
        let [_, cookie, ..] = words.words;
        let length = usize::try_from(step.bytes()).map_err(|_| Errno::ENOMEM)?;
        Mapped::new(&self.file, cookie, length)
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)))
    }

    pub(crate) fn run(&self, atom: &Atom, time: Duration) -> Result<Ended, Errno> {
        let request = abi::Submit {
            atoms: std::ptr::from_ref(atom) as u64,
            count: 1,
            stride: size_of::<Atom>() as u32,
        };
        // SAFETY: the driver reads `count` atoms of `stride` bytes, which outlive the call.
        unsafe { abi::submit(self.file.as_raw_fd(), &request) }?;
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut wait = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            let longest = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut wait, longest) {
                Ok(0) if left.is_zero() => return Ok(Ended::Runs),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return self.event(),
                Err(errno) => return Err(errno),
            }
        }
    }

    fn event(&self) -> Result<Ended, Errno> {
        let mut bytes = [0; size_of::<Event>()];
        (&self.file)
            .read_exact(&mut bytes)
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)))?;
        let code = bytes.first_chunk::<4>().copied().map(u32::from_le_bytes);
        Ok(match code.unwrap_or(0) {
            abi::event::DONE => Ended::Well,
            abi::event::STOPPED | abi::event::TERMINATED | abi::event::JOB_CANCELLED => {
                Ended::Cancelled
            }
            _ => Ended::Failed,
        })
    }
}
