// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runtime below the layer.

use core::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use crate::app::*;

pub(crate) static HANDLES: AtomicUsize = AtomicUsize::new(0x1000);
pub(crate) static FINISHED: AtomicUsize = AtomicUsize::new(0);
pub(crate) static EVENTS: AtomicIsize = AtomicIsize::new(0);
/// Of every event: 0 is complete, 3 queued.
pub(crate) static EVENT_STATUS: AtomicUsize = AtomicUsize::new(3);
pub(crate) static SAMPLING: AtomicUsize = AtomicUsize::new(0);
pub(crate) static mut MAPPED: [u8; 64] = [0; 64];

pub(crate) fn handle() -> usize {
    HANDLES.fetch_add(16, Ordering::Relaxed)
}

pub(crate) extern "C" fn create_queue(
    _: usize,
    _: usize,
    properties: u64,
    status: *mut i32,
) -> usize {
    let refused = properties & 2 != 0;
    unsafe { status.write(if refused { -35 } else { 0 }) };
    if refused { 0 } else { handle() }
}

pub(crate) extern "C" fn set_arg(_: usize, index: u32, _: usize, _: *const c_void) -> i32 {
    if index < 3 { 0 } else { -49 }
}

pub(crate) fn answer(bytes: &[u8], size: usize, value: *mut c_void) -> i32 {
    assert!(size >= bytes.len());
    unsafe {
        value
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
    };
    0
}

pub(crate) const PROGRAM: usize = 3;
pub(crate) const DEVICE: usize = 5;

pub(crate) fn long(bytes: &[u8], size: usize, value: *mut c_void, needed: *mut usize) -> i32 {
    if !needed.is_null() {
        unsafe { needed.write(bytes.len()) };
    }
    if value.is_null() {
        0
    } else {
        answer(bytes, size, value)
    }
}

pub(crate) extern "C" fn program_info(
    program: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    assert_eq!(program, PROGRAM);
    let source = b"#ifdef SMALL\ntypedef half real;\n#else\ntypedef float real;\n#endif\n\0";
    match what {
        0x1163 => long(&DEVICE.to_ne_bytes(), size, value, needed),
        0x1164 => long(source, size, value, needed),
        _ => -30,
    }
}

pub(crate) extern "C" fn build_info(
    program: usize,
    device: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    assert_eq!((program, device, what), (PROGRAM, DEVICE, 0x1182));
    long(b"-DSMALL=1\0", size, value, needed)
}

pub(crate) extern "C" fn arg_info(
    kernel: usize,
    index: u32,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    let (name, type_name): (&[u8], &[u8]) = [
        (&b"x\0"[..], &b"real*\0"[..]),
        (b"factor\0", b"float\0"),
        (b"tmp\0", b"int*\0"),
    ][index as usize];
    let type_name = match kernel == SAMPLING.load(Ordering::Relaxed) {
        true => b"sampler_t\0",
        false => type_name,
    };
    match what {
        0x1198 => long(type_name, size, value, needed),
        0x1199 => answer(&u64::from(index == 0).to_ne_bytes(), size, value),
        0x119a => long(name, size, value, needed),
        _ => -30,
    }
}

pub(crate) extern "C" fn finish(_: usize) -> i32 {
    FINISHED.fetch_add(1, Ordering::Relaxed);
    0
}

pub(crate) fn new_event(event: *mut usize) {
    if !event.is_null() {
        EVENTS.fetch_add(1, Ordering::Relaxed);
        unsafe { event.write(handle()) };
    }
}

pub(crate) extern "C" fn read_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    size: usize,
    to: *mut c_void,
    _: u32,
    _: *const usize,
    event: *mut usize,
) -> i32 {
    unsafe { to.cast::<u8>().write_bytes(7, size) };
    new_event(event);
    0
}

pub(crate) extern "C" fn wait_for_events(_: u32, _: *const usize) -> i32 {
    EVENT_STATUS.store(0, Ordering::Relaxed);
    0
}

pub(crate) extern "C" fn retain_event(_: usize) -> i32 {
    EVENTS.fetch_add(1, Ordering::Relaxed);
    0
}

pub(crate) extern "C" fn release_event(_: usize) -> i32 {
    EVENTS.fetch_sub(1, Ordering::Relaxed);
    0
}

pub(crate) extern "C" fn write_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    size: usize,
    _: *const c_void,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    if size > 64 { -30 } else { 0 }
}

pub(crate) extern "C" fn map_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: u64,
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    event: *mut usize,
    status: *mut i32,
) -> *mut c_void {
    new_event(event);
    unsafe { status.write(0) };
    (&raw mut MAPPED).cast()
}

pub(crate) extern "C" fn launch(
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    _: *const usize,
    _: *const usize,
    _: u32,
    _: *const usize,
    event: *mut usize,
) -> i32 {
    new_event(event);
    0
}

pub(crate) extern "C" fn sampler_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    answer(&(what - 0x1150).to_ne_bytes(), size, value)
}

