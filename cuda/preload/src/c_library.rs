// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C library's own `dlsym`.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// The version tells it from ours.
pub(crate) fn real_dlsym() -> usize {
    let known = REAL_DLSYM.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // In libc since glibc 2.34; before in libdl, under the version of each architecture's birth.
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: both are C strings; RTLD_NEXT is a handle.
        let address = unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !address.is_null() {
            REAL_DLSYM.store(address as usize, Ordering::Relaxed);
            return address as usize;
        }
    }
    0
}

pub(crate) fn look_up(handle: usize, name: &CStr) -> usize {
    type Dlsym = unsafe extern "C" fn(usize, *const c_char) -> usize;
    let real = real_dlsym();
    if real == 0 {
        return 0;
    }
    // SAFETY: `real` is the C library's dlsym.
    let function = unsafe { std::mem::transmute::<usize, Dlsym>(real) };
    // SAFETY: a C string; the C library checks the handle.
    unsafe { function(handle, name.as_ptr()) }
}
