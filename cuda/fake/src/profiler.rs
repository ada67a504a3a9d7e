// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for CUPTI.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

use crate::kernels::{Sizes, took};

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`.
const KERNEL: u32 = 10;
const RECORD_BYTES: usize = 160;

type Want = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Done = unsafe extern "C" fn(u64, u32, *mut u8, usize, usize);

struct State {
    callbacks: Option<(Want, Done)>,
    is_enabled: bool,
    ran: Vec<(CString, Sizes)>,
}

static STATE: Mutex<State> = Mutex::new(State {
    callbacks: None,
    is_enabled: false,
    ran: Vec::new(),
});

pub(crate) fn ran(name: &CStr, sizes: Sizes) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_enabled {
        state.ran.push((name.to_owned(), sizes));
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityRegisterCallbacks(want: Want, done: Done) -> i32 {
    STATE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .callbacks = Some((want, done));
    0
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityEnable(kind: u32) -> i32 {
    STATE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_enabled = kind == KERNEL;
    0
}

/// # Safety
/// What it was registered with are such functions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiActivityFlushAll(_flags: u32) -> i32 {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = std::mem::take(&mut state.ran);
    let callbacks = state.callbacks;
    drop(state);
    let Some((want, done)) = callbacks else {
        return 0;
    };
    for ran in ran.chunks(64) {
        let (mut buffer, mut size, mut most) = (std::ptr::null_mut::<u8>(), 0, 0);
        // SAFETY: our caller's functions: the buffer has the size that they say, which is checked, and is aligned to 8
        // bytes.
        unsafe {
            want(&raw mut buffer, &raw mut size, &raw mut most);
            if buffer.is_null() || size < ran.len() * RECORD_BYTES {
                return 1;
            }
            for (index, (name, sizes)) in ran.iter().enumerate() {
                let record = buffer.add(index * RECORD_BYTES);
                record.cast::<u32>().write(KERNEL);
                record.add(16).cast::<u64>().write(0);
                record.add(24).cast::<u64>().write((took() * 1e6) as u64);
                record.add(52).cast::<[u32; 3]>().write(sizes.grid);
                record.add(64).cast::<[u32; 3]>().write(sizes.block);
                record.add(104).cast::<*const c_char>().write(name.as_ptr());
            }
            done(0, 0, buffer, size, ran.len() * RECORD_BYTES);
        }
    }
    0
}

/// # Safety
/// The buffer is one that `done` got, with so many bytes of records.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> i32 {
    // SAFETY: our caller's promise.
    unsafe {
        let next = match (*record).is_null() {
            true => buffer,
            false => (*record).add(RECORD_BYTES),
        };
        // `CUPTI_ERROR_MAX_LIMIT_REACHED`.
        if next as usize >= buffer as usize + valid {
            return 12;
        }
        *record = next;
    }
    0
}
