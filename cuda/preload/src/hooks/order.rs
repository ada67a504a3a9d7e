// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams, events and waits, kept in regions; host functions only wait.

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::run::{self, HostWait};

hooks! {
    cuEventRecord | cuEventRecord_ptsz: (event: Handle, stream: Handle) |real| { run::record(event, real.stream(stream), real.call) }
    cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz: (event: Handle, stream: Handle, flags: u32) |real| { run::record(event, real.stream(stream), real.call) }
    cuStreamWaitEvent | cuStreamWaitEvent_ptsz: (stream: Handle, event: Handle, flags: u32) |real| { run::wait(real.stream(stream), event, real.call) }
    cuStreamSynchronize | cuStreamSynchronize_ptsz | cuStreamQuery | cuStreamQuery_ptsz: (stream: Handle) |real| {
        run::host(HostWait::Stream(real.stream(stream)), real.call)
    }
    cuEventSynchronize | cuEventQuery: (event: Handle) |real| { run::host(HostWait::Event(event), real.call) }
    cuCtxSynchronize: () |real| { run::host(HostWait::All, real.call) }
    cuCtxSynchronize_v2: (context: Handle) |real| { run::host(HostWait::All, real.call) }
    cuEventDestroy_v2: (event: Handle) |real| {
        run::forget_event(event);
        real.call()
    }
    cuStreamDestroy_v2: (stream: Handle) |real| {
        run::forget_stream(stream);
        real.call()
    }
    cuLaunchHostFunc | cuLaunchHostFunc_ptsz: (stream: Handle, function: usize, data: usize) |real| { run::tells(real.stream(stream), real.call) }
    cuStreamAddCallback | cuStreamAddCallback_ptsz: (stream: Handle, function: usize, data: usize, flags: u32) |real| { run::tells(real.stream(stream), real.call) }
}
