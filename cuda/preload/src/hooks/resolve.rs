// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named functions become ours.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{LazyLock, Once};

use gpureplay_cuda_launch::abi::Status;

use crate::report::summary;
use crate::settings::{Mode, settings};
use crate::{cupti, durations, run, tally};

/// Version and stream semantics do not matter: the pointer is exported under the hook's name.
unsafe fn substitute(pointer: *mut *mut c_void) {
    static BY_ADDRESS: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
        let addresses = super::all().map(|hook| (hook.real(), hook.own()));
        addresses.filter(|(real, _)| *real != 0).collect()
    });
    if !pointer.is_null() {
        // SAFETY: the driver wrote the pointer.
        let real = unsafe { *pointer } as usize;
        if let Some(hook) = BY_ADDRESS.get(&real) {
            // SAFETY: as above.
            unsafe { *pointer = *hook as *mut c_void };
        }
    }
}

extern "C" fn at_exit() {
    cupti::finish();
    durations::finish();
    tally::finish(cupti::is_active());
    run::at_exit();
    summary();
}

fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if !matches!(settings().mode, Mode::Off) {
            if let Some(path) = &settings().cupti {
                cupti::start(path);
            }
            // SAFETY: a function that lives as long as the process.
            unsafe { libc::atexit(at_exit) };
        }
    });
}

hooks! {
    cuInit: (flags: u32) |real| { real.then(begin) }
    cuGetProcAddress: (name: *const c_char, pointer: *mut *mut c_void, version: i32, flags: u64) |real| { real.then(|| substitute(pointer)) }
    cuGetProcAddress_v2: (name: *const c_char, pointer: *mut *mut c_void, version: i32, flags: u64, found: *mut i32) |real| { real.then(|| substitute(pointer)) }
}
