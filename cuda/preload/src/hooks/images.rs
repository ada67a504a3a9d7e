// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and their kernels.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::images::{Owner, linked, loaded, loaded_file, unlinked, unloaded};
use crate::state::unrecordable;
use crate::{functions, gate, variables};

hooks! {
    cuModuleLoad(module: *mut Handle, name: *const c_char) {
        let status = driver::cuModuleLoad(module, name);
        if status == Status::SUCCESS {
            loaded_file(Owner::Module, *module, name);
        }
        status
    }
    cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        let status = driver::cuModuleLoadData(module, image);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void) {
        let status = driver::cuModuleLoadDataEx(module, image, count, options, values);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) {
        let status = driver::cuModuleLoadFatBinary(module, image);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleUnload(module: Handle) {
        let _pass = gate::pass();
        let status = driver::cuModuleUnload(module);
        if status == Status::SUCCESS {
            unloaded(Owner::Module, module);
            unrecordable().references.remove(&module);
            functions::forget_owner(module);
            variables::forget_owner(module);
        }
        status
    }
    cuModuleGetFunction(f: *mut Handle, module: Handle, name: *const c_char) {
        let status = driver::cuModuleGetFunction(f, module, name);
        if status == Status::SUCCESS {
            functions::found_function(*f, module, name);
        }
        status
    }
    cuLibraryLoadData(library: *mut Handle, image: *const c_void, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) {
        let status = driver::cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count);
        if status == Status::SUCCESS {
            loaded(Owner::Library, *library, image);
        }
        status
    }
    cuLibraryLoadFromFile(library: *mut Handle, name: *const c_char, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) {
        let status = driver::cuLibraryLoadFromFile(library, name, jit, jit_values, jit_count, options, values, count);
        if status == Status::SUCCESS {
            loaded_file(Owner::Library, *library, name);
        }
        status
    }
    cuLibraryUnload(library: Handle) {
        let _pass = gate::pass();
        let status = driver::cuLibraryUnload(library);
        if status == Status::SUCCESS {
            unloaded(Owner::Library, library);
            functions::forget_owner(library);
            variables::forget_owner(library);
        }
        status
    }
    cuLibraryGetModule(module: *mut Handle, library: Handle) {
        let status = driver::cuLibraryGetModule(module, library);
        if status == Status::SUCCESS {
            let mut images = crate::state::images();
            if let Some(image) = images.libraries.get(&library).cloned() {
                images.modules.insert(*module, image);
            }
        }
        status
    }
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) {
        let status = driver::cuLibraryGetKernel(kernel, library, name);
        if status == Status::SUCCESS {
            functions::found_kernel(*kernel, library, name);
        }
        status
    }
    cuModuleGetGlobal_v2(address: *mut u64, size: *mut usize, module: Handle, name: *const c_char) {
        let mut own = 0;
        let size = if size.is_null() { &raw mut own } else { size };
        let status = driver::cuModuleGetGlobal_v2(address, size, module, name);
        if status == Status::SUCCESS && !address.is_null() {
            variables::asked(Owner::Module, module, name, *address, *size);
        }
        status
    }
    cuLibraryGetGlobal(address: *mut u64, size: *mut usize, library: Handle, name: *const c_char) {
        let mut own = 0;
        let size = if size.is_null() { &raw mut own } else { size };
        let status = driver::cuLibraryGetGlobal(address, size, library, name);
        if status == Status::SUCCESS && !address.is_null() {
            variables::asked(Owner::Library, library, name, *address, *size);
        }
        status
    }
    cuKernelGetFunction(f: *mut Handle, kernel: Handle) {
        let status = driver::cuKernelGetFunction(f, kernel);
        if status == Status::SUCCESS {
            functions::found_function_of_kernel(*f, kernel);
        }
        status
    }
    cuLinkComplete(link: Handle, cubin: *mut *mut c_void, size: *mut usize) {
        let status = driver::cuLinkComplete(link, cubin, size);
        if status == Status::SUCCESS && !cubin.is_null() && !size.is_null() {
            linked(link, *cubin as usize, *size);
        }
        status
    }
    cuLinkDestroy(link: Handle) {
        unlinked(link);
        driver::cuLinkDestroy(link)
    }
}
