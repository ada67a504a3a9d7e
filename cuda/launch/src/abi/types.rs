// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures that cross the boundary, laid out as in `cuda.h`.

/// An address in the unified address space of device and host.
pub type DevicePointer = u64;

/// A context, module, library, function, kernel, stream, event, pool or graph: a pointer that only the driver follows.
pub type Handle = u64;

/// `CUmemLocation`: where memory lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// 1: a device.
    pub kind: i32,
    /// The ordinal of the device.
    pub id: i32,
}

impl Location {
    /// Memory of a device.
    #[must_use]
    pub const fn device(id: i32) -> Self {
        Self { kind: 1, id }
    }
}

/// `CUmemAllocationProp`: what kind of memory `cuMemCreate` makes.
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
    /// Pinned memory of a device that no other process shares.
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
    /// A device may read and write.
    #[must_use]
    pub const fn read_write(device: i32) -> Self {
        Self {
            location: Location::device(device),
            flags: 3,
        }
    }
}

/// `CUlaunchAttribute`: a number, padding, and a value of 64 bytes.
pub type LaunchAttribute = [u8; 72];

/// `CUlaunchConfig`: sizes, stream and attributes of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfiguration {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// The stream; 0 is the default stream.
    pub stream: Handle,
    /// The first attribute.
    pub attributes: *const LaunchAttribute,
    /// How many attributes there are.
    pub attribute_count: u32,
}

/// `CUipcMemHandle`: memory of another process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle {
    reserved: [u64; 8],
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`: a kernel inside a graph.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNode {
    /// The function; 0 if `kernel` is given.
    pub function: Handle,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// A pointer for each parameter, or null.
    pub parameters: *const *const core::ffi::c_void,
    /// A list of marks, or null.
    pub extra: *const *const core::ffi::c_void,
    /// The kernel of a library.
    pub kernel: Handle,
    /// Its context; 0 is the current one.
    pub context: Handle,
}

impl KernelNode {
    /// Nothing, to be filled by the driver.
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

/// `CUDA_KERNEL_NODE_PARAMS_v1`: as drivers before CUDA 12 have it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OldKernelNode {
    /// The function.
    pub function: Handle,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// A pointer for each parameter, or null.
    pub parameters: *const *const core::ffi::c_void,
    /// A list of marks, or null.
    pub extra: *const *const core::ffi::c_void,
}

/// `CUgraphNodeParams`: what a node of any kind does. A kernel's words are a [`KernelNode`]. Those of a node that decides what runs
/// are: its handle, its kind and the number of its graphs, a pointer to their handles, its context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NodeParameters {
    /// The kind of the node.
    pub kind: i32,
    reserved: [i32; 3],
    /// What depends on the kind.
    pub words: [u64; 30],
}

impl NodeParameters {
    /// A node of a kind that decides what runs, of so many graphs.
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

    /// How many graphs a node has that decides what runs, and where their handles are.
    #[must_use]
    pub const fn decided(&self) -> (usize, usize) {
        ((self.words[1] >> 32) as usize, self.words[2] as usize)
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MemsetNode {
    /// Where it begins.
    pub destination: DevicePointer,
    /// Bytes from row to row.
    pub pitch: usize,
    /// What each element becomes.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element: u32,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`: a function of the host inside a graph.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostNode {
    /// The function.
    pub function: usize,
    /// What it is given.
    pub data: usize,
}

/// `CUDA_MEMCPY3D`, which is only passed on: 200 bytes.
pub type Copy3d = [u64; 25];

/// `CUgraphEdgeData`: 8 bytes that are only passed on.
pub type EdgeData = [u8; 8];

/// Marks in the list `extra` of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LaunchParameter {
    /// The list ends.
    End = 0,
    /// A pointer to the packed parameters follows.
    BufferPointer = 1,
    /// A pointer to their size follows.
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
