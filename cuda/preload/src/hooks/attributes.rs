// SPDX-License-Identifier: MIT OR Apache-2.0
//! Setting kernels' attributes and contexts' limits.

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::functions;
use crate::state::limited;

hooks! {
    cuCtxSetLimit(limit: i32, value: usize) {
        let status = driver::cuCtxSetLimit(limit, value);
        if status == Status::SUCCESS {
            limited(limit, value);
        }
        status
    }
    cuFuncSetAttribute(f: Handle, number: i32, value: i32) {
        let status = driver::cuFuncSetAttribute(f, number, value);
        if status == Status::SUCCESS {
            functions::attribute(f, number, value);
        }
        status
    }
    cuKernelSetAttribute(number: i32, value: i32, kernel: Handle, device: i32) {
        let status = driver::cuKernelSetAttribute(number, value, kernel, device);
        if status == Status::SUCCESS {
            functions::attribute(kernel, number, value);
        }
        status
    }
}
