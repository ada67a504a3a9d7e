// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at addresses that the app gives. An address that is not mapped gives EFAULT, as from the kernel, and no crash.

use gpureplay_host::caller;
use mali_facts::panthor::ObjectArray;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::errno::{Errno, Result};

/// Bytes of an object of an array, at most.
const MOST_BYTES: usize = 256;

/// Reads bytes of the app.
pub(crate) fn read(address: u64, to: &mut [u8]) -> Result<()> {
    caller::read(address, to).map_err(|_| Errno::FAULT)
}

/// Writes bytes of the app.
pub(crate) fn write(address: u64, from: &[u8]) -> Result<()> {
    caller::write(address, from).map_err(|_| Errno::FAULT)
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

/// Calls `step` with each object of an array, whose objects may be shorter than we know them, or longer if the rest is zero.
pub(crate) fn objects<T: FromBytes + IntoBytes + Immutable>(
    array: &ObjectArray,
    mut step: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let stride = array.stride as usize;
    if array.count > 0 && !(4..=MOST_BYTES).contains(&stride) {
        return Err(Errno::INVALID);
    }
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
