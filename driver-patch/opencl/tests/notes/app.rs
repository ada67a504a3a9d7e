// SPDX-License-Identifier: MIT OR Apache-2.0
//! App above the layer, and loading the layer.

use core::ffi::{c_char, c_void};
use std::fs;

use gpureplay_opencl::entry::clInitLayer;

use crate::runtime::*;

pub(crate) struct App(*const usize);

impl App {
    pub(crate) fn get<T>(&self, place: usize) -> T {
        let address = unsafe { self.0.add(place).read() };
        assert_ne!(address, 0);
        unsafe { core::mem::transmute_copy(&address) }
    }
}

pub(crate) type CreateQueue = extern "C" fn(usize, usize, u64, *mut i32) -> usize;
pub(crate) type CreateBuffer = extern "C" fn(usize, u64, usize, *const c_void, *mut i32) -> usize;
pub(crate) type CreateSubBuffer =
    extern "C" fn(usize, u64, u32, *const [usize; 2], *mut i32) -> usize;
pub(crate) type CreateKernel = extern "C" fn(usize, *const c_char, *mut i32) -> usize;
pub(crate) type SetArg = extern "C" fn(usize, u32, usize, *const c_void) -> i32;
pub(crate) type Transfer =
    extern "C" fn(usize, usize, u32, usize, usize, *const u8, u32, *const usize, *mut usize) -> i32;
pub(crate) type Map = extern "C" fn(
    usize,
    usize,
    u32,
    u64,
    usize,
    usize,
    u32,
    *const usize,
    *mut usize,
    *mut i32,
) -> *mut u8;
pub(crate) type Unmap = extern "C" fn(usize, usize, *mut u8, u32, *const usize, *mut usize) -> i32;
pub(crate) type Launch = extern "C" fn(
    usize,
    usize,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const usize,
    *mut usize,
) -> i32;
pub(crate) type Info = extern "C" fn(usize, u32, usize, *mut c_void, *mut usize) -> i32;

pub(crate) fn load() -> (App, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("gpureplay-notes-{}", std::process::id()));
    fs::write(&path, "").unwrap();
    unsafe { std::env::set_var("GPUREPLAY_NOTES", &path) };
    let mut table = [0usize; ENTRIES];
    for (place, address) in [
        (CREATE_QUEUE, create_queue as *const () as usize),
        (CREATE_BUFFER, create_buffer as *const () as usize),
        (CREATE_KERNEL, create_kernel as *const () as usize),
        (SET_ARG, set_arg as *const () as usize),
        (PROGRAM_INFO, program_info as *const () as usize),
        (BUILD_INFO, build_info as *const () as usize),
        (KERNEL_INFO, kernel_info as *const () as usize),
        (PROFILING_INFO, profiling_info as *const () as usize),
        (FINISH, finish as *const () as usize),
        (READ_BUFFER, read_buffer as *const () as usize),
        (WRITE_BUFFER, write_buffer as *const () as usize),
        (MAP_BUFFER, map_buffer as *const () as usize),
        (UNMAP, unmap as *const () as usize),
        (LAUNCH, launch as *const () as usize),
        (CREATE_SUB_BUFFER, create_sub_buffer as *const () as usize),
        (RELEASE_MEMORY, release_memory as *const () as usize),
        (MEMORY_INFO, memory_info as *const () as usize),
        (WAIT_FOR_EVENTS, wait_for_events as *const () as usize),
        (EVENT_INFO, event_info as *const () as usize),
        (RETAIN_EVENT, retain_event as *const () as usize),
        (RELEASE_EVENT, release_event as *const () as usize),
        (SET_EVENT_CALLBACK, set_event_callback as *const () as usize),
        (ARG_INFO, arg_info as *const () as usize),
        (CREATE_IMAGE, create_image as *const () as usize),
        (IMAGE_INFO, image_info as *const () as usize),
        (CREATE_SAMPLER, create_sampler as *const () as usize),
        (SAMPLER_INFO, sampler_info as *const () as usize),
        (COPY_BUFFER, copy_buffer as *const () as usize),
        (COPY_RECTANGLE, copy_rectangle as *const () as usize),
        (COPY_IMAGE, copy_images as *const () as usize),
        (COPY_IMAGE_TO_BUFFER, copy_images as *const () as usize),
        (COPY_BUFFER_TO_IMAGE, copy_images as *const () as usize),
        (FILL_BUFFER, fill_buffer as *const () as usize),
        (FILL_IMAGE, fill_image as *const () as usize),
    ] {
        table[place] = address;
    }
    let (mut count, mut ours) = (0, core::ptr::null());
    let target = table.as_ptr().cast();
    unsafe {
        assert_eq!(
            clInitLayer(10, target, &mut count, &mut ours),
            -30,
            "a loader of 1999"
        );
        assert_eq!(
            clInitLayer(ENTRIES as u32, target, &mut count, &mut ours),
            0
        );
    }
    assert_eq!(count as usize, ENTRIES);
    (App(ours.cast()), path)
}
