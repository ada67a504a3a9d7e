// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies wait for snapshots, and are kept in regions unless of arrays or between GPUs.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::{Copy3d, Handle, Status};
use gpureplay_cuda_launch::recording::{Copy2d, deepened};

use super::{of_thread, unheld};
use crate::run;

hooks! {
    cuMemcpy(destination: u64, source: u64, size: usize) { run::either(destination, source, size, 0, true, || driver::cuMemcpy(destination, source, size)) }
    cuMemcpyHtoD_v2(destination: u64, source: u64, size: usize) { run::to_device(destination, source, size, 0, true, || driver::cuMemcpyHtoD_v2(destination, source, size)) }
    cuMemcpyDtoH_v2(destination: u64, source: u64, size: usize) { run::to_host(destination, source, size, 0, true, || driver::cuMemcpyDtoH_v2(destination, source, size)) }
    cuMemcpyDtoD_v2(destination: u64, source: u64, size: usize) { run::on_device(destination, source, size, 0, true, || driver::cuMemcpyDtoD_v2(destination, source, size)) }
    cuMemcpyPeer(destination: u64, to: Handle, source: u64, from: Handle, size: usize) { unheld("cuMemcpyPeer", || driver::cuMemcpyPeer(destination, to, source, from, size)) }
    cuMemcpy2D_v2(copy: *const Copy2d) { run::rows(&deepened(&*copy), 0, true, || driver::cuMemcpy2D_v2(copy)) }
    cuMemcpy2DUnaligned_v2(copy: *const Copy2d) { run::rows(&deepened(&*copy), 0, true, || driver::cuMemcpy2DUnaligned_v2(copy)) }
    cuMemcpy3D_v2(copy: *const Copy3d) { run::rows(&*copy, 0, true, || driver::cuMemcpy3D_v2(copy)) }
    cuMemcpy_ptds(destination: u64, source: u64, size: usize) { run::either(destination, source, size, of_thread(0), true, || driver::cuMemcpy_ptds(destination, source, size)) }
    cuMemcpyHtoD_v2_ptds(destination: u64, source: u64, size: usize) { run::to_device(destination, source, size, of_thread(0), true, || driver::cuMemcpyHtoD_v2_ptds(destination, source, size)) }
    cuMemcpyDtoH_v2_ptds(destination: u64, source: u64, size: usize) { run::to_host(destination, source, size, of_thread(0), true, || driver::cuMemcpyDtoH_v2_ptds(destination, source, size)) }
    cuMemcpyDtoD_v2_ptds(destination: u64, source: u64, size: usize) { run::on_device(destination, source, size, of_thread(0), true, || driver::cuMemcpyDtoD_v2_ptds(destination, source, size)) }
    cuMemcpyPeer_ptds(destination: u64, to: Handle, source: u64, from: Handle, size: usize) { unheld("cuMemcpyPeer_ptds", || driver::cuMemcpyPeer_ptds(destination, to, source, from, size)) }
    cuMemcpy2D_v2_ptds(copy: *const Copy2d) { run::rows(&deepened(&*copy), of_thread(0), true, || driver::cuMemcpy2D_v2_ptds(copy)) }
    cuMemcpy2DUnaligned_v2_ptds(copy: *const Copy2d) { run::rows(&deepened(&*copy), of_thread(0), true, || driver::cuMemcpy2DUnaligned_v2_ptds(copy)) }
    cuMemcpy3D_v2_ptds(copy: *const Copy3d) { run::rows(&*copy, of_thread(0), true, || driver::cuMemcpy3D_v2_ptds(copy)) }
    cuMemcpyAsync(destination: u64, source: u64, size: usize, stream: Handle) { run::either(destination, source, size, stream, false, || driver::cuMemcpyAsync(destination, source, size, stream)) }
    cuMemcpyHtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { run::to_device(destination, source, size, stream, false, || driver::cuMemcpyHtoDAsync_v2(destination, source, size, stream)) }
    cuMemcpyDtoHAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { run::to_host(destination, source, size, stream, false, || driver::cuMemcpyDtoHAsync_v2(destination, source, size, stream)) }
    cuMemcpyDtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { run::on_device(destination, source, size, stream, false, || driver::cuMemcpyDtoDAsync_v2(destination, source, size, stream)) }
    cuMemcpyPeerAsync(destination: u64, to: Handle, source: u64, from: Handle, size: usize, stream: Handle) { unheld("cuMemcpyPeerAsync", || driver::cuMemcpyPeerAsync(destination, to, source, from, size, stream)) }
    cuMemcpy2DAsync_v2(copy: *const Copy2d, stream: Handle) { run::rows(&deepened(&*copy), stream, false, || driver::cuMemcpy2DAsync_v2(copy, stream)) }
    cuMemcpy3DAsync_v2(copy: *const Copy3d, stream: Handle) { run::rows(&*copy, stream, false, || driver::cuMemcpy3DAsync_v2(copy, stream)) }
    cuMemcpyAsync_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { run::either(destination, source, size, of_thread(stream), false, || driver::cuMemcpyAsync_ptsz(destination, source, size, stream)) }
    cuMemcpyHtoDAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { run::to_device(destination, source, size, of_thread(stream), false, || driver::cuMemcpyHtoDAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyDtoHAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { run::to_host(destination, source, size, of_thread(stream), false, || driver::cuMemcpyDtoHAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyDtoDAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { run::on_device(destination, source, size, of_thread(stream), false, || driver::cuMemcpyDtoDAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyPeerAsync_ptsz(destination: u64, to: Handle, source: u64, from: Handle, size: usize, stream: Handle) { unheld("cuMemcpyPeerAsync_ptsz", || driver::cuMemcpyPeerAsync_ptsz(destination, to, source, from, size, stream)) }
    cuMemcpy2DAsync_v2_ptsz(copy: *const Copy2d, stream: Handle) { run::rows(&deepened(&*copy), of_thread(stream), false, || driver::cuMemcpy2DAsync_v2_ptsz(copy, stream)) }
    cuMemcpy3DAsync_v2_ptsz(copy: *const Copy3d, stream: Handle) { run::rows(&*copy, of_thread(stream), false, || driver::cuMemcpy3DAsync_v2_ptsz(copy, stream)) }
    cuMemcpyDtoA_v2(array: Handle, offset: usize, source: u64, size: usize) { unheld("cuMemcpyDtoA_v2", || driver::cuMemcpyDtoA_v2(array, offset, source, size)) }
    cuMemcpyDtoA_v2_ptds(array: Handle, offset: usize, source: u64, size: usize) { unheld("cuMemcpyDtoA_v2_ptds", || driver::cuMemcpyDtoA_v2_ptds(array, offset, source, size)) }
    cuMemcpyAtoD_v2(destination: u64, array: Handle, offset: usize, size: usize) { unheld("cuMemcpyAtoD_v2", || driver::cuMemcpyAtoD_v2(destination, array, offset, size)) }
    cuMemcpyAtoD_v2_ptds(destination: u64, array: Handle, offset: usize, size: usize) { unheld("cuMemcpyAtoD_v2_ptds", || driver::cuMemcpyAtoD_v2_ptds(destination, array, offset, size)) }
    cuMemcpyHtoA_v2(array: Handle, offset: usize, source: u64, size: usize) { unheld("cuMemcpyHtoA_v2", || driver::cuMemcpyHtoA_v2(array, offset, source, size)) }
    cuMemcpyHtoA_v2_ptds(array: Handle, offset: usize, source: u64, size: usize) { unheld("cuMemcpyHtoA_v2_ptds", || driver::cuMemcpyHtoA_v2_ptds(array, offset, source, size)) }
    cuMemcpyAtoH_v2(destination: u64, array: Handle, offset: usize, size: usize) { unheld("cuMemcpyAtoH_v2", || driver::cuMemcpyAtoH_v2(destination, array, offset, size)) }
    cuMemcpyAtoH_v2_ptds(destination: u64, array: Handle, offset: usize, size: usize) { unheld("cuMemcpyAtoH_v2_ptds", || driver::cuMemcpyAtoH_v2_ptds(destination, array, offset, size)) }
    cuMemcpyAtoA_v2(to: Handle, to_offset: usize, from: Handle, from_offset: usize, size: usize) { unheld("cuMemcpyAtoA_v2", || driver::cuMemcpyAtoA_v2(to, to_offset, from, from_offset, size)) }
    cuMemcpyAtoA_v2_ptds(to: Handle, to_offset: usize, from: Handle, from_offset: usize, size: usize) { unheld("cuMemcpyAtoA_v2_ptds", || driver::cuMemcpyAtoA_v2_ptds(to, to_offset, from, from_offset, size)) }
    cuMemcpy3DPeer(copy: *const c_void) { unheld("cuMemcpy3DPeer", || driver::cuMemcpy3DPeer(copy)) }
    cuMemcpy3DPeer_ptds(copy: *const c_void) { unheld("cuMemcpy3DPeer_ptds", || driver::cuMemcpy3DPeer_ptds(copy)) }
    cuMemcpyHtoAAsync_v2(array: Handle, offset: usize, source: u64, size: usize, stream: Handle) { unheld("cuMemcpyHtoAAsync_v2", || driver::cuMemcpyHtoAAsync_v2(array, offset, source, size, stream)) }
    cuMemcpyHtoAAsync_v2_ptsz(array: Handle, offset: usize, source: u64, size: usize, stream: Handle) { unheld("cuMemcpyHtoAAsync_v2_ptsz", || driver::cuMemcpyHtoAAsync_v2_ptsz(array, offset, source, size, stream)) }
    cuMemcpyAtoHAsync_v2(destination: u64, array: Handle, offset: usize, size: usize, stream: Handle) { unheld("cuMemcpyAtoHAsync_v2", || driver::cuMemcpyAtoHAsync_v2(destination, array, offset, size, stream)) }
    cuMemcpyAtoHAsync_v2_ptsz(destination: u64, array: Handle, offset: usize, size: usize, stream: Handle) { unheld("cuMemcpyAtoHAsync_v2_ptsz", || driver::cuMemcpyAtoHAsync_v2_ptsz(destination, array, offset, size, stream)) }
    cuMemcpy3DPeerAsync(copy: *const c_void, stream: Handle) { unheld("cuMemcpy3DPeerAsync", || driver::cuMemcpy3DPeerAsync(copy, stream)) }
    cuMemcpy3DPeerAsync_ptsz(copy: *const c_void, stream: Handle) { unheld("cuMemcpy3DPeerAsync_ptsz", || driver::cuMemcpy3DPeerAsync_ptsz(copy, stream)) }
    cuMemcpyBatchAsync(destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, failed: *mut c_void, stream: Handle) { unheld("cuMemcpyBatchAsync", || driver::cuMemcpyBatchAsync(destinations, sources, sizes, count, attributes, indices, attribute_count, failed, stream)) }
    cuMemcpyBatchAsync_ptsz(destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, failed: *mut c_void, stream: Handle) { unheld("cuMemcpyBatchAsync_ptsz", || driver::cuMemcpyBatchAsync_ptsz(destinations, sources, sizes, count, attributes, indices, attribute_count, failed, stream)) }
    cuMemcpyBatchAsync_v2(destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, stream: Handle) { unheld("cuMemcpyBatchAsync_v2", || driver::cuMemcpyBatchAsync_v2(destinations, sources, sizes, count, attributes, indices, attribute_count, stream)) }
    cuMemcpyBatchAsync_v2_ptsz(destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, stream: Handle) { unheld("cuMemcpyBatchAsync_v2_ptsz", || driver::cuMemcpyBatchAsync_v2_ptsz(destinations, sources, sizes, count, attributes, indices, attribute_count, stream)) }
    cuMemcpy3DBatchAsync(count: usize, operations: *mut c_void, failed: *mut c_void, flags: u64, stream: Handle) { unheld("cuMemcpy3DBatchAsync", || driver::cuMemcpy3DBatchAsync(count, operations, failed, flags, stream)) }
    cuMemcpy3DBatchAsync_ptsz(count: usize, operations: *mut c_void, failed: *mut c_void, flags: u64, stream: Handle) { unheld("cuMemcpy3DBatchAsync_ptsz", || driver::cuMemcpy3DBatchAsync_ptsz(count, operations, failed, flags, stream)) }
    cuMemcpy3DBatchAsync_v2(count: usize, operations: *mut c_void, flags: u64, stream: Handle) { unheld("cuMemcpy3DBatchAsync_v2", || driver::cuMemcpy3DBatchAsync_v2(count, operations, flags, stream)) }
    cuMemcpy3DBatchAsync_v2_ptsz(count: usize, operations: *mut c_void, flags: u64, stream: Handle) { unheld("cuMemcpy3DBatchAsync_v2_ptsz", || driver::cuMemcpy3DBatchAsync_v2_ptsz(count, operations, flags, stream)) }
}
