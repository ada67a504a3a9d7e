// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams' writes wait for snapshots.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::{Handle, Status};

use super::unheld;

hooks! {
    cuStreamWriteValue32(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWriteValue32", || driver::cuStreamWriteValue32(stream, address, value, flags)) }
    cuStreamWriteValue32_ptsz(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWriteValue32_ptsz", || driver::cuStreamWriteValue32_ptsz(stream, address, value, flags)) }
    cuStreamWriteValue32_v2(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWriteValue32_v2", || driver::cuStreamWriteValue32_v2(stream, address, value, flags)) }
    cuStreamWriteValue32_v2_ptsz(stream: Handle, address: u64, value: u32, flags: u32) { unheld("cuStreamWriteValue32_v2_ptsz", || driver::cuStreamWriteValue32_v2_ptsz(stream, address, value, flags)) }
    cuStreamWriteValue64(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWriteValue64", || driver::cuStreamWriteValue64(stream, address, value, flags)) }
    cuStreamWriteValue64_ptsz(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWriteValue64_ptsz", || driver::cuStreamWriteValue64_ptsz(stream, address, value, flags)) }
    cuStreamWriteValue64_v2(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWriteValue64_v2", || driver::cuStreamWriteValue64_v2(stream, address, value, flags)) }
    cuStreamWriteValue64_v2_ptsz(stream: Handle, address: u64, value: u64, flags: u32) { unheld("cuStreamWriteValue64_v2_ptsz", || driver::cuStreamWriteValue64_v2_ptsz(stream, address, value, flags)) }
    cuStreamBatchMemOp(stream: Handle, count: u32, operations: *mut c_void, flags: u32) { unheld("cuStreamBatchMemOp", || driver::cuStreamBatchMemOp(stream, count, operations, flags)) }
    cuStreamBatchMemOp_ptsz(stream: Handle, count: u32, operations: *mut c_void, flags: u32) { unheld("cuStreamBatchMemOp_ptsz", || driver::cuStreamBatchMemOp_ptsz(stream, count, operations, flags)) }
    cuStreamBatchMemOp_v2(stream: Handle, count: u32, operations: *mut c_void, flags: u32) { unheld("cuStreamBatchMemOp_v2", || driver::cuStreamBatchMemOp_v2(stream, count, operations, flags)) }
    cuStreamBatchMemOp_v2_ptsz(stream: Handle, count: u32, operations: *mut c_void, flags: u32) { unheld("cuStreamBatchMemOp_v2_ptsz", || driver::cuStreamBatchMemOp_v2_ptsz(stream, count, operations, flags)) }
}
