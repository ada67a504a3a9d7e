// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and their kernels.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::images::{Owner, linked, loaded, loaded_file, unlinked, unloaded};
use crate::state::unrecordable;
use crate::{functions, gate, variables};

type Global = unsafe fn(*mut u64, *mut usize, Handle, *const c_char) -> Status;

/// # Safety
/// As for the driver's function.
unsafe fn global(
    kind: Owner,
    address: *mut u64,
    size: *mut usize,
    owner: Handle,
    name: *const c_char,
    get: Global,
) -> Status {
    let mut own = 0;
    let size = if size.is_null() { &raw mut own } else { size };
    // SAFETY: our caller's promise; the driver wrote address and size.
    unsafe {
        let status = get(address, size, owner, name);
        if status == Status::SUCCESS && !address.is_null() {
            variables::asked(kind, owner, name, *address, *size);
        }
        status
    }
}

fn forgotten(kind: Owner, owner: Handle) {
    unloaded(kind, owner);
    functions::forget_owner(owner);
    variables::forget_owner(owner);
}

hooks! {
    cuModuleLoad: (module: *mut Handle, name: *const c_char) |real| { real.then(|| loaded_file(Owner::Module, *module, name)) }
    cuModuleLoadData | cuModuleLoadFatBinary: (module: *mut Handle, image: *const c_void) |real| { real.then(|| loaded(Owner::Module, *module, image)) }
    cuModuleLoadDataEx: (module: *mut Handle, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void) |real| {
        real.then(|| loaded(Owner::Module, *module, image))
    }
    cuModuleUnload: (module: Handle) |real| {
        let _pass = gate::pass();
        real.then(|| {
            unrecordable().references.remove(&module);
            forgotten(Owner::Module, module);
        })
    }
    cuModuleGetFunction: (f: *mut Handle, module: Handle, name: *const c_char) |real| { real.then(|| functions::found_function(*f, module, name)) }
    cuLibraryLoadData: (library: *mut Handle, image: *const c_void, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) |real| {
        real.then(|| loaded(Owner::Library, *library, image))
    }
    cuLibraryLoadFromFile: (library: *mut Handle, name: *const c_char, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) |real| {
        real.then(|| loaded_file(Owner::Library, *library, name))
    }
    cuLibraryUnload: (library: Handle) |real| {
        let _pass = gate::pass();
        real.then(|| forgotten(Owner::Library, library))
    }
    cuLibraryGetModule: (module: *mut Handle, library: Handle) |real| {
        real.then(|| {
            let mut images = crate::state::images();
            if let Some(image) = images.libraries.get(&library).cloned() {
                images.modules.insert(*module, image);
            }
        })
    }
    cuLibraryGetKernel: (kernel: *mut Handle, library: Handle, name: *const c_char) |real| { real.then(|| functions::found_kernel(*kernel, library, name)) }
    cuModuleGetGlobal_v2: (address: *mut u64, size: *mut usize, module: Handle, name: *const c_char) |real| {
        global(Owner::Module, address, size, module, name, real.function)
    }
    cuLibraryGetGlobal: (address: *mut u64, size: *mut usize, library: Handle, name: *const c_char) |real| {
        global(Owner::Library, address, size, library, name, real.function)
    }
    cuKernelGetFunction: (f: *mut Handle, kernel: Handle) |real| { real.then(|| functions::found_function_of_kernel(*f, kernel)) }
    cuLinkComplete: (link: Handle, cubin: *mut *mut c_void, size: *mut usize) |real| {
        real.then(|| {
            if !cubin.is_null() && !size.is_null() {
                linked(link, *cubin as usize, *size);
            }
        })
    }
    cuLinkDestroy: (link: Handle) |real| {
        unlinked(link);
        real.call()
    }
}
