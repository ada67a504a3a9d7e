// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that stay where they are: registered as buffers of an io_uring, which no request ever uses.
//!
//! Locked memory (`mlock`) is only kept from being swapped out. The kernel still moves it: it collapses pages into huge ones
//! (khugepaged, `MADV_COLLAPSE`), makes room for large blocks (compaction), gives the writer of a page that `fork` shared a
//! copy, and empties ranges for CMA. A registered buffer is pinned for as long as it is registered (`FOLL_LONGTERM`): the
//! kernel leaves a pinned page alone in all these places, and `fork` gives the copy to the child. Before it pins a page it moves it
//! out of ranges that must stay movable, so physical addresses are looked up afterwards.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc;

/// Bytes that one registered buffer may have.
const MAX_BUFFER: usize = 1 << 30;
/// `IORING_REGISTER_BUFFERS` of linux/io_uring.h.
const REGISTER_BUFFERS: libc::c_uint = 0;
/// 32-bit words of `struct io_uring_params` of linux/io_uring.h.
const PARAMETER_WORDS: usize = 30;

/// Pages that are pinned until this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    _ring: OwnedFd,
}

impl Pin {
    /// Pins the pages of this process from `address` on.
    ///
    /// # Errors
    /// The range is no memory of this process that it may write, more than it may lock (`RLIMIT_MEMLOCK`), or the kernel has no
    /// io_uring (`ENOSYS`) or forbids it (`EPERM`: `kernel.io_uring_disabled`, a sandbox).
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
            .step_by(MAX_BUFFER)
            .map(|offset| libc::iovec {
                iov_base: (address + offset) as *mut libc::c_void,
                iov_len: MAX_BUFFER.min(length - offset),
            })
            .collect();
        // SAFETY: the list outlives the call. The kernel checks the ranges, and neither reads nor writes them: no request follows.
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
        // The kernel checks the range: no page is at 4096, and none may be behind the last address of a process.
        for (address, length) in [(4096, 4096), (1 << 47, 4096), (usize::MAX & !4095, 4096)] {
            assert!(Pin::new(address, length).is_err(), "{address:#x}");
        }
        // Constants may be read only: the kernel pins nothing that this process may not write.
        static CONSTANT: [u8; 8192] = [1; 8192];
        let inside = (CONSTANT.as_ptr() as usize).next_multiple_of(4096);
        assert!(Pin::new(inside, 4096).is_err());
    }
}
