// SPDX-License-Identifier: MIT OR Apache-2.0
//! An app above the layer.
#![allow(dead_code, reason = "no test makes all calls")]

use core::ffi::{c_char, c_void};
use core::ptr;
use std::fs;
use std::path::PathBuf;

use gpureplay_opencl::entry::clInitLayer;

/// Places in the dispatch table, from `CL/cl_icd.h`.
pub(crate) const CREATE_QUEUE: usize = 9;
pub(crate) const CREATE_BUFFER: usize = 14;
pub(crate) const RELEASE_MEMORY: usize = 18;
pub(crate) const MEMORY_INFO: usize = 20;
pub(crate) const IMAGE_INFO: usize = 21;
pub(crate) const CREATE_SAMPLER: usize = 22;
pub(crate) const SAMPLER_INFO: usize = 25;
pub(crate) const PROGRAM_INFO: usize = 32;
pub(crate) const BUILD_INFO: usize = 33;
pub(crate) const CREATE_KERNEL: usize = 34;
pub(crate) const CREATE_KERNELS: usize = 35;
pub(crate) const RELEASE_KERNEL: usize = 37;
pub(crate) const SET_ARG: usize = 38;
pub(crate) const KERNEL_INFO: usize = 39;
pub(crate) const WAIT_FOR_EVENTS: usize = 41;
pub(crate) const EVENT_INFO: usize = 42;
pub(crate) const RETAIN_EVENT: usize = 43;
pub(crate) const RELEASE_EVENT: usize = 44;
pub(crate) const PROFILING_INFO: usize = 45;
pub(crate) const FINISH: usize = 47;
pub(crate) const READ_BUFFER: usize = 48;
pub(crate) const WRITE_BUFFER: usize = 49;
pub(crate) const COPY_BUFFER: usize = 50;
pub(crate) const COPY_IMAGE: usize = 53;
pub(crate) const COPY_IMAGE_TO_BUFFER: usize = 54;
pub(crate) const COPY_BUFFER_TO_IMAGE: usize = 55;
pub(crate) const MAP_BUFFER: usize = 56;
pub(crate) const UNMAP: usize = 58;
pub(crate) const LAUNCH: usize = 59;
pub(crate) const SET_EVENT_CALLBACK: usize = 81;
pub(crate) const CREATE_SUB_BUFFER: usize = 82;
pub(crate) const CREATE_USER_EVENT: usize = 84;
pub(crate) const SET_USER_EVENT: usize = 85;
pub(crate) const COPY_RECTANGLE: usize = 88;
pub(crate) const CREATE_IMAGE: usize = 96;
pub(crate) const ARG_INFO: usize = 101;
pub(crate) const FILL_BUFFER: usize = 102;
pub(crate) const FILL_IMAGE: usize = 103;
pub(crate) const CREATE_QUEUE_WITH_PROPERTIES: usize = 123;
pub(crate) const SET_SVM: usize = 133;
const ENTRIES: usize = 149;

pub(crate) type Sizes = *const usize;
pub(crate) type List = *const usize;
pub(crate) type CreateBuffer = extern "C" fn(usize, u64, usize, *const c_void, *mut i32) -> usize;
pub(crate) type CreateKernel = extern "C" fn(usize, *const c_char, *mut i32) -> usize;
pub(crate) type Info = extern "C" fn(usize, u32, usize, *mut c_void, *mut usize) -> i32;
type Launch = extern "C" fn(usize, usize, u32, Sizes, Sizes, Sizes, u32, List, *mut usize) -> i32;
#[rustfmt::skip]
type Map = extern "C" fn(usize, usize, u32, u64, usize, usize, u32, List, *mut usize, *mut i32) -> *mut u8;
pub(crate) type Release = extern "C" fn(usize) -> i32;
pub(crate) type Transfer =
    extern "C" fn(usize, usize, u32, usize, usize, *mut u8, u32, List, *mut usize) -> i32;
type Unmap = extern "C" fn(usize, usize, *mut u8, u32, List, *mut usize) -> i32;

/// The layer's dispatch table.
pub(crate) struct App(pub(crate) *const usize);

impl App {
    pub(crate) fn load(test: &str, functions: &[(usize, *const ())]) -> (Self, PathBuf) {
        let path = std::env::temp_dir().join(format!("gpureplay-{test}-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        unsafe { std::env::set_var("GPUREPLAY_NOTES", &path) };
        let mut table = [0usize; ENTRIES];
        for (place, address) in functions {
            table[*place] = *address as usize;
        }
        let target = table.as_ptr().cast();
        let (mut count, mut ours) = (0, ptr::null());
        let mut init = |length| unsafe { clInitLayer(length, target, &mut count, &mut ours) };
        assert_eq!(init(10), -30, "a loader of 1999");
        assert_eq!(init(ENTRIES as u32), 0);
        assert_eq!(count as usize, ENTRIES);
        (Self(ours.cast()), path)
    }

    pub(crate) fn get<T>(&self, place: usize) -> T {
        let address = unsafe { self.0.add(place).read() };
        assert_ne!(address, 0);
        unsafe { core::mem::transmute_copy(&address) }
    }

    pub(crate) fn launch(
        &self,
        (queue, kernel): (usize, usize),
        dimensions: u32,
        (global, local): (Sizes, Sizes),
        event: *mut usize,
    ) -> i32 {
        let none = ptr::null();
        let launch = self.get::<Launch>(LAUNCH);
        launch(
            queue, kernel, dimensions, none, global, local, 0, none, event,
        )
    }

    pub(crate) fn read(
        &self,
        (queue, buffer): (usize, usize),
        blocking: u32,
        to: &mut [u8],
        event: *mut usize,
    ) -> i32 {
        let (size, to) = (to.len(), to.as_mut_ptr());
        let read = self.get::<Transfer>(READ_BUFFER);
        read(queue, buffer, blocking, 0, size, to, 0, ptr::null(), event)
    }

    pub(crate) fn map(
        &self,
        (queue, buffer): (usize, usize),
        blocking: u32,
        flags: u64,
        size: usize,
    ) -> *mut u8 {
        let (none, event) = (ptr::null(), ptr::null_mut());
        let mut status = 1;
        let map = self.get::<Map>(MAP_BUFFER);
        let memory = map(
            queue,
            buffer,
            blocking,
            flags,
            0,
            size,
            0,
            none,
            event,
            &mut status,
        );
        assert_eq!(status, 0);
        memory
    }

    pub(crate) fn unmap(&self, (queue, buffer): (usize, usize), memory: *mut u8) -> i32 {
        let unmap = self.get::<Unmap>(UNMAP);
        unmap(queue, buffer, memory, 0, ptr::null(), ptr::null_mut())
    }
}
