// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at addresses that the app gives. An address that is not mapped gives EFAULT, as from the kernel, and no crash.

use std::ffi::c_void;

use zerocopy::IntoBytes;

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

/// Calls `step` with each number of an array, which is read in pieces: its length is the app's word.
pub(crate) fn each(array: u64, count: u32, mut step: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let mut piece = [0u32; 256];
    let mut done = 0;
    while done < count {
        let length = piece.len().min((count - done) as usize);
        let offset = u64::from(done) * size_of::<u32>() as u64;
        let address = array.checked_add(offset).ok_or(Errno::FAULT)?;
        let part = &mut piece[..length];
        read(address, part.as_mut_bytes())?;
        part.iter().try_for_each(|number| step(*number))?;
        done += length as u32;
    }
    Ok(())
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
        let mut one = [0; 4];
        read(address + 8, &mut one).unwrap();
        assert_eq!(u32::from_le_bytes(one), 3);
        write(address + 4, &7u32.to_le_bytes()).unwrap();
        read(address + 4, &mut one).unwrap();
        assert_eq!(u32::from_le_bytes(one), 7);
        for bad in [0, 8, u64::MAX, u64::MAX - 2, 1 << 63] {
            assert_eq!(read(bad, &mut [0; 4]), Err(Errno::FAULT), "{bad:#x}");
            assert_eq!(write(bad, &[0; 4]), Err(Errno::FAULT), "{bad:#x}");
        }
    }

    #[test]
    fn long_arrays_come_in_pieces() {
        let numbers: Vec<u32> = (0..1000).collect();
        let array = numbers.as_ptr().expose_provenance() as u64;
        let mut seen = Vec::new();
        let mut note = |number| {
            seen.push(number);
            Ok(())
        };
        each(array, 1000, &mut note).unwrap();
        assert_eq!(seen, numbers);
        assert_eq!(each(0, 0, |_| Err(Errno::INVALID)), Ok(()));
        assert_eq!(each(array, 9, |_| Err(Errno::INVALID)), Err(Errno::INVALID));
        assert_eq!(each(u64::MAX, u32::MAX, |_| Ok(())), Err(Errno::FAULT));
    }
}
