// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams, events and waits, kept in regions; host functions only wait.

use gpureplay_cuda_launch::abi::{Handle, Status};

use super::{of_thread, unheld};
use crate::run::{self, HostWait};

hooks! {
    cuEventRecord(event: Handle, stream: Handle) { run::record(event, stream, || driver::cuEventRecord(event, stream)) }
    cuEventRecord_ptsz(event: Handle, stream: Handle) { run::record(event, of_thread(stream), || driver::cuEventRecord_ptsz(event, stream)) }
    cuEventRecordWithFlags(event: Handle, stream: Handle, flags: u32) { run::record(event, stream, || driver::cuEventRecordWithFlags(event, stream, flags)) }
    cuEventRecordWithFlags_ptsz(event: Handle, stream: Handle, flags: u32) {
        run::record(event, of_thread(stream), || driver::cuEventRecordWithFlags_ptsz(event, stream, flags))
    }
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) { run::wait(stream, event, || driver::cuStreamWaitEvent(stream, event, flags)) }
    cuStreamWaitEvent_ptsz(stream: Handle, event: Handle, flags: u32) {
        run::wait(of_thread(stream), event, || driver::cuStreamWaitEvent_ptsz(stream, event, flags))
    }
    cuStreamSynchronize(stream: Handle) { run::host(HostWait::Stream(stream), || driver::cuStreamSynchronize(stream)) }
    cuStreamSynchronize_ptsz(stream: Handle) { run::host(HostWait::Stream(of_thread(stream)), || driver::cuStreamSynchronize_ptsz(stream)) }
    cuStreamQuery(stream: Handle) { run::host(HostWait::Stream(stream), || driver::cuStreamQuery(stream)) }
    cuStreamQuery_ptsz(stream: Handle) { run::host(HostWait::Stream(of_thread(stream)), || driver::cuStreamQuery_ptsz(stream)) }
    cuEventSynchronize(event: Handle) { run::host(HostWait::Event(event), || driver::cuEventSynchronize(event)) }
    cuEventQuery(event: Handle) { run::host(HostWait::Event(event), || driver::cuEventQuery(event)) }
    cuCtxSynchronize() { run::host(HostWait::All, || driver::cuCtxSynchronize()) }
    cuCtxSynchronize_v2(context: Handle) { run::host(HostWait::All, || driver::cuCtxSynchronize_v2(context)) }
    cuEventDestroy_v2(event: Handle) {
        run::forget_event(event);
        driver::cuEventDestroy_v2(event)
    }
    cuStreamDestroy_v2(stream: Handle) {
        run::forget_stream(stream);
        driver::cuStreamDestroy_v2(stream)
    }
    cuLaunchHostFunc(stream: Handle, function: usize, data: usize) { run::tells(stream, || driver::cuLaunchHostFunc(stream, function, data)) }
    cuLaunchHostFunc_ptsz(stream: Handle, function: usize, data: usize) {
        run::tells(of_thread(stream), || driver::cuLaunchHostFunc_ptsz(stream, function, data))
    }
    cuStreamAddCallback(stream: Handle, function: usize, data: usize, flags: u32) {
        run::tells(stream, || driver::cuStreamAddCallback(stream, function, data, flags))
    }
    cuStreamAddCallback_ptsz(stream: Handle, function: usize, data: usize, flags: u32) {
        run::tells(of_thread(stream), || driver::cuStreamAddCallback_ptsz(stream, function, data, flags))
    }
    cuStreamWaitValue32(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWaitValue32", || driver::cuStreamWaitValue32(stream, address, value, flags)) }
    cuStreamWaitValue32_ptsz(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWaitValue32_ptsz", || driver::cuStreamWaitValue32_ptsz(stream, address, value, flags)) }
    cuStreamWaitValue32_v2(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWaitValue32_v2", || driver::cuStreamWaitValue32_v2(stream, address, value, flags)) }
    cuStreamWaitValue32_v2_ptsz(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWaitValue32_v2_ptsz", || driver::cuStreamWaitValue32_v2_ptsz(stream, address, value, flags)) }
    cuStreamWaitValue64(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWaitValue64", || driver::cuStreamWaitValue64(stream, address, value, flags)) }
    cuStreamWaitValue64_ptsz(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWaitValue64_ptsz", || driver::cuStreamWaitValue64_ptsz(stream, address, value, flags)) }
    cuStreamWaitValue64_v2(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWaitValue64_v2", || driver::cuStreamWaitValue64_v2(stream, address, value, flags)) }
    cuStreamWaitValue64_v2_ptsz(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWaitValue64_v2_ptsz", || driver::cuStreamWaitValue64_v2_ptsz(stream, address, value, flags)) }
}
