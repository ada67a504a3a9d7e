// SPDX-License-Identifier: MIT OR Apache-2.0
//! Setting kernels' attributes and contexts' limits.

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::functions;
use crate::state::limited;

hooks! {
    cuCtxSetLimit: (limit: i32, value: usize) |real| { real.then(|| limited(limit, value)) }
    cuFuncSetAttribute: (f: Handle, number: i32, value: i32) |real| { real.then(|| functions::attribute(f, number, value)) }
    cuKernelSetAttribute: (number: i32, value: i32, kernel: Handle, device: i32) |real| { real.then(|| functions::attribute(kernel, number, value)) }
}
