// SPDX-License-Identifier: MIT OR Apache-2.0
//! An app's memory; unmapped addresses give EFAULT, as from the kernel.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use gpureplay_host::caller;
use mali_uapi::panthor::ObjectArray;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::errno::{Errno, Result, valid};

const MOST_BYTES: usize = 256;

pub(crate) fn read(address: u64, to: &mut [u8]) -> Result<()> {
    caller::read(address, to).map_err(|_| Errno::FAULT)
}

/// # Safety
/// The app gave the address for an answer of at least this length, and relies on none of those bytes.
pub(crate) unsafe fn write(address: u64, from: &[u8]) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    let local = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(address as usize),
        iov_len: from.len(),
    };
    // SAFETY: the first names `from`, only read; the kernel checks the second, whose bytes the caller answers for.
    let written = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
    let refused = matches!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::ENOSYS | libc::EPERM)
    );
    let done = match written {
        // A sandbox that forbids the call lets the process open its own memory.
        -1 if refused => {
            let memory = OpenOptions::new().write(true).open("/proc/self/mem");
            memory.is_ok_and(|memory| memory.write_all_at(from, address).is_ok())
        }
        written => usize::try_from(written) == Ok(from.len()),
    };
    done.then_some(()).ok_or(Errno::FAULT)
}

/// Read in pieces: the app gives the length.
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

/// An app's may be shorter than ours, or longer with zeros.
pub(crate) fn objects<T: FromBytes + IntoBytes + Immutable>(
    array: &ObjectArray,
    mut step: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let stride = array.stride as usize;
    valid(array.count == 0 || (4..=MOST_BYTES).contains(&stride))?;
    for index in 0..array.count {
        let offset = u64::from(index) * u64::from(array.stride);
        let address = array.array.checked_add(offset).ok_or(Errno::FAULT)?;
        let mut object = T::new_zeroed();
        let known = stride.min(size_of::<T>());
        read(address, &mut object.as_mut_bytes()[..known])?;
        let mut rest = [0; MOST_BYTES];
        let rest = &mut rest[..stride - known];
        if !rest.is_empty() {
            read(address.wrapping_add(known as u64), rest)?;
        }
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Errno(libc::E2BIG));
        }
        step(object)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_where_something_is_mapped() {
        let mut mine = [1u32, 2, 3];
        let address = mine.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the second element; nothing refers to it meanwhile.
        unsafe { write(address + 4, &7u32.to_le_bytes()) }.unwrap();
        let mut one = [0; 4];
        read(address + 4, &mut one).unwrap();
        assert_eq!(u32::from_le_bytes(one), 7);
        for bad in [0, 8, u64::MAX, u64::MAX - 2, 1 << 63] {
            // SAFETY: nothing lies there.
            let refused = unsafe { write(bad, &[0; 4]) };
            assert_eq!(refused, Err(Errno::FAULT), "{bad:#x}");
        }
        // SAFETY: nothing is written.
        assert_eq!(unsafe { write(8, &[]) }, Ok(()));
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
