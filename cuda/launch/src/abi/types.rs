// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures of `cuda.h`.

/// Address of device or host memory.
pub type DevicePointer = u64;

/// Followed by the driver only.
pub type Handle = u64;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// 1: a device.
    pub kind: i32,
    /// Device ordinal.
    pub id: i32,
}

impl Location {
    /// Memory of a device.
    #[must_use]
    pub const fn device(id: i32) -> Self {
        Self { kind: 1, id }
    }
}

/// `CUmemAllocationProp`, for `cuMemCreate`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationProperties {
    kind: i32,
    handle_types: i32,
    location: Location,
    security_attributes: u64,
    compression: u8,
    remote_access: u8,
    usage: u16,
    reserved: [u8; 4],
}

impl AllocationProperties {
    /// Pinned, not shared with processes.
    #[must_use]
    pub const fn pinned(device: i32) -> Self {
        Self {
            kind: 1,
            handle_types: 0,
            location: Location::device(device),
            security_attributes: 0,
            compression: 0,
            remote_access: 0,
            usage: 0,
            reserved: [0; 4],
        }
    }
}

/// `CUmemAccessDesc`: who may use mapped memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AccessDescriptor {
    location: Location,
    flags: i32,
}

impl AccessDescriptor {
    /// Lets a device read and write.
    #[must_use]
    pub const fn read_write(device: i32) -> Self {
        Self {
            location: Location::device(device),
            flags: 3,
        }
    }
}

/// `CUlaunchAttribute`: number, padding, a value of 64 bytes.
pub type LaunchAttribute = [u8; 72];

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfiguration {
    /// In blocks.
    pub grid: [u32; 3],
    /// In threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// 0: default stream.
    pub stream: Handle,
    /// The first attribute.
    pub attributes: *const LaunchAttribute,
    /// Their number.
    pub attribute_count: u32,
}

/// `CUipcMemHandle`: memory of another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle {
    reserved: [u64; 8],
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode {
    /// 0 with `kernel`.
    pub function: Handle,
    /// In blocks.
    pub grid: [u32; 3],
    /// In threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// Pointers, or null.
    pub parameters: *const *const core::ffi::c_void,
    /// Marks, or null.
    pub extra: *const *const core::ffi::c_void,
    /// A library's kernel.
    pub kernel: Handle,
    /// 0: current.
    pub context: Handle,
}

impl KernelNode {
    /// Zeros for the driver to fill.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            function: 0,
            grid: [0; 3],
            block: [0; 3],
            shared: 0,
            parameters: core::ptr::null(),
            extra: core::ptr::null(),
            kernel: 0,
            context: 0,
        }
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`, before CUDA 12.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OldKernelNode {
    /// Function.
    pub function: Handle,
    /// In blocks.
    pub grid: [u32; 3],
    /// In threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// Pointers, or null.
    pub parameters: *const *const core::ffi::c_void,
    /// Marks, or null.
    pub extra: *const *const core::ffi::c_void,
}

/// `CUgraphNodeParams`. A kernel's words are a [`KernelNode`]; a deciding node's: handle, kind, number of graphs,
/// pointer to their handles, context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeParameters {
    /// A `CUgraphNodeType`.
    pub kind: i32,
    reserved: [i32; 3],
    /// By kind.
    pub words: [u64; 30],
}

impl NodeParameters {
    /// Deciding on so many graphs.
    #[must_use]
    pub const fn deciding(graphs: u32) -> Self {
        let mut words = [0; 30];
        words[1] = (graphs as u64) << 32;
        Self {
            kind: crate::abi::attribute::node::CONDITIONAL,
            reserved: [0; 3],
            words,
        }
    }

    /// Graphs to decide on, and their handles' address.
    #[must_use]
    pub const fn decided(&self) -> (usize, usize) {
        ((self.words[1] >> 32) as usize, self.words[2] as usize)
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MemsetNode {
    /// Start.
    pub destination: DevicePointer,
    /// Bytes between rows.
    pub pitch: usize,
    /// New value of elements.
    pub value: u32,
    /// In bytes: 1, 2 or 4.
    pub element: u32,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostNode {
    /// Function.
    pub function: usize,
    /// Its argument.
    pub data: usize,
}

/// `CUDA_MEMCPY3D`, passed on: 200 bytes.
pub type Copy3d = [u64; 25];

/// `CUgraphEdgeData`, passed on: 8 bytes.
pub type EdgeData = [u8; 8];

/// Marks in `extra`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LaunchParameter {
    /// The list ends.
    End = 0,
    /// Next: pointer to packed parameters.
    BufferPointer = 1,
    /// Next: pointer to their size.
    BufferSize = 2,
}

const _: () = assert!(size_of::<AllocationProperties>() == 32);
const _: () = assert!(size_of::<AccessDescriptor>() == 12);
const _: () = assert!(size_of::<IpcHandle>() == 64);
const _: () = assert!(size_of::<LaunchConfiguration>() == 56);
const _: () = assert!(size_of::<KernelNode>() == 72);
const _: () = assert!(size_of::<OldKernelNode>() == 56);
const _: () = assert!(size_of::<MemsetNode>() == 40);
const _: () = assert!(size_of::<HostNode>() == 16);
