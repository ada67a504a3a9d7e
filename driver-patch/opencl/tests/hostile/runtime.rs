// SPDX-License-Identifier: MIT OR Apache-2.0
//! A runtime that checks handles in the order of arguments, before pointers. A question about an unknown handle
//! ends the program, as it may in a real one.

use core::ffi::{c_char, c_void};
use core::ptr;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicIsize, AtomicUsize, Ordering::Relaxed};

use crate::app::*;

pub(crate) const BAD_CONTEXT: i32 = -34;
const BAD_PROPERTIES: i32 = -35;
pub(crate) const BAD_QUEUE: i32 = -36;
pub(crate) const BAD_PROGRAM: i32 = -44;
pub(crate) const BAD_KERNEL: i32 = -48;
pub(crate) const BAD_ARGUMENT: i32 = -49;
pub(crate) const BAD_DIMENSIONS: i32 = -53;
pub(crate) const BAD_SIZES: i32 = -63;

pub(crate) const CONTEXT: usize = 0x10;
pub(crate) const DEVICE: usize = 0x20;
pub(crate) const QUEUE: usize = 0x30;
pub(crate) const PROGRAM: usize = 0x40;
pub(crate) const BUFFER: usize = 0x50;
pub(crate) const KERNEL: usize = 0x1000;
pub(crate) const SIZE: usize = 3 << 12;

/// `CL_QUEUE_PROPERTIES` with `CL_QUEUE_PROFILING_ENABLE`.
pub(crate) const TIMED: [u64; 3] = [0x1093, 2, 0];

/// A command waits for it: its queue has no end.
static UNSET: AtomicBool = AtomicBool::new(false);
pub(crate) static EVENTS: AtomicIsize = AtomicIsize::new(0);
/// Of every event: 0 is complete, 3 queued.
pub(crate) static EVENT_STATUS: AtomicI32 = AtomicI32::new(0);
pub(crate) static ON_RELEASE: Mutex<Option<fn()>> = Mutex::new(None);
static KERNELS: Mutex<Option<HashSet<usize>>> = Mutex::new(None);
static NEXT_KERNEL: AtomicUsize = AtomicUsize::new(KERNEL);

pub(crate) type CreateKernels = extern "C" fn(usize, u32, *mut usize, *mut u32) -> i32;
pub(crate) type CreateQueue = extern "C" fn(usize, usize, *const u64, *mut i32) -> usize;
pub(crate) type CreateUserEvent = extern "C" fn(usize, *mut i32) -> usize;
pub(crate) type SetUserEvent = extern "C" fn(usize, i32) -> i32;
pub(crate) type SetSvm = extern "C" fn(usize, u32, *const c_void) -> i32;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        size: usize,
        rights: i32,
        flags: i32,
        file: i32,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> i32;
}

fn kernels<T>(work: impl FnOnce(&mut HashSet<usize>) -> T) -> T {
    work(KERNELS.lock().unwrap().get_or_insert_default())
}

extern "C" fn create_buffer(_: usize, _: u64, _: usize, _: *const c_void, out: *mut i32) -> usize {
    unsafe { out.write(0) };
    BUFFER
}

extern "C" fn create_kernel(_: usize, _: *const c_char, out: *mut i32) -> usize {
    unsafe { out.write(0) };
    let kernel = NEXT_KERNEL.fetch_add(8, Relaxed);
    kernels(|all| all.insert(kernel));
    kernel
}

extern "C" fn create_kernels(_: usize, _: u32, _: *mut usize, _: *mut u32) -> i32 {
    BAD_PROGRAM
}

extern "C" fn release_kernel(kernel: usize) -> i32 {
    if kernels(|all| all.remove(&kernel)) {
        0
    } else {
        BAD_KERNEL
    }
}

extern "C" fn kernel_info(
    kernel: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    if !kernels(|all| all.contains(&kernel)) {
        eprintln!("asked about {kernel:#x}, which is no kernel");
        std::process::abort();
    }
    match what {
        0x1190 if size == 0 => unsafe { needed.write(2) },
        0x1190 if size > 1 => unsafe { value.cast::<[u8; 2]>().write(*b"k\0") },
        0x1191 => unsafe { value.cast::<u32>().write(1) },
        0x1192 => unsafe { value.cast::<u32>().write(1) },
        _ => return -30,
    }
    0
}

extern "C" fn argument_info(
    _: usize,
    _: u32,
    _: u32,
    _: usize,
    _: *mut c_void,
    _: *mut usize,
) -> i32 {
    -19
}

extern "C" fn event_info(_: usize, _: u32, _: usize, value: *mut c_void, _: *mut usize) -> i32 {
    unsafe { value.cast::<i32>().write(EVENT_STATUS.load(Relaxed)) };
    0
}

