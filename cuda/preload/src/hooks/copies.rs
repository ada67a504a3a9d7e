// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies wait for snapshots, and are kept in regions unless of arrays or between GPUs.

use std::ffi::c_void;

use gpureplay_cuda_launch::abi::{Copy3d, Handle, Status};
use gpureplay_cuda_launch::recording::{Copy2d, deepened};

use crate::run::{self, Copied};

hooks! {
    cuMemcpy | cuMemcpy_ptds: (destination: u64, source: u64, size: usize) |real| { run::either(Copied::bytes(destination, source, size), real.stream(0), true, real.call) }
    cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds: (destination: u64, source: u64, size: usize) |real| { run::to_device(Copied::bytes(destination, source, size), real.stream(0), true, real.call) }
    cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds: (destination: u64, source: u64, size: usize) |real| { run::to_host(Copied::bytes(destination, source, size), real.stream(0), true, real.call) }
    cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds: (destination: u64, source: u64, size: usize) |real| { run::on_device(Copied::bytes(destination, source, size), real.stream(0), real.call) }
    cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds | cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds: (copy: *const Copy2d) |real| {
        run::rows(&deepened(&*copy), real.stream(0), true, real.call)
    }
    cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds: (copy: *const Copy3d) |real| { run::rows(&*copy, real.stream(0), true, real.call) }
    cuMemcpyAsync | cuMemcpyAsync_ptsz: (destination: u64, source: u64, size: usize, stream: Handle) |real| {
        run::either(Copied::bytes(destination, source, size), real.stream(stream), false, real.call)
    }
    cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz: (destination: u64, source: u64, size: usize, stream: Handle) |real| {
        run::to_device(Copied::bytes(destination, source, size), real.stream(stream), false, real.call)
    }
    cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz: (destination: u64, source: u64, size: usize, stream: Handle) |real| {
        run::to_host(Copied::bytes(destination, source, size), real.stream(stream), false, real.call)
    }
    cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz: (destination: u64, source: u64, size: usize, stream: Handle) |real| {
        run::on_device(Copied::bytes(destination, source, size), real.stream(stream), real.call)
    }
    cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz: (copy: *const Copy2d, stream: Handle) |real| { run::rows(&deepened(&*copy), real.stream(stream), false, real.call) }
    cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz: (copy: *const Copy3d, stream: Handle) |real| { run::rows(&*copy, real.stream(stream), false, real.call) }
    cuMemcpyPeer | cuMemcpyPeer_ptds: (destination: u64, to: Handle, source: u64, from: Handle, size: usize) |real| { real.unheld() }
    cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz: (destination: u64, to: Handle, source: u64, from: Handle, size: usize, stream: Handle) |real| { real.unheld() }
    cuMemcpyDtoA_v2 | cuMemcpyDtoA_v2_ptds | cuMemcpyHtoA_v2 | cuMemcpyHtoA_v2_ptds: (array: Handle, offset: usize, source: u64, size: usize) |real| { real.unheld() }
    cuMemcpyAtoD_v2 | cuMemcpyAtoD_v2_ptds | cuMemcpyAtoH_v2 | cuMemcpyAtoH_v2_ptds: (destination: u64, array: Handle, offset: usize, size: usize) |real| { real.unheld() }
    cuMemcpyAtoA_v2 | cuMemcpyAtoA_v2_ptds: (to: Handle, to_offset: usize, from: Handle, from_offset: usize, size: usize) |real| { real.unheld() }
    cuMemcpy3DPeer | cuMemcpy3DPeer_ptds: (copy: *const c_void) |real| { real.unheld() }
    cuMemcpyHtoAAsync_v2 | cuMemcpyHtoAAsync_v2_ptsz: (array: Handle, offset: usize, source: u64, size: usize, stream: Handle) |real| { real.unheld() }
    cuMemcpyAtoHAsync_v2 | cuMemcpyAtoHAsync_v2_ptsz: (destination: u64, array: Handle, offset: usize, size: usize, stream: Handle) |real| { real.unheld() }
    cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz: (copy: *const c_void, stream: Handle) |real| { real.unheld() }
    cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz: (destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, failed: *mut c_void, stream: Handle) |real| { real.unheld() }
    cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz: (destinations: *mut c_void, sources: *mut c_void, sizes: *mut c_void, count: usize, attributes: *mut c_void, indices: *mut c_void, attribute_count: usize, stream: Handle) |real| { real.unheld() }
    cuMemcpy3DBatchAsync | cuMemcpy3DBatchAsync_ptsz: (count: usize, operations: *mut c_void, failed: *mut c_void, flags: u64, stream: Handle) |real| { real.unheld() }
    cuMemcpy3DBatchAsync_v2 | cuMemcpy3DBatchAsync_v2_ptsz: (count: usize, operations: *mut c_void, flags: u64, stream: Handle) |real| { real.unheld() }
}