pub(crate) extern "C" fn copy_buffer(
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    size: usize,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    if size > 64 { -30 } else { 0 }
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident($($type:ty),*) -> $out:ty = $answer:expr;)*) => {
        $($(#[$doc])* pub(crate) extern "C" fn $name($(_: $type),*) -> $out {
            $answer
        })*
    };
}

macro_rules! infos {
    ($($name:ident: $($what:literal => $fact:expr),+;)*) => {
        $(pub(crate) extern "C" fn $name(
            _: usize, what: u32, size: usize, value: *mut c_void, _: *mut usize,
        ) -> i32 {
            match what {
                $($what => answer(&$fact[..], size, value),)+
                _ => -30,
            }
        })*
    };
}

type Triple = *const [usize; 3];

answers! {
    create_buffer(usize, u64, usize, *mut c_void, *mut i32) -> usize = handle();
    create_sub_buffer(usize, u64, u32, *const c_void, *mut i32) -> usize = handle();
    create_kernel(usize, *const c_char, *mut i32) -> usize = handle();
    set_event_callback(usize, i32, *const c_void, *mut c_void) -> i32 = 0;
    release_memory(usize) -> i32 = 0;
    unmap(usize, usize, *mut c_void, u32, *const usize, *mut usize) -> i32 = 0;
    create_image(
        usize, u64, *const c_void, *const c_void, *mut c_void, *mut i32
    ) -> usize = handle();
    create_sampler(usize, u32, u32, u32, *mut i32) -> usize = handle();
    copy_rectangle(
        usize, usize, usize, Triple, Triple, Triple, usize, usize, usize, usize, u32,
        *const usize, *mut usize
    ) -> i32 = 0;
    /// Serves all copies of images: their arguments have equal number and widths.
    copy_images(usize, usize, usize, usize, usize, usize, u32, *const usize, *mut usize) -> i32 = 0;
    fill_buffer(
        usize, usize, *const c_void, usize, usize, usize, u32, *const usize, *mut usize
    ) -> i32 = 0;
    fill_image(
        usize, usize, *const c_void, Triple, Triple, u32, *const usize, *mut usize
    ) -> i32 = 0;
    profiling_info(usize, u32, usize, *mut c_void, *mut usize) -> i32 = -7;
}

pub(crate) extern "C" fn kernel_info(
    kernel: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    match what {
        0x1190 if kernel == SAMPLING.load(Ordering::Relaxed) => {
            long(long_name().as_bytes(), size, value, needed)
        }
        0x1190 => long(b"scale\0", size, value, needed),
        0x1191 => answer(&3u32.to_ne_bytes(), size, value),
        0x1194 => answer(&PROGRAM.to_ne_bytes(), size, value),
        _ => -30,
    }
}

pub(crate) fn long_name() -> String {
    format!("{}\0", "look".repeat(1000))
}

infos! {
    memory_info: 0x1105 => 1u32.to_ne_bytes();
    image_info: 0x1111 => 4usize.to_ne_bytes();
    event_info: 0x11d3 => (EVENT_STATUS.load(Ordering::Relaxed) as u32).to_ne_bytes();
}

pub(crate) fn functions() -> [(usize, *const ()); 34] {
    [
        (CREATE_QUEUE, create_queue as *const ()),
        (CREATE_BUFFER, create_buffer as *const ()),
        (CREATE_KERNEL, create_kernel as *const ()),
        (SET_ARG, set_arg as *const ()),
        (PROGRAM_INFO, program_info as *const ()),
        (BUILD_INFO, build_info as *const ()),
        (KERNEL_INFO, kernel_info as *const ()),
        (PROFILING_INFO, profiling_info as *const ()),
        (FINISH, finish as *const ()),
        (READ_BUFFER, read_buffer as *const ()),
        (WRITE_BUFFER, write_buffer as *const ()),
        (MAP_BUFFER, map_buffer as *const ()),
        (UNMAP, unmap as *const ()),
        (LAUNCH, launch as *const ()),
        (CREATE_SUB_BUFFER, create_sub_buffer as *const ()),
        (RELEASE_MEMORY, release_memory as *const ()),
        (MEMORY_INFO, memory_info as *const ()),
        (WAIT_FOR_EVENTS, wait_for_events as *const ()),
        (EVENT_INFO, event_info as *const ()),
        (RETAIN_EVENT, retain_event as *const ()),
        (RELEASE_EVENT, release_event as *const ()),
        (SET_EVENT_CALLBACK, set_event_callback as *const ()),
        (ARG_INFO, arg_info as *const ()),
        (CREATE_IMAGE, create_image as *const ()),
        (IMAGE_INFO, image_info as *const ()),
        (CREATE_SAMPLER, create_sampler as *const ()),
        (SAMPLER_INFO, sampler_info as *const ()),
        (COPY_BUFFER, copy_buffer as *const ()),
        (COPY_RECTANGLE, copy_rectangle as *const ()),
        (COPY_IMAGE, copy_images as *const ()),
        (COPY_IMAGE_TO_BUFFER, copy_images as *const ()),
        (COPY_BUFFER_TO_IMAGE, copy_images as *const ()),
        (FILL_BUFFER, fill_buffer as *const ()),
        (FILL_IMAGE, fill_image as *const ()),
    ]
}
