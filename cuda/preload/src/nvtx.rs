// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVTX ranges: we are its injection (`NVTX_INJECTION64_PATH`).
//!
//! Numbers and layouts: `nvtxTypes.h` and `nvtxImpl.h` of NVTX 3.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};

use crate::run;

#[repr(C)]
struct Callbacks {
    size: usize,
    table: Option<unsafe extern "C" fn(c_int, *mut *mut *mut usize, *mut u32) -> c_int>,
}

const NO_DOMAIN: usize = 0;
/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;

/// `NVTX_CB_MODULE_CORE` and `NVTX_CB_MODULE_CORE2`, with numbers of functions.
fn ours() -> [(c_int, Vec<(usize, usize)>); 2] {
    [
        (
            1,
            vec![
                (8, push_attributes as *const () as usize),
                (9, push_text as *const () as usize),
                (10, push_wide as *const () as usize),
                (11, pop as *const () as usize),
            ],
        ),
        (
            5,
            vec![
                (4, push_in_domain as *const () as usize),
                (5, pop_in_domain as *const () as usize),
            ],
        ),
    ]
}

/// Called once per library with NVTX; returns 1.
///
/// # Safety
/// `export` is NVTX's function that gives tables by number.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn InitializeInjectionNvtx2(
    export: Option<unsafe extern "C" fn(u32) -> *const c_void>,
) -> c_int {
    let Some(export) = export else { return 0 };
    // SAFETY: our caller's promise; the table lives as long as the library.
    let callbacks = unsafe { export(CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(table_of) = callbacks.and_then(|callbacks| callbacks.table) else {
        return 0;
    };
    for (module, functions) in ours() {
        let (mut table, mut count) = (std::ptr::null_mut(), 0);
        // SAFETY: pointers to locals.
        let known = unsafe { table_of(module, &raw mut table, &raw mut count) };
        if known != 1 || table.is_null() {
            continue;
        }
        for (number, function) in functions {
            if number < count as usize {
                // SAFETY: the table has so many places, each with the address of a function's pointer.
                unsafe {
                    let place = *table.add(number);
                    if !place.is_null() {
                        *place = function;
                    }
                }
            }
        }
    }
    1
}

/// # Safety
/// Null, or a C string.
unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    match text.is_null() {
        true => Cow::Borrowed(""),
        // SAFETY: our caller's promise.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    }
}

/// Attributes' offsets: message kind, message.
const KIND: usize = 32;
const MESSAGE: usize = 40;
/// `NVTX_MESSAGE_TYPE_ASCII`.
const ASCII: i32 = 1;

/// Empty for registered or wide messages.
///
/// # Safety
/// Null, or `nvtxEventAttributes_t`.
unsafe fn message<'a>(attributes: *const u8) -> Cow<'a, str> {
    if attributes.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: our caller's promise.
    unsafe {
        if attributes.add(KIND).cast::<i32>().read_unaligned() != ASCII {
            return Cow::Borrowed("");
        }
        text(
            attributes
                .add(MESSAGE)
                .cast::<*const c_char>()
                .read_unaligned(),
        )
    }
}

unsafe extern "C" fn push_text(name: *const c_char) -> c_int {
    // SAFETY: the program passes a C string.
    run::range_begins(&unsafe { text(name) }, NO_DOMAIN)
}

/// The name is not read, but the range ends as others.
extern "C" fn push_wide(_name: *const c_void) -> c_int {
    run::range_begins("", NO_DOMAIN)
}

unsafe extern "C" fn push_attributes(attributes: *const u8) -> c_int {
    // SAFETY: the program passes attributes.
    run::range_begins(&unsafe { message(attributes) }, NO_DOMAIN)
}

unsafe extern "C" fn push_in_domain(domain: *mut c_void, attributes: *const u8) -> c_int {
    // SAFETY: as above.
    run::range_begins(&unsafe { message(attributes) }, domain as usize)
}

extern "C" fn pop() -> c_int {
    run::range_ends(NO_DOMAIN)
}

extern "C" fn pop_in_domain(domain: *mut c_void) -> c_int {
    run::range_ends(domain as usize)
}