extern "C" fn times(_: usize, _: u32, _: usize, _: *mut c_void, _: *mut usize) -> i32 {
    -7
}

extern "C" fn retain_event(_: usize) -> i32 {
    EVENTS.fetch_add(1, Relaxed);
    0
}

extern "C" fn release_event(_: usize) -> i32 {
    EVENTS.fetch_sub(1, Relaxed);
    let again = *ON_RELEASE.lock().unwrap();
    if let Some(again) = again {
        again();
    }
    0
}

extern "C" fn create_user_event(_: usize, status: *mut i32) -> usize {
    UNSET.store(true, Relaxed);
    unsafe { status.write(0) };
    0x88
}

extern "C" fn set_user_event(_: usize, _: i32) -> i32 {
    UNSET.store(false, Relaxed);
    0
}

extern "C" fn finish(queue: usize) -> i32 {
    if UNSET.load(Relaxed) {
        eprintln!("waits for what the app has yet to set");
        std::process::abort();
    }
    if queue == QUEUE { 0 } else { BAD_QUEUE }
}

fn event(place: *mut usize) {
    if !place.is_null() {
        EVENTS.fetch_add(1, Relaxed);
        unsafe { place.write(0x77) };
    }
}

extern "C" fn read_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    _: usize,
    _: *mut u8,
    _: u32,
    _: List,
    place: *mut usize,
) -> i32 {
    event(place);
    0
}

extern "C" fn map_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: u64,
    _: usize,
    size: usize,
    _: u32,
    _: List,
    place: *mut usize,
    status: *mut i32,
) -> *mut u8 {
    event(place);
    // Read, write; private, anonymous.
    let memory = unsafe { mmap(ptr::null_mut(), size, 3, 0x22, -1, 0) };
    unsafe { status.write(0) };
    memory.cast()
}

pub(crate) fn forget_mapping(memory: *mut u8) {
    assert_eq!(unsafe { munmap(memory.cast(), SIZE) }, 0);
}

extern "C" fn unmap(queue: usize, _: usize, _: *mut u8, _: u32, _: List, _: *mut usize) -> i32 {
    if queue == QUEUE { 0 } else { BAD_QUEUE }
}

extern "C" fn launch(
    queue: usize,
    kernel: usize,
    dimensions: u32,
    _: Sizes,
    global: Sizes,
    _: Sizes,
    _: u32,
    _: List,
    _: *mut usize,
) -> i32 {
    match () {
        () if queue != QUEUE => BAD_QUEUE,
        () if !kernels(|all| all.contains(&kernel)) => BAD_KERNEL,
        () if !(1..=3).contains(&dimensions) => BAD_DIMENSIONS,
        () if global.is_null() => BAD_SIZES,
        () => 0,
    }
}

extern "C" fn create_queue(context: usize, _: usize, list: *const u64, status: *mut i32) -> usize {
    let known = context == CONTEXT;
    if known && !list.is_null() && unsafe { list.cast::<[u64; 2]>().read() } == TIMED[..2] {
        unsafe { status.write(BAD_PROPERTIES) };
        return 0;
    }
    unsafe { status.write(if known { 0 } else { BAD_CONTEXT }) };
    if known { QUEUE } else { 0 }
}

extern "C" fn set_svm(kernel: usize, index: u32, _: *const c_void) -> i32 {
    match kernels(|all| all.contains(&kernel)) {
        false => BAD_KERNEL,
        true if index > 0 => BAD_ARGUMENT,
        true => 0,
    }
}

pub(crate) fn functions() -> [(usize, *const ()); 20] {
    [
        (CREATE_BUFFER, create_buffer as *const ()),
        (CREATE_KERNEL, create_kernel as *const ()),
        (CREATE_KERNELS, create_kernels as *const ()),
        (RELEASE_KERNEL, release_kernel as *const ()),
        (KERNEL_INFO, kernel_info as *const ()),
        (EVENT_INFO, event_info as *const ()),
        (RETAIN_EVENT, retain_event as *const ()),
        (RELEASE_EVENT, release_event as *const ()),
        (CREATE_USER_EVENT, create_user_event as *const ()),
        (SET_USER_EVENT, set_user_event as *const ()),
        (PROFILING_INFO, times as *const ()),
        (FINISH, finish as *const ()),
        (READ_BUFFER, read_buffer as *const ()),
        (WRITE_BUFFER, read_buffer as *const ()),
        (MAP_BUFFER, map_buffer as *const ()),
        (UNMAP, unmap as *const ()),
        (LAUNCH, launch as *const ()),
        (ARG_INFO, argument_info as *const ()),
        (CREATE_QUEUE_WITH_PROPERTIES, create_queue as *const ()),
        (SET_SVM, set_svm as *const ()),
    ]
}
