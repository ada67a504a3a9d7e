// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a request fails.

use std::ffi::c_int;

/// Error number as in `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// Bad address.
    pub const FAULT: Errno = Errno(libc::EFAULT);
    /// Invalid argument.
    pub const INVALID: Errno = Errno(libc::EINVAL);
    /// No such object.
    pub const NO_ENTRY: Errno = Errno(libc::ENOENT);
    /// Out of memory.
    pub const NO_MEMORY: Errno = Errno(libc::ENOMEM);

    pub(crate) fn last() -> Errno {
        let error = std::io::Error::last_os_error();
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// Result of a request.
pub type Result<T> = std::result::Result<T, Errno>;

pub(crate) const fn valid(holds: bool) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Errno::INVALID),
    }
}
