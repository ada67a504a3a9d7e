// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the kernel for the app's memory: a pointer that the runtime never follows must not end the app.

use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::mem::size_of;
use core::slice;
use std::io::Error;

use gpureplay_trace::note::content_hash;

/// `struct iovec`
#[repr(C)]
#[derive(Clone, Copy)]
struct Span {
    address: usize,
    size: usize,
}

unsafe extern "C" {
    fn getpid() -> c_int;
    fn process_vm_readv(
        process: c_int,
        local: *const Span,
        locals: c_ulong,
        remote: *const Span,
        remotes: c_ulong,
        flags: c_ulong,
    ) -> isize;
    fn sysconf(name: c_int) -> c_long;
}

/// `_SC_PAGESIZE` of Linux.
const PAGE_SIZE: c_int = 30;
/// `EFAULT`
const FAULT: i32 = 14;
/// `IOV_MAX`
const SPANS: usize = 1024;

/// `false`: a span is missing. `None`: the kernel does not let a process read itself.
fn copy(into: &mut [u8], from: &[Span]) -> Option<bool> {
    let local = Span {
        address: into.as_mut_ptr().expose_provenance(),
        size: into.len(),
    };
    // SAFETY: the kernel writes into the slice only, and reads the other spans only where memory is.
    let read = unsafe {
        process_vm_readv(
            getpid(),
            &raw const local,
            1,
            from.as_ptr(),
            from.len() as c_ulong,
            0,
        )
    };
    match read {
        0.. => Some(read.unsigned_abs() == into.len()),
        _ if Error::last_os_error().raw_os_error() == Some(FAULT) => Some(false),
        _ => None,
    }
}

/// `None` if not all are there.
pub(crate) fn numbers(address: *const usize, count: usize) -> Option<[usize; 3]> {
    let mut bytes = [0; 3 * size_of::<usize>()];
    let into = bytes.get_mut(..count * size_of::<usize>())?;
    let from = Span {
        address: address.addr(),
        size: into.len(),
    };
    match copy(into, &[from]) {
        Some(true) => {}
        Some(false) => return None,
        // SAFETY: the kernel does not say; OpenCL demands that the numbers are there.
        None => unsafe {
            address
                .cast::<u8>()
                .copy_to_nonoverlapping(into.as_mut_ptr(), into.len())
        },
    }
    let (words, _) = bytes.as_chunks::<{ size_of::<usize>() }>();
    let mut out = [0; 3];
    for (number, word) in out.iter_mut().zip(words) {
        *number = usize::from_ne_bytes(*word);
    }
    Some(out)
}

pub(crate) fn is_there(address: *const c_void, size: usize) -> bool {
    // SAFETY: only answers.
    let page = usize::try_from(unsafe { sysconf(PAGE_SIZE) })
        .unwrap_or(4096)
        .max(1);
    let Some(end) = address.addr().checked_add(size) else {
        return false;
    };
    let first = address.addr() / page * page;
    let mut places = (first..end).step_by(page).map(|at| Span {
        address: at.max(address.addr()),
        size: 1,
    });
    let mut bytes = [0; SPANS];
    loop {
        let some: Vec<Span> = places.by_ref().take(SPANS).collect();
        let Some(into) = bytes.get_mut(..some.len()).filter(|it| !it.is_empty()) else {
            return true;
        };
        if copy(into, &some) == Some(false) {
            return false;
        }
    }
}

/// `None`: the runtime has given the memory back.
///
/// # Safety
/// If there is memory, it is not written meanwhile.
pub(crate) unsafe fn hash(address: *const c_void, size: usize) -> Option<u64> {
    let there = !address.is_null() && is_there(address, size);
    // SAFETY: there is memory, and the caller promises the rest.
    there.then(|| content_hash(unsafe { slice::from_raw_parts(address.cast::<u8>(), size) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read() {
        let held = [7usize, 8, 9];
        assert_eq!(numbers(held.as_ptr(), 2), Some([7, 8, 0]));
        assert_eq!(numbers(held.as_ptr(), 3), Some(held));
        for bad in [0, 8, usize::MAX - 7] {
            assert_eq!(
                numbers(core::ptr::without_provenance(bad), 3),
                None,
                "{bad:#x}"
            );
        }
        let many = vec![1u8; 6 << 20];
        assert!(is_there(many.as_ptr().cast(), many.len()));
        assert!(is_there(core::ptr::null(), 0));
        assert!(!is_there(core::ptr::null(), 1));
        assert!(!is_there(many.as_ptr().cast(), usize::MAX / 2));
        assert!(!is_there(many.as_ptr().cast(), usize::MAX));
    }
}
