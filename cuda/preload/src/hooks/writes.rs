// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams' writes wait for snapshots; regions hold neither them nor waits for them.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::{Handle, Status};

hooks! {
    cuStreamWaitValue32 | cuStreamWaitValue32_ptsz | cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz
    | cuStreamWriteValue32 | cuStreamWriteValue32_ptsz | cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz: (stream: Handle, address: u64, value: u32, flags: u32) |real| { real.unheld() }
    cuStreamWaitValue64 | cuStreamWaitValue64_ptsz | cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz
    | cuStreamWriteValue64 | cuStreamWriteValue64_ptsz | cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz: (stream: Handle, address: u64, value: u64, flags: u32) |real| { real.unheld() }
    cuStreamBatchMemOp | cuStreamBatchMemOp_ptsz | cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz: (stream: Handle, count: u32, operations: *mut c_void, flags: u32) |real| { real.unheld() }
}
