// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory files, known by inode.

use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::errno::{Errno, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

/// The node's own are from here on if possible: `select` and programs that count theirs do not meet them.
const HIGH: c_int = 1 << 10;

pub(crate) fn identity(fd: RawFd) -> Option<Identity> {
    let status = status(fd)?;
    Some(Identity {
        device: status.st_dev,
        inode: status.st_ino,
    })
}

pub(crate) fn size(fd: RawFd) -> Option<u64> {
    u64::try_from(status(fd)?.st_size).ok()
}

fn status(fd: RawFd) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call fills the structure if it says so.
    unsafe { (libc::fstat(fd, status.as_mut_ptr()) == 0).then(|| status.assume_init()) }
}

pub(crate) fn memory_file(name: &CStr, size: u64) -> Result<OwnedFd> {
    let size = i64::try_from(size).map_err(|_| Errno::NO_MEMORY)?;
    // SAFETY: the name is a C string; a descriptor that comes back is new.
    let file = unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(Errno::last());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain calls on a descriptor of ours.
    let done = unsafe {
        libc::ftruncate(file.as_raw_fd(), size) == 0
            && libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) == 0
    };
    done.then(|| raised(file)).ok_or_else(Errno::last)
}

pub(crate) fn mark(name: &CStr) -> Result<(OwnedFd, Identity)> {
    let file = memory_file(name, 0)?;
    let identity = identity(file.as_raw_fd()).ok_or(Errno::NO_MEMORY)?;
    Ok((file, identity))
}

fn raised(file: OwnedFd) -> OwnedFd {
    // SAFETY: a new descriptor of a file of ours.
    unsafe {
        match libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) {
            -1 => file,
            high => OwnedFd::from_raw_fd(high),
        }
    }
}

pub(crate) fn for_app(file: &OwnedFd, close_on_exec: bool) -> Result<RawFd> {
    let command = if close_on_exec {
        libc::F_DUPFD_CLOEXEC
    } else {
        libc::F_DUPFD
    };
    // SAFETY: a plain call on a descriptor of ours.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, 0) } {
        -1 => Err(Errno::last()),
        fd => Ok(fd),
    }
}

pub(crate) fn from_app(fd: RawFd) -> Result<OwnedFd> {
    if fd < 0 {
        return Err(Errno(libc::EBADF));
    }
    // SAFETY: the number may be stale, which the call finds; it is borrowed for the call alone.
    let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    copy.map(raised)
        .map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EBADF)))
}

pub(crate) fn is_sealed(fd: RawFd, name: &str) -> bool {
    let target = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    let named = target.is_ok_and(|to| to.to_str() == Some(&format!("/memfd:{name} (deleted)")));
    // SAFETY: a plain call; a number that is not open gives an error.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    named && seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
}

/// Whether another descriptor than `except` has it.
pub(crate) fn is_open(file: Identity, except: Option<RawFd>) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        // Not known: better a file too many.
        return true;
    };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|fd| Some(*fd) != except)
        .any(|fd| identity(fd) == Some(file))
}

/// Each object has a descriptor.
pub(crate) fn raise_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is filled, and read back; a refusal changes nothing.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
