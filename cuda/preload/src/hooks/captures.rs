// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures, while nothing can be recorded.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::state::CAPTURES;
use crate::{gate, run};

fn capture(call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    run::refuse(|| "a stream is captured into a graph".into());
    let status = call();
    if status == Status::SUCCESS {
        CAPTURES.fetch_add(1, Ordering::SeqCst);
    }
    status
}

/// Ends a capture, which ends also without a graph.
fn captured(call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    let status = call();
    let one_less = |captures: u64| captures.checked_sub(1);
    let _ = CAPTURES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    status
}

hooks! {
    cuStreamBeginCapture(stream: Handle) { capture(|| driver::cuStreamBeginCapture(stream)) }
    cuStreamBeginCapture_ptsz(stream: Handle) { capture(|| driver::cuStreamBeginCapture_ptsz(stream)) }
    cuStreamBeginCaptureToGraph(stream: Handle, g: Handle, nodes: *const Handle, data: *const c_void, count: usize, mode: i32) {
        capture(|| driver::cuStreamBeginCaptureToGraph(stream, g, nodes, data, count, mode))
    }
    cuStreamBeginCaptureToGraph_ptsz(stream: Handle, g: Handle, nodes: *const Handle, data: *const c_void, count: usize, mode: i32) {
        capture(|| driver::cuStreamBeginCaptureToGraph_ptsz(stream, g, nodes, data, count, mode))
    }
    cuStreamBeginCapture_v2(stream: Handle, mode: i32) { capture(|| driver::cuStreamBeginCapture_v2(stream, mode)) }
    cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: i32) { capture(|| driver::cuStreamBeginCapture_v2_ptsz(stream, mode)) }
    cuStreamEndCapture(stream: Handle, g: *mut Handle) { captured(|| driver::cuStreamEndCapture(stream, g)) }
    cuStreamEndCapture_ptsz(stream: Handle, g: *mut Handle) { captured(|| driver::cuStreamEndCapture_ptsz(stream, g)) }
}
