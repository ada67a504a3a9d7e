// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVTX inside a library: tables that an injection fills.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use super::dlsym;

/// Modules 1 (core) and 5 (domains).
static mut FUNCTIONS: [[usize; 16]; 2] = [[0; 16]; 2];
static mut PLACES: [[*mut usize; 16]; 2] = [[null_mut(); 16]; 2];

#[repr(C)]
struct Callbacks {
    size: usize,
    table: unsafe extern "C" fn(c_int, *mut *mut *mut usize, *mut u32) -> c_int,
}

unsafe extern "C" fn table(module: c_int, table: *mut *mut *mut usize, count: *mut u32) -> c_int {
    let Some(index) = [1, 5].iter().position(|known| *known == module) else {
        return 0;
    };
    // SAFETY: no other thread has begun; the pointers are the injection's.
    unsafe {
        let functions = (&raw mut FUNCTIONS).cast::<usize>().add(index * 16);
        let places = (&raw mut PLACES).cast::<*mut usize>().add(index * 16);
        for number in 0..16 {
            places.add(number).write(functions.add(number));
        }
        table.write(places);
        count.write(16);
    }
    1
}

unsafe extern "C" fn export(number: u32) -> *const c_void {
    static CALLBACKS: Callbacks = Callbacks {
        size: size_of::<Callbacks>(),
        table,
    };
    match number {
        1 => (&raw const CALLBACKS).cast(),
        _ => null(),
    }
}

pub(super) struct Nvtx {
    is_there: bool,
}

impl Nvtx {
    pub(super) fn injected() -> Self {
        if std::env::var_os("NVTX_INJECTION64_PATH").is_none() {
            return Self { is_there: false };
        }
        // SAFETY: a C string; the function takes a function that gives tables.
        unsafe {
            let name = c"InitializeInjectionNvtx2";
            let found = dlsym(null_mut(), name.as_ptr().cast());
            assert!(!found.is_null(), "the injection");
            type Export = unsafe extern "C" fn(u32) -> *const c_void;
            let start: unsafe extern "C" fn(Export) -> c_int = std::mem::transmute(found);
            assert_eq!(start(export), 1);
        }
        Self { is_there: true }
    }

    fn function(&self, module: usize, number: usize) -> usize {
        // SAFETY: filled before.
        unsafe { FUNCTIONS[module][number] }
    }

    pub(super) fn range<T>(&self, name: &CStr, work: impl FnOnce() -> T) -> T {
        if !self.is_there {
            return work();
        }
        // SAFETY: the injection's functions.
        unsafe {
            let push: unsafe extern "C" fn(*const c_char) -> c_int =
                std::mem::transmute(self.function(0, 9));
            let pop: unsafe extern "C" fn() -> c_int = std::mem::transmute(self.function(0, 11));
            let depth = push(name.as_ptr());
            let done = work();
            assert_eq!(pop(), depth, "as many as before");
            done
        }
    }

    pub(super) fn range_with_wide_name<T>(&self, name: &[u32], work: impl FnOnce() -> T) -> T {
        if !self.is_there {
            return work();
        }
        // SAFETY: the injection's functions, or none.
        unsafe {
            let push: Option<unsafe extern "C" fn(*const u32) -> c_int> =
                std::mem::transmute(self.function(0, 10));
            let pop: unsafe extern "C" fn() -> c_int = std::mem::transmute(self.function(0, 11));
            if let Some(push) = push {
                push(name.as_ptr());
            }
            let done = work();
            pop();
            done
        }
    }

    /// The injection only compares it.
    const DOMAIN: *mut c_void = 16 as *mut c_void;

    /// Attributes of 48 bytes.
    pub(super) fn push_in_domain(&self, name: &CStr) {
        let mut attributes = [0u64; 6];
        (attributes[4], attributes[5]) = (1, name.as_ptr() as u64);
        if self.is_there {
            // SAFETY: the injection's function.
            unsafe {
                let push: unsafe extern "C" fn(*mut c_void, *const u64) -> c_int =
                    std::mem::transmute(self.function(1, 4));
                assert_eq!(push(Self::DOMAIN, attributes.as_ptr()), 0);
            }
        }
    }

    pub(super) fn pop_in_domain(&self) {
        if self.is_there {
            // SAFETY: the injection's function.
            unsafe {
                let pop: unsafe extern "C" fn(*mut c_void) -> c_int =
                    std::mem::transmute(self.function(1, 5));
                assert_eq!(pop(Self::DOMAIN), 0, "as many as before");
            }
        }
    }
}
