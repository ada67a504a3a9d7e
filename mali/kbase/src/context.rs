// SPDX-License-Identifier: MIT OR Apache-2.0
//! A context of kbase: memory that the GPU sees, and atoms.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::ptr::NonNull;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::error::Error;
use crate::interface::{self as abi, Atom, Event};

/// How long atoms may take, in milliseconds.
const ATOM_TIMEOUT_MS: u16 = 60_000;
/// Size of a page in bytes, for CPU and GPU.
pub(crate) const PAGE: u64 = 4096;

/// What a region is for, and how many of its pages are there from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Pages of address space.
    pub(crate) pages: u64,
    /// Pages of memory.
    pub(crate) commit: u64,
    /// Pages that a fault adds; 0 for a region that does not grow.
    pub(crate) extension: u64,
    /// [`abi::flags`].
    pub(crate) flags: u64,
}

/// An open device.
pub(crate) struct Context {
    file: File,
    /// Minor version of the driver's interface.
    pub(crate) minor: u16,
}

impl Context {
    /// Opens the device, agrees on a version, and becomes ready for allocations.
    pub(crate) fn open(path: &Path) -> Result<Context, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| Error::File {
                path: path.into(),
                source,
            })?;
        let fd = file.as_raw_fd();
        let mut version = abi::Version {
            major: abi::MAJOR,
            minor: abi::NEWEST,
        };
        // SAFETY: the descriptor is open and the structure is the one that this request takes.
        unsafe { abi::check_version(fd, &mut version) }.map_err(Error::call("VERSION_CHECK"))?;
        if version.major != abi::MAJOR {
            return Err(Error::Version {
                major: version.major,
                minor: version.minor,
            });
        }
        // SAFETY: as above.
        unsafe { abi::set_flags(fd, &abi::SetFlags::default()) }
            .map_err(Error::call("SET_FLAGS"))?;
        let context = Context {
            file,
            minor: version.minor,
        };
        context.map(PAGE, ProtFlags::PROT_NONE, abi::TRACKING_PAGE)?;
        Ok(context)
    }

    /// The driver's own name of its release, such as `K:r44p1-01eac0(GPL)`.
    pub(crate) fn release(&self) -> Result<String, Error> {
        let mut buffer = [0u8; 128];
        let request = abi::GetRelease {
            buffer: buffer.as_mut_ptr() as u64,
            size: buffer.len() as u32,
            padding: 0,
        };
        // SAFETY: the driver writes at most `size` bytes to the buffer, which outlives the call.
        unsafe { abi::get_release(self.file.as_raw_fd(), &request) }
            .map_err(Error::call("GET_DDK_VERSION"))?;
        let end = buffer.iter().position(|&b| b == 0).unwrap_or(buffer.len());
        Ok(String::from_utf8_lossy(&buffer[..end]).into_owned())
    }

    fn map(&self, bytes: u64, access: ProtFlags, offset: i64) -> Result<NonNull<u8>, Error> {
        let length = usize::try_from(bytes).ok().and_then(NonZeroUsize::new);
        let length = length.ok_or(Error::Size(bytes))?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this program.
        let at = unsafe {
            mmap(
                None,
                length,
                access,
                MapFlags::MAP_SHARED,
                &self.file,
                offset,
            )
        };
        at.map(NonNull::cast).map_err(Error::call("mmap"))
    }

    /// A new region that CPU and GPU see at the same address, which the driver chooses.
    pub(crate) fn allocate(&self, request: &Request) -> Result<NonNull<u8>, Error> {
        let flags = request.flags | abi::flags::SAME_VA;
        let mut words = abi::Allocate {
            words: [request.pages, request.commit, request.extension, flags],
        };
        // SAFETY: the descriptor is open and the structure is the one that this request takes.
        unsafe { abi::allocate(self.file.as_raw_fd(), &mut words) }
            .map_err(Error::call("MEM_ALLOC"))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let bytes = request
            .pages
            .checked_mul(PAGE)
            .ok_or(Error::Size(u64::MAX))?;
        self.map(bytes, access, words.words[1] as i64)
    }

    /// Runs atoms and waits until all have ended.
    pub(crate) fn run(&self, atoms: &[Atom]) -> Result<(), Error> {
        let request = abi::Submit {
            atoms: atoms.as_ptr() as u64,
            count: atoms.len() as u32,
            stride: size_of::<Atom>() as u32,
        };
        // SAFETY: the driver reads `count` atoms of `stride` bytes, which outlive the call.
        unsafe { abi::submit(self.file.as_raw_fd(), &request) }
            .map_err(Error::call("JOB_SUBMIT"))?;
        let mut failed = None;
        for _ in atoms {
            let event = self.event()?;
            if event.code != abi::EVENT_DONE {
                failed.get_or_insert(Error::Atom {
                    atom: event.atom,
                    code: event.code,
                });
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn event(&self) -> Result<Event, Error> {
        let mut wait = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut wait, PollTimeout::from(ATOM_TIMEOUT_MS));
        if ready.map_err(Error::call("poll"))? == 0 {
            return Err(Error::Timeout(ATOM_TIMEOUT_MS / 1000));
        }
        let mut bytes = [0; size_of::<Event>()];
        let read = (&self.file).read(&mut bytes);
        read.map_err(|source| Error::Event { source })?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Ok(Event {
            code: word(0),
            atom: bytes[4],
            ..Event::default()
        })
    }
}
