// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded region begins and ends.

use gpureplay_cuda_launch::abi::Status;

use crate::run;

hooks! {
    cuProfilerStart: () |real| {
        run::profiler(true);
        real.call()
    }
    cuProfilerStop: () |real| {
        run::profiler(false);
        real.call()
    }
}
