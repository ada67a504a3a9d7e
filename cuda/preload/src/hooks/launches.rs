// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels are launched.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use gpureplay_cuda_launch::abi::{Handle, LaunchAttribute, LaunchConfiguration, Status, attribute};

use super::passed;
use crate::asked::{Launch, Sizes};
use crate::launch::launch;
use crate::report::LAUNCHES;
use crate::settings::{Mode, settings};

fn sizes(grid: [u32; 3], block: [u32; 3], shared: u32) -> Sizes {
    Sizes {
        grid,
        block,
        shared,
    }
}

type Parameters = *const *const c_void;

#[expect(clippy::too_many_arguments, reason = "those of a launch")]
fn plain(
    entry: &'static str,
    per_thread: bool,
    cooperative: bool,
    function: Handle,
    sizes: Sizes,
    stream: Handle,
    parameters: Parameters,
    extra: Parameters,
    call: impl Fn(Handle, Sizes) -> Status,
) -> Status {
    let describe = || {
        let mut attributes = Vec::new();
        if cooperative {
            let mut value: LaunchAttribute = [0; 72];
            value[0] = attribute::launch::COOPERATIVE;
            value[8] = 1;
            attributes.push(value);
        }
        Launch {
            entry,
            function,
            sizes,
            stream,
            per_thread,
            parameters,
            extra,
            attributes,
        }
    };
    launch(describe, function, |f, other| {
        call(f, other.unwrap_or(sizes))
    })
}

unsafe fn extended(
    entry: &'static str,
    per_thread: bool,
    configuration: *const LaunchConfiguration,
    function: Handle,
    parameters: Parameters,
    extra: Parameters,
    call: impl Fn(Handle, *const LaunchConfiguration) -> Status,
) -> Status {
    if configuration.is_null() {
        return call(function, configuration);
    }
    let describe = || {
        // SAFETY: the program passes a configuration, with as many attributes as it says.
        let (configuration, attributes) = unsafe {
            let configuration = *configuration;
            let count = configuration.attribute_count as usize;
            let attributes = if configuration.attributes.is_null() || count == 0 {
                Vec::new()
            } else {
                std::slice::from_raw_parts(configuration.attributes, count).to_vec()
            };
            (configuration, attributes)
        };
        Launch {
            entry,
            function,
            sizes: Sizes {
                grid: configuration.grid,
                block: configuration.block,
                shared: configuration.shared,
            },
            stream: configuration.stream,
            per_thread,
            parameters,
            extra,
            attributes,
        }
    };
    launch(describe, function, |f, sizes| {
        let Some(sizes) = sizes else {
            return call(f, configuration);
        };
        // SAFETY: as above.
        let other = LaunchConfiguration {
            grid: sizes.grid,
            block: sizes.block,
            shared: sizes.shared,
            ..unsafe { *configuration }
        };
        call(f, &raw const other)
    })
}

fn refused(kernels: &str, call: impl FnOnce() -> Status) -> Status {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    if matches!(settings().mode, Mode::Record(_)) {
        crate::report::refuse(kernels, "it is launched in a way that cannot be recorded");
        crate::run::refuse(|| format!("{kernels} is launched"));
    }
    passed(call)
}

hooks! {
    cuLaunchKernel(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) {
        plain("cuLaunchKernel", false, false, f, sizes([gx, gy, gz], [bx, by, bz], shared), stream, parameters, extra, |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            driver::cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernel_ptsz(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) {
        plain("cuLaunchKernel_ptsz", true, false, f, sizes([gx, gy, gz], [bx, by, bz], shared), stream, parameters, extra, |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            driver::cuLaunchKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernelEx(configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) {
        extended("cuLaunchKernelEx", false, configuration, f, parameters, extra, |f, configuration| {
            driver::cuLaunchKernelEx(configuration, f, parameters, extra)
        })
    }
    cuLaunchKernelEx_ptsz(configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) {
        extended("cuLaunchKernelEx_ptsz", true, configuration, f, parameters, extra, |f, configuration| {
            driver::cuLaunchKernelEx_ptsz(configuration, f, parameters, extra)
        })
    }
    cuLaunchCooperativeKernel(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters) {
        plain("cuLaunchCooperativeKernel", false, true, f, sizes([gx, gy, gz], [bx, by, bz], shared), stream, parameters, std::ptr::null(), |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            driver::cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernel_ptsz(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters) {
        plain("cuLaunchCooperativeKernel_ptsz", true, true, f, sizes([gx, gy, gz], [bx, by, bz], shared), stream, parameters, std::ptr::null(), |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            driver::cuLaunchCooperativeKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernelMultiDevice(launches: *mut c_void, count: u32, flags: u32) {
        refused("a kernel on several GPUs", || driver::cuLaunchCooperativeKernelMultiDevice(launches, count, flags))
    }
}
