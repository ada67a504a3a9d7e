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

hooks! {
    cuStreamBeginCapture | cuStreamBeginCapture_ptsz: (stream: Handle) |real| { capture(real.call) }
    cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz: (stream: Handle, g: Handle, nodes: *const Handle, data: *const c_void, count: usize, mode: i32) |real| { capture(real.call) }
    cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz: (stream: Handle, mode: i32) |real| { capture(real.call) }
    cuStreamEndCapture | cuStreamEndCapture_ptsz: (stream: Handle, g: *mut Handle) |real| {
        let _pass = gate::pass();
        let status = real.call();
        // A capture also ends when the call gives no graph.
        let one_less = |captures: u64| captures.checked_sub(1);
        let _ = CAPTURES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        status
    }
}
