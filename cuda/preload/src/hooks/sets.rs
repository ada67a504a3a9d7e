// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memsets wait for snapshots, and are kept in regions.

use gpureplay_cuda_launch::abi::{Handle, MemsetNode, Status};

use super::of_thread;
use crate::run;

hooks! {
    cuMemsetD8_v2(destination: u64, value: u8, count: usize) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 1, width: count, height: 1 }, 0, || driver::cuMemsetD8_v2(destination, value, count)) }
    cuMemsetD2D8_v2(destination: u64, pitch: usize, value: u8, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 1, width, height }, 0, || driver::cuMemsetD2D8_v2(destination, pitch, value, width, height)) }
    cuMemsetD16_v2(destination: u64, value: u16, count: usize) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 2, width: count, height: 1 }, 0, || driver::cuMemsetD16_v2(destination, value, count)) }
    cuMemsetD2D16_v2(destination: u64, pitch: usize, value: u16, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 2, width, height }, 0, || driver::cuMemsetD2D16_v2(destination, pitch, value, width, height)) }
    cuMemsetD32_v2(destination: u64, value: u32, count: usize) { run::set(MemsetNode { destination, pitch: 0, value, element: 4, width: count, height: 1 }, 0, || driver::cuMemsetD32_v2(destination, value, count)) }
    cuMemsetD2D32_v2(destination: u64, pitch: usize, value: u32, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value, element: 4, width, height }, 0, || driver::cuMemsetD2D32_v2(destination, pitch, value, width, height)) }
    cuMemsetD8_v2_ptds(destination: u64, value: u8, count: usize) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 1, width: count, height: 1 }, of_thread(0), || driver::cuMemsetD8_v2_ptds(destination, value, count)) }
    cuMemsetD2D8_v2_ptds(destination: u64, pitch: usize, value: u8, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 1, width, height }, of_thread(0), || driver::cuMemsetD2D8_v2_ptds(destination, pitch, value, width, height)) }
    cuMemsetD16_v2_ptds(destination: u64, value: u16, count: usize) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 2, width: count, height: 1 }, of_thread(0), || driver::cuMemsetD16_v2_ptds(destination, value, count)) }
    cuMemsetD2D16_v2_ptds(destination: u64, pitch: usize, value: u16, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 2, width, height }, of_thread(0), || driver::cuMemsetD2D16_v2_ptds(destination, pitch, value, width, height)) }
    cuMemsetD32_v2_ptds(destination: u64, value: u32, count: usize) { run::set(MemsetNode { destination, pitch: 0, value, element: 4, width: count, height: 1 }, of_thread(0), || driver::cuMemsetD32_v2_ptds(destination, value, count)) }
    cuMemsetD2D32_v2_ptds(destination: u64, pitch: usize, value: u32, width: usize, height: usize) { run::set(MemsetNode { destination, pitch, value, element: 4, width, height }, of_thread(0), || driver::cuMemsetD2D32_v2_ptds(destination, pitch, value, width, height)) }
    cuMemsetD8Async(destination: u64, value: u8, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 1, width: count, height: 1 }, stream, || driver::cuMemsetD8Async(destination, value, count, stream)) }
    cuMemsetD2D8Async(destination: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 1, width, height }, stream, || driver::cuMemsetD2D8Async(destination, pitch, value, width, height, stream)) }
    cuMemsetD16Async(destination: u64, value: u16, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 2, width: count, height: 1 }, stream, || driver::cuMemsetD16Async(destination, value, count, stream)) }
    cuMemsetD2D16Async(destination: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 2, width, height }, stream, || driver::cuMemsetD2D16Async(destination, pitch, value, width, height, stream)) }
    cuMemsetD32Async(destination: u64, value: u32, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value, element: 4, width: count, height: 1 }, stream, || driver::cuMemsetD32Async(destination, value, count, stream)) }
    cuMemsetD2D32Async(destination: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value, element: 4, width, height }, stream, || driver::cuMemsetD2D32Async(destination, pitch, value, width, height, stream)) }
    cuMemsetD8Async_ptsz(destination: u64, value: u8, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 1, width: count, height: 1 }, of_thread(stream), || driver::cuMemsetD8Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D8Async_ptsz(destination: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 1, width, height }, of_thread(stream), || driver::cuMemsetD2D8Async_ptsz(destination, pitch, value, width, height, stream)) }
    cuMemsetD16Async_ptsz(destination: u64, value: u16, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 2, width: count, height: 1 }, of_thread(stream), || driver::cuMemsetD16Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D16Async_ptsz(destination: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value: u32::from(value), element: 2, width, height }, of_thread(stream), || driver::cuMemsetD2D16Async_ptsz(destination, pitch, value, width, height, stream)) }
    cuMemsetD32Async_ptsz(destination: u64, value: u32, count: usize, stream: Handle) { run::set(MemsetNode { destination, pitch: 0, value, element: 4, width: count, height: 1 }, of_thread(stream), || driver::cuMemsetD32Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D32Async_ptsz(destination: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) { run::set(MemsetNode { destination, pitch, value, element: 4, width, height }, of_thread(stream), || driver::cuMemsetD2D32Async_ptsz(destination, pitch, value, width, height, stream)) }
}
