// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an ICD loader asks a layer for.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;

use crate::abi::{
    INVALID_VALUE, LAYER_API_VERSION, LAYER_API_VERSION_100, LAYER_NAME, SUCCESS, Status,
};
use crate::table::{CAPACITY, NAMES, NEXT, OURS, Table};
use crate::{calls, sink};

const NAME: &[u8] = b"gpureplay\0";

/// Layer interface's version, and the layer's name.
///
/// # Safety
/// As for OpenCL's queries: `value` has `size` bytes or is null, and `needed` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Status {
    let version = LAYER_API_VERSION_100.to_ne_bytes();
    let answer: &[u8] = match what {
        LAYER_API_VERSION => &version,
        LAYER_NAME => NAME,
        _ => return INVALID_VALUE,
    };
    if !value.is_null() {
        if size < answer.len() {
            return INVALID_VALUE;
        }
        // SAFETY: the caller has room for `size` bytes, which is enough.
        unsafe { ptr::copy_nonoverlapping(answer.as_ptr(), value.cast(), answer.len()) };
    }
    if !needed.is_null() {
        // SAFETY: not null, so the caller's.
        unsafe { needed.write(answer.len()) };
    }
    SUCCESS
}

/// Exchanges the functions below the layer for the layer's.
///
/// # Safety
/// `target` holds `count` function pointers in the order of `cl_icd_dispatch`; the other two may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    count: u32,
    target: *const *const c_void,
    count_out: *mut u32,
    table_out: *mut *const c_void,
) -> Status {
    if target.is_null() || count_out.is_null() || table_out.is_null() {
        return INVALID_VALUE;
    }
    let count = (count as usize).min(CAPACITY);
    if count < NAMES.len() {
        return INVALID_VALUE;
    }
    for index in 0..count {
        // SAFETY: the loader's table has `count` entries.
        let address = unsafe { target.add(index).read() } as usize;
        NEXT.set(index, address);
        OURS.set(index, address);
    }
    if sink::is_open() {
        calls::install();
    }
    // SAFETY: not null, so the loader's. The table is static and laid out as the C structure.
    unsafe {
        count_out.write(count as u32);
        table_out.write((&raw const OURS).cast());
    }
    SUCCESS
}

const _: () = assert!(size_of::<Table>() == CAPACITY * size_of::<usize>());
