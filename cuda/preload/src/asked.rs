// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program asks for at a launch.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::{Handle, LaunchAttribute, Status};

use crate::real;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// In bytes.
    pub(crate) shared: u32,
}

impl Sizes {
    pub(crate) const fn new(grid: [u32; 3], block: [u32; 3], shared: u32) -> Self {
        Self {
            grid,
            block,
            shared,
        }
    }
}

pub(crate) fn shown([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

pub(crate) struct Launch {
    pub(crate) entry: &'static str,
    pub(crate) function: Handle,
    pub(crate) sizes: Sizes,
    pub(crate) stream: Handle,
    pub(crate) parameters: *const *const c_void,
    pub(crate) extra: *const *const c_void,
    pub(crate) attributes: Vec<LaunchAttribute>,
}

pub(crate) fn is_capturing(launch: &Launch) -> bool {
    let mut state = 0;
    let Ok(driver) = real::driver() else {
        return false;
    };
    // SAFETY: the program's stream, a pointer to a local.
    let status = unsafe { driver.cuStreamIsCapturing(launch.stream, &raw mut state) };
    status == Status::SUCCESS && state != 0
}
