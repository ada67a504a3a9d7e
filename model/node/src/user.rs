// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at addresses that the app gives. An address that is not mapped gives EFAULT, as from the kernel, and no crash.

use std::ffi::c_void;

use zerocopy::{FromBytes, IntoBytes};

use crate::errno::{Errno, Result};

/// Reads bytes of the app.
pub(crate) fn read(address: u64, to: &mut [u8]) -> Result<()> {
    copy(
        libc::SYS_process_vm_readv,
        address,
        to.as_mut_ptr(),
        to.len(),
    )
}

/// Writes bytes of the app.
pub(crate) fn write(address: u64, from: &[u8]) -> Result<()> {
    let bytes = from.as_ptr().cast_mut();
    copy(libc::SYS_process_vm_writev, address, bytes, from.len())
}

/// Reads an element of an array.
pub(crate) fn element<T: FromBytes + IntoBytes>(array: u64, index: u32) -> Result<T> {
    let mut value = T::new_zeroed();
    read(place::<T>(array, index)?, value.as_mut_bytes())?;
    Ok(value)
}

/// Where an element of an array is.
pub(crate) fn place<T>(array: u64, index: u32) -> Result<u64> {
    let offset = u64::from(index) * size_of::<T>() as u64;
    array.checked_add(offset).ok_or(Errno::FAULT)
}

/// Lets the kernel copy between this process and itself, which checks the app's address. `ours` is written only by a read.
fn copy(call: libc::c_long, address: u64, ours: *mut u8, length: usize) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let theirs = std::ptr::with_exposed_provenance_mut::<u8>(address);
    let vector = |start: *mut u8| libc::iovec {
        iov_base: start.cast::<c_void>(),
        iov_len: length,
    };
    let (local, remote) = (vector(ours), vector(theirs));
    // SAFETY: the local side is a slice of `length` bytes, mutable if it is written; the kernel checks the remote one.
    let copied = unsafe {
        let pid = libc::c_long::from(libc::getpid());
        // Every argument has the width of a register.
        libc::syscall(
            call,
            pid,
            &raw const local,
            1usize,
            &raw const remote,
            1usize,
            0usize,
        )
    };
    match copied {
        -1 => match Errno::last() {
            // A sandbox without the call: the app's address is taken on trust.
            Errno(libc::ENOSYS | libc::EPERM) => {
                let (from, to) = match call {
                    libc::SYS_process_vm_readv => (theirs, ours),
                    _ => (ours, theirs),
                };
                // SAFETY: one side is a slice; the other is memory that the app says it has, as for any function of C.
                unsafe { std::ptr::copy(from, to, length) };
                Ok(())
            }
            _ => Err(Errno::FAULT),
        },
        copied if copied as usize == length => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_refuses_what_is_not_mapped() {
        let mut mine = [1u32, 2, 3];
        let address = mine.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(element::<u32>(address, 2), Ok(3));
        write(address + 4, &7u32.to_le_bytes()).unwrap();
        assert_eq!(element::<u32>(address, 1), Ok(7));
        for bad in [0, 8, u64::MAX, u64::MAX - 2, 1 << 63] {
            assert_eq!(read(bad, &mut [0; 4]), Err(Errno::FAULT), "{bad:#x}");
            assert_eq!(write(bad, &[0; 4]), Err(Errno::FAULT), "{bad:#x}");
        }
        assert_eq!(element::<u64>(u64::MAX, 1), Err(Errno::FAULT));
    }
}
