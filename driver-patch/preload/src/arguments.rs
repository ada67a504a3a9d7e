// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads arguments as the kernel does: a missing address is no crash.

use gpureplay_host::caller;
use mali_uapi::panfrost::request::Request;
use zerocopy::{FromBytes, IntoBytes};

/// Words of a list: 4 MiB.
const MOST: u32 = 1 << 20;

/// Zeros where the argument is shorter or not read. `None` if it is missing.
pub(crate) fn given<T: FromBytes + IntoBytes>(request: Request, place: u64) -> Option<T> {
    let mut value = T::new_zeroed();
    let size = request.size().min(size_of::<T>());
    if request.is_read() {
        caller::read(place, &mut value.as_mut_bytes()[..size]).ok()?;
    }
    Some(value)
}

/// `None` if the app gets less.
pub(crate) fn answered<T: FromBytes + IntoBytes>(request: Request, place: u64) -> Option<T> {
    let whole = request.is_written() && request.size() >= size_of::<T>();
    let mut value = T::new_zeroed();
    let read = whole && caller::read(place, value.as_mut_bytes()).is_ok();
    read.then_some(value)
}

pub(crate) fn give_back(place: u64, bytes: &[u8]) -> bool {
    let from = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let to = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(place as usize),
        ..from
    };
    // SAFETY: the kernel reads the bytes; what it writes is the app's to be written.
    let written = unsafe { libc::process_vm_writev(libc::getpid(), &from, 1, &to, 1, 0) };
    written == bytes.len() as isize
}

/// At least `least` bytes, with zeros; `None` if the argument is missing.
pub(crate) fn whole(request: Request, place: u64, least: usize) -> Option<Vec<u8>> {
    let size = request.size();
    let mut bytes = vec![0; size.max(least)];
    if request.is_read() {
        caller::read(place, bytes.get_mut(..size)?).ok()?;
    }
    Some(bytes)
}

pub(crate) fn list(place: u64, count: u32) -> Option<Vec<u32>> {
    /// Words at a time: room is made once there is something to read.
    const PIECE: usize = 1024;
    let mut words = Vec::new();
    let count = (count <= MOST).then_some(count as usize)?;
    while words.len() < count {
        let mut piece = [0u32; PIECE];
        let part = &mut piece[..PIECE.min(count - words.len())];
        let at = place.checked_add(size_of_val(words.as_slice()) as u64)?;
        caller::read(at, part.as_mut_bytes()).ok()?;
        words.extend_from_slice(part);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mali_uapi::panfrost::request::{GEM_CLOSE, GemClose, SUBMIT};

    fn place<T>(value: &T) -> u64 {
        std::ptr::from_ref(value).expose_provenance() as u64
    }

    #[test]
    fn arguments_are_as_long_as_the_request_says() {
        let mine = [5u32, 6];
        let of = |bits: u32| given::<GemClose>(Request(bits), place(&mine));
        let found = |bits| of(bits).map(|it| (it.handle, it.pad));
        assert_eq!(found(GEM_CLOSE.0), Some((5, 6)));
        assert_eq!(found(GEM_CLOSE.0 & !(8 << 16) | 4 << 16), Some((5, 0)));
        assert_eq!(found(GEM_CLOSE.0 & 0x3fff_ffff), Some((0, 0)));
        assert!(given::<GemClose>(GEM_CLOSE, 8).is_none());
        assert!(answered::<GemClose>(GEM_CLOSE, place(&mine)).is_none());
        assert_eq!(whole(SUBMIT, place(&[7u8; 40]), 48), {
            let mut bytes = vec![7; 40];
            bytes.resize(48, 0);
            Some(bytes)
        });
    }

    #[test]
    fn what_is_given_back_is_the_apps_to_have() {
        let mut mine = [0u8; 4];
        let at = mine.as_mut_ptr().expose_provenance() as u64;
        assert!(give_back(at + 1, &[7, 8]));
        assert_eq!(mine, [0, 7, 8, 0]);
        assert!(!give_back(8, &[7, 8]) && !give_back(u64::MAX, &[7]));
    }

    #[test]
    fn lists_are_there_or_not() {
        let mine: Vec<u32> = (0..3000).collect();
        let at = mine.as_ptr().expose_provenance() as u64;
        assert_eq!(list(at, 3000).as_deref(), Some(mine.as_slice()));
        assert_eq!(list(8, 0), Some(Vec::new()));
        assert_eq!(list(0, 1), None);
        assert_eq!(list(u64::MAX - 4, 2), None);
        assert_eq!(list(at, MOST + 1), None);
    }
}
