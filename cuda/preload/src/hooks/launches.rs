// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels are launched.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use gpureplay_cuda_launch::abi::{Handle, LaunchAttribute, LaunchConfiguration, Status, attribute};

use crate::asked::{Launch, Sizes};
use crate::gate;
use crate::launch::launch;
use crate::report::LAUNCHES;
use crate::settings::{Mode, settings};

type Parameters = *const *const c_void;

#[expect(clippy::too_many_arguments, reason = "those of a launch")]
fn plain(
    entry: &'static str,
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
    of_thread: impl Fn(Handle) -> Handle,
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
            stream: of_thread(configuration.stream),
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

hooks! {
    cuLaunchKernel | cuLaunchKernel_ptsz: (f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) |real| {
        let sizes = Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared };
        plain(real.name, false, f, sizes, real.stream(stream), parameters, extra, |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            (real.function)(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernelEx | cuLaunchKernelEx_ptsz: (configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) |real| {
        extended(real.name, |stream| real.stream(stream), configuration, f, parameters, extra, |f, configuration| {
            (real.function)(configuration, f, parameters, extra)
        })
    }
    cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz: (f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters) |real| {
        let sizes = Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared };
        plain(real.name, true, f, sizes, real.stream(stream), parameters, std::ptr::null(), |f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz], shared }| {
            (real.function)(f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernelMultiDevice: (launches: *mut c_void, count: u32, flags: u32) |real| {
        let kernels = "a kernel on several GPUs";
        LAUNCHES.fetch_add(1, Ordering::Relaxed);
        let _pass = gate::pass();
        if matches!(settings().mode, Mode::Record(_)) {
            crate::report::refuse(kernels, "it is launched in a way that cannot be recorded");
            crate::run::refuse(|| format!("{kernels} is launched"));
        }
        real.call()
    }
}
