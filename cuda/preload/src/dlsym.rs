// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process's `dlsym`: driver functions become ours.

use std::ffi::{CStr, c_char, c_void};

use crate::c_library::{REAL_DLSYM, look_up, real_dlsym};
use crate::hooks;

/// 0: the C library answers, with its caller's return address in place, so that RTLD_NEXT means the caller's.
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
    let Some(address) = hooks::address_of(name) else {
        return 0;
    };
    if look_up(handle, name) == 0 {
        return 0;
    }
    address
}

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
