// SPDX-License-Identifier: MIT OR Apache-2.0
//! `dlsym` of the process: the driver's functions by name become ours, everything else is the C library's affair.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hooks;

static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// The C library's `dlsym`. Its version tells it from ours.
fn real_dlsym() -> usize {
    let known = REAL_DLSYM.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // glibc 2.34 moved the function into libc; before it was in libdl under the version of each architecture's birth.
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

/// What the C library answers to `dlsym(handle, name)`.
pub(crate) fn look_up(handle: usize, name: &CStr) -> usize {
    type Dlsym = unsafe extern "C" fn(usize, *const c_char) -> usize;
    let real = real_dlsym();
    if real == 0 {
        return 0;
    }
    // SAFETY: the address is that of the C library's dlsym.
    let function = unsafe { std::mem::transmute::<usize, Dlsym>(real) };
    // SAFETY: the name is a C string; the C library checks the handle.
    unsafe { function(handle, name.as_ptr()) }
}

/// The address to hand out for `name`, or 0: then the C library decides, with its caller's return address in place, so that
/// RTLD_NEXT means what its caller means.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only the x86-64 entry calls it")
)]
unsafe extern "C" fn substitute(handle: usize, name: *const c_char) -> usize {
    real_dlsym();
    if name.is_null() || handle == libc::RTLD_NEXT as usize {
        return 0;
    }
    // SAFETY: a caller of dlsym passes a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if !name.to_bytes().starts_with(b"cu") {
        return 0;
    }
    let Some(index) = hooks::index_of(name) else {
        return 0;
    };
    if look_up(handle, name) == 0 {
        return 0;
    }
    hooks::address(index)
}

/// `dlsym`: asks [`substitute`], and jumps to the C library's where that has no answer.
///
/// # Safety
/// As for `dlsym`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {substitute}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, [rip + {real}]",
        "jmp rax",
        "2: ret",
        substitute = sym substitute,
        real = sym REAL_DLSYM,
    )
}
