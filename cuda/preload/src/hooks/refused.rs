// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unrecordable: users are refused by name.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::state::unrecordable;

hooks! {
    cuModuleGetTexRef: (reference: *mut Handle, module: Handle, name: *const c_char) |real| {
        real.then(|| _ = unrecordable().references.insert(module, "texture"))
    }
    cuModuleGetSurfRef: (reference: *mut Handle, module: Handle, name: *const c_char) |real| {
        real.then(|| _ = unrecordable().references.insert(module, "surface"))
    }
    cuTexObjectCreate: (object: *mut u64, resource: *const c_void, texture: *const c_void, view: *const c_void) |real| {
        real.then(|| _ = unrecordable().textures.insert(*object))
    }
    cuTexObjectDestroy: (object: u64) |real| { real.then(|| _ = unrecordable().textures.remove(&object)) }
    cuSurfObjectCreate: (object: *mut u64, resource: *const c_void) |real| { real.then(|| _ = unrecordable().surfaces.insert(*object)) }
    cuSurfObjectDestroy: (object: u64) |real| { real.then(|| _ = unrecordable().surfaces.remove(&object)) }
    cuMulticastCreate: (handle: *mut Handle, properties: *const c_void) |real| { real.then(|| _ = unrecordable().multicasts.insert(*handle)) }
    cuMemImportFromShareableHandle: (handle: *mut Handle, other: *mut c_void, kind: i32) |real| {
        real.then(|| _ = unrecordable().imports.insert(*handle))
    }
    cuMemRelease: (handle: Handle) |real| {
        real.then(|| {
            // Mappings outlive the handle.
            let mut unrecordable = unrecordable();
            unrecordable.imports.remove(&handle);
            unrecordable.multicasts.remove(&handle);
        })
    }
}
