// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pinned pages: buffers of an io_uring that no request uses.
//!
//! `mlock` only prevents swapping: huge pages (khugepaged, `MADV_COLLAPSE`), compaction, copies for a writer after
//! `fork`, and CMA still move pages. Registered buffers (`FOLL_LONGTERM`) stay, and `fork` copies for the child.
//! Pinning first moves pages out of movable ranges: look up physical addresses afterwards.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc;

const MAX_BUFFER_BYTES: usize = 1 << 30;
/// linux/io_uring.h.
const REGISTER_BUFFERS: libc::c_uint = 0;
/// Of `struct io_uring_params`, linux/io_uring.h.
const PARAMETER_WORDS: usize = 30;

#[derive(Debug)]
pub(crate) struct Pin {
    _ring: OwnedFd,
}

impl Pin {
    /// # Errors
    /// Not writable memory of this process, above `RLIMIT_MEMLOCK`, or io_uring missing (`ENOSYS`) or forbidden
    /// (`EPERM`: `kernel.io_uring_disabled`, a sandbox).
    pub(crate) fn new(address: usize, length: usize) -> io::Result<Self> {
        let mut parameters = [0u32; PARAMETER_WORDS];
        // SAFETY: one entry, and parameters of the structure's size, which the kernel fills in.
        let ring =
            unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, parameters.as_mut_ptr()) };
        if ring < 0 {
            return Err(io::Error::last_os_error());
        }
        let ring = libc::c_int::try_from(ring).map_err(io::Error::other)?;
        // SAFETY: the kernel has just given this descriptor to us alone.
        let ring = unsafe { OwnedFd::from_raw_fd(ring) };
        let buffers: Vec<libc::iovec> = (0..length)
            .step_by(MAX_BUFFER_BYTES)
            .map(|offset| libc::iovec {
                iov_base: (address + offset) as *mut libc::c_void,
                iov_len: MAX_BUFFER_BYTES.min(length - offset),
            })
            .collect();
        // SAFETY: the list outlives the call. The kernel checks the ranges, and neither reads nor writes them: no
        // request follows.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.as_raw_fd(),
                REGISTER_BUFFERS,
                buffers.as_ptr(),
                buffers.len(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { _ring: ring })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_this_process_is_pinned() {
        // The kernel checks: no page at 4096 or after the last address.
        for (address, length) in [(4096, 4096), (1 << 47, 4096), (usize::MAX & !4095, 4096)] {
            assert!(Pin::new(address, length).is_err(), "{address:#x}");
        }
        // Only writable pages can be pinned.
        static CONSTANT: [u8; 8192] = [1; 8192];
        let inside = (CONSTANT.as_ptr() as usize).next_multiple_of(4096);
        assert!(Pin::new(inside, 4096).is_err());
    }
}
