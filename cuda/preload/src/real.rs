// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver itself.

use std::ffi::CStr;
use std::sync::LazyLock;

use gpureplay_cuda_abi::{Driver, Status};

use crate::c_library::look_up;

static LIBRARY: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: a C string and a flag; the library's constructors are the driver's.
    unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) as usize }
});

/// The address of one of the driver's functions, 0 if it has none of that name.
pub(crate) fn address(name: &CStr) -> usize {
    if *LIBRARY == 0 {
        0
    } else {
        look_up(*LIBRARY, name)
    }
}

static DRIVER: LazyLock<Option<Driver>> = LazyLock::new(|| {
    // SAFETY: the addresses are those of libcuda's own functions.
    unsafe { Driver::new(address) }.ok()
});

/// The driver's functions that we call for ourselves.
pub(crate) fn driver() -> Result<&'static Driver, Status> {
    DRIVER.as_ref().ok_or(Status::NOT_INITIALIZED)
}

/// The GPU that is current on this thread.
pub(crate) fn current_device() -> Result<i32, Status> {
    let mut device = 0;
    // SAFETY: the pointer is to a local.
    unsafe { driver()?.cuCtxGetDevice(&raw mut device) }.check()?;
    Ok(device)
}

/// The context that is current on this thread.
pub(crate) fn current_context() -> Result<u64, Status> {
    let mut context = 0;
    // SAFETY: the pointer is to a local.
    unsafe { driver()?.cuCtxGetCurrent(&raw mut context) }.check()?;
    Ok(context)
}

/// Waits for everything that the current context was asked for.
pub(crate) fn synchronize() -> Result<(), Status> {
    // SAFETY: no arguments.
    unsafe { driver()?.cuCtxSynchronize() }.check()
}
