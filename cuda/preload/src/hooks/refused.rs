// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unrecordable: users are refused by name.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::state::unrecordable;

hooks! {
    cuModuleGetTexRef(reference: *mut Handle, module: Handle, name: *const c_char) {
        let status = driver::cuModuleGetTexRef(reference, module, name);
        if status == Status::SUCCESS {
            unrecordable().references.insert(module, "texture");
        }
        status
    }
    cuModuleGetSurfRef(reference: *mut Handle, module: Handle, name: *const c_char) {
        let status = driver::cuModuleGetSurfRef(reference, module, name);
        if status == Status::SUCCESS {
            unrecordable().references.insert(module, "surface");
        }
        status
    }
    cuTexObjectCreate(object: *mut u64, resource: *const c_void, texture: *const c_void, view: *const c_void) {
        let status = driver::cuTexObjectCreate(object, resource, texture, view);
        if status == Status::SUCCESS {
            unrecordable().textures.insert(*object);
        }
        status
    }
    cuTexObjectDestroy(object: u64) {
        let status = driver::cuTexObjectDestroy(object);
        if status == Status::SUCCESS {
            unrecordable().textures.remove(&object);
        }
        status
    }
    cuSurfObjectCreate(object: *mut u64, resource: *const c_void) {
        let status = driver::cuSurfObjectCreate(object, resource);
        if status == Status::SUCCESS {
            unrecordable().surfaces.insert(*object);
        }
        status
    }
    cuSurfObjectDestroy(object: u64) {
        let status = driver::cuSurfObjectDestroy(object);
        if status == Status::SUCCESS {
            unrecordable().surfaces.remove(&object);
        }
        status
    }
    cuMulticastCreate(handle: *mut Handle, properties: *const c_void) {
        let status = driver::cuMulticastCreate(handle, properties);
        if status == Status::SUCCESS {
            unrecordable().multicasts.insert(*handle);
        }
        status
    }
    cuMemImportFromShareableHandle(handle: *mut Handle, other: *mut c_void, kind: i32) {
        let status = driver::cuMemImportFromShareableHandle(handle, other, kind);
        if status == Status::SUCCESS {
            unrecordable().imports.insert(*handle);
        }
        status
    }
    cuMemRelease(handle: Handle) {
        let status = driver::cuMemRelease(handle);
        if status == Status::SUCCESS {
            // Mappings outlive the handle.
            let mut unrecordable = unrecordable();
            unrecordable.imports.remove(&handle);
            unrecordable.multicasts.remove(&handle);
        }
        status
    }
}
