// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memsets wait for snapshots, and are kept in regions.

use gpureplay_cuda_launch::abi::{Handle, MemsetNode, Status};

use crate::run;

/// The value's type gives the element's size.
fn rows<T: Into<u32>>(
    destination: u64,
    pitch: usize,
    value: T,
    width: usize,
    height: usize,
) -> MemsetNode {
    MemsetNode {
        destination,
        pitch,
        value: value.into(),
        element: size_of::<T>() as u32,
        width,
        height,
    }
}

fn row(destination: u64, value: impl Into<u32>, width: usize) -> MemsetNode {
    rows(destination, 0, value, width, 1)
}

hooks! {
    cuMemsetD8_v2 | cuMemsetD8_v2_ptds: (destination: u64, value: u8, count: usize) |real| { run::set(row(destination, value, count), real.stream(0), real.call) }
    cuMemsetD16_v2 | cuMemsetD16_v2_ptds: (destination: u64, value: u16, count: usize) |real| { run::set(row(destination, value, count), real.stream(0), real.call) }
    cuMemsetD32_v2 | cuMemsetD32_v2_ptds: (destination: u64, value: u32, count: usize) |real| { run::set(row(destination, value, count), real.stream(0), real.call) }
    cuMemsetD2D8_v2 | cuMemsetD2D8_v2_ptds: (destination: u64, pitch: usize, value: u8, width: usize, height: usize) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(0), real.call)
    }
    cuMemsetD2D16_v2 | cuMemsetD2D16_v2_ptds: (destination: u64, pitch: usize, value: u16, width: usize, height: usize) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(0), real.call)
    }
    cuMemsetD2D32_v2 | cuMemsetD2D32_v2_ptds: (destination: u64, pitch: usize, value: u32, width: usize, height: usize) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(0), real.call)
    }
    cuMemsetD8Async | cuMemsetD8Async_ptsz: (destination: u64, value: u8, count: usize, stream: Handle) |real| {
        run::set(row(destination, value, count), real.stream(stream), real.call)
    }
    cuMemsetD16Async | cuMemsetD16Async_ptsz: (destination: u64, value: u16, count: usize, stream: Handle) |real| {
        run::set(row(destination, value, count), real.stream(stream), real.call)
    }
    cuMemsetD32Async | cuMemsetD32Async_ptsz: (destination: u64, value: u32, count: usize, stream: Handle) |real| {
        run::set(row(destination, value, count), real.stream(stream), real.call)
    }
    cuMemsetD2D8Async | cuMemsetD2D8Async_ptsz: (destination: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(stream), real.call)
    }
    cuMemsetD2D16Async | cuMemsetD2D16Async_ptsz: (destination: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(stream), real.call)
    }
    cuMemsetD2D32Async | cuMemsetD2D32Async_ptsz: (destination: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) |real| {
        run::set(rows(destination, pitch, value, width, height), real.stream(stream), real.call)
    }
}
