// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the place of `libOpenCL.so`, for apps that open it by name and for stacks without an ICD loader.
//!
//! Exported functions jump through the layer's table, filled at load: from the library that `GPUREPLAY_OPENCL`
//! names, or from `libOpenCL.so.1`.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;

use crate::table::{Function, NAMES, NEXT, OURS, Table};
use crate::{calls, sink};

const VARIABLE: &str = "GPUREPLAY_OPENCL";
const DEFAULT: &CStr = c"libOpenCL.so.1";

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW | RTLD_LOCAL` of Linux.
const NOW: c_int = 2;

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        fill();
    }
    loaded
};

fn fill() {
    let named = env::var_os(VARIABLE).and_then(|name| CString::new(name.into_vec()).ok());
    let name = named.as_deref().unwrap_or(DEFAULT);
    // SAFETY: the name ends with NUL. Loaded, the library does what it would do in this one's place.
    let library = unsafe { dlopen(name.as_ptr(), NOW) };
    for (index, name) in NAMES.iter().enumerate() {
        let found = match library.is_null() {
            true => core::ptr::null_mut(),
            // SAFETY: the handle is open, and the name ends with NUL.
            false => unsafe { dlsym(library, name.as_ptr()) },
        };
        // The library would call itself for ever.
        let own = EXPORTS.get(index).map_or(0, |own| *own as usize);
        let address = if found.addr() == own { 0 } else { found.addr() };
        NEXT.set(index, address);
        OURS.set(
            index,
            if address == 0 {
                absent as *const () as usize
            } else {
                address
            },
        );
    }
    if sink::is_open() {
        calls::install();
    }
}

/// The runtime lacks the function. No answer is right for all, so the program ends.
extern "C" fn absent() -> i32 {
    eprintln!(
        "gpureplay: the OpenCL library lacks a function that the app calls; is {VARIABLE} set to the real library?"
    );
    std::process::abort()
}

const fn place(function: Function) -> usize {
    function as usize * size_of::<usize>()
}

macro_rules! exports {
    ($($name:ident),+ $(,)?) => {
        mod export {
            use super::{OURS, Function, place};
            $(
                /// Jumps to this function in the layer's table, with all arguments as they are.
                ///
                /// # Safety
                /// That of the OpenCL function of this name.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub(super) unsafe extern "C" fn $name() {
                    #[cfg(target_arch = "aarch64")]
                    core::arch::naked_asm!(
                        "adrp x16, {table} + {place}",
                        "ldr x16, [x16, :lo12:{table} + {place}]",
                        "br x16",
                        table = sym OURS,
                        place = const place(Function::$name),
                    );
                    #[cfg(target_arch = "x86_64")]
                    core::arch::naked_asm!(
                        "jmp qword ptr [rip + {table} + {place}]",
                        table = sym OURS,
                        place = const place(Function::$name),
                    );
                }
            )+
        }
        /// In the table's order.
        static EXPORTS: &[unsafe extern "C" fn()] = &[$(export::$name),+];
    };
}
crate::table::functions!(exports);

// A place in the table is an address.
const _: () = assert!(core::mem::align_of::<Table>() == core::mem::align_of::<usize>());
