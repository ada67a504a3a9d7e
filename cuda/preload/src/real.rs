// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver itself.

use std::ffi::CStr;
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use gpureplay_cuda_launch::abi::{Driver, Status};

use crate::c_library::look_up;

static LIBRARY: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: a C string and a flag; the library's constructors are the driver's.
    unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) as usize }
});

/// 0 if missing.
pub(crate) fn address(name: &CStr) -> usize {
    if *LIBRARY == 0 {
        0
    } else {
        look_up(*LIBRARY, name)
    }
}

static DRIVER: LazyLock<Option<Driver>> = LazyLock::new(|| {
    // SAFETY: addresses of libcuda's own functions.
    unsafe { Driver::new(address) }.ok()
});

pub(crate) fn driver() -> Result<&'static Driver, Status> {
    DRIVER.as_ref().ok_or(Status::NOT_INITIALIZED)
}

pub(crate) fn current_device() -> Result<i32, Status> {
    let mut device = 0;
    // SAFETY: a pointer to a local.
    unsafe { driver()?.cuCtxGetDevice(&raw mut device) }.check()?;
    Ok(device)
}

pub(crate) fn current_context() -> Result<u64, Status> {
    let mut context = 0;
    // SAFETY: a pointer to a local.
    unsafe { driver()?.cuCtxGetCurrent(&raw mut context) }.check()?;
    Ok(context)
}

/// Waits on another thread: a wait for a hung kernel cannot be stopped. False: out of time.
pub(crate) fn idle_within(limit: Duration) -> Result<bool, Status> {
    let context = current_context()?;
    let (answer, answered) = mpsc::channel();
    let waits = move || {
        // SAFETY: the context is current in the thread that waits for this one.
        let status = driver()
            .and_then(|driver| unsafe { driver.cuCtxSetCurrent(context) }.check())
            .and_then(|()| synchronize());
        // Nothing receives it when out of time.
        let _ = answer.send(status);
    };
    let thread = std::thread::Builder::new().name("gpureplay".into());
    thread.spawn(waits).map_err(|_| Status::OUT_OF_MEMORY)?;
    match answered.recv_timeout(limit) {
        Ok(status) => status.map(|()| true),
        Err(mpsc::RecvTimeoutError::Timeout) => Ok(false),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(Status::UNKNOWN),
    }
}

pub(crate) fn synchronize() -> Result<(), Status> {
    // SAFETY: no arguments.
    unsafe { driver()?.cuCtxSynchronize() }.check()
}
