// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CUDA driver: functions, types, numbers, errors.
//!
//! Source: `cuda.h` of CUDA 13.0.
#![deny(unsafe_code)]

pub mod attribute;
mod compile;
mod driver;
mod interposed;
mod status;
mod types;

pub use compile::JitOptions;
pub use driver::{Driver, Missing};
pub use interposed::{INTERPOSED, Purpose};
pub use status::Status;
pub use types::{
    AccessDescriptor, AllocationProperties, Copy3d, DevicePointer, EdgeData, Handle, HostNode,
    IpcHandle, KernelNode, LaunchAttribute, LaunchConfiguration, LaunchParameter, Location,
    MemsetNode, NodeParameters, OldKernelNode,
};

/// Bytes of `cuMemCreate`'s pages.
pub const PAGE: u64 = 2 << 20;

/// In bytes; `cuMemAddressReserve` rounds up to it (driver 580 on an H200).
pub const RESERVATION: u64 = 32 << 20;

/// Of one launch (CUDA 12.1, compute capability 7.0, and newer).
pub const MAX_PARAMETER_BYTES: usize = 32_764;
