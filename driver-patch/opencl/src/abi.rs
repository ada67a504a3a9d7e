// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types and numbers of the OpenCL C interface, as `CL/cl.h` and `CL/cl_layer.h` of the Khronos headers define them.

use core::ffi::{c_char, c_void};

/// A pointer to an object of the runtime: platform, context, queue, memory object, kernel, event. Never followed.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    /// The null pointer.
    pub(crate) const NULL: Self = Self(0);
}

/// `cl_int` that a function returns.
pub(crate) type Status = i32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const OUT_OF_RESOURCES: Status = -5;
pub(crate) const INVALID_VALUE: Status = -30;
pub(crate) const INVALID_QUEUE_PROPERTIES: Status = -35;
pub(crate) const INVALID_OPERATION: Status = -59;

/// `cl_mem_flags`
pub(crate) const MEM_USE_HOST_PTR: u64 = 1 << 3;
pub(crate) const MEM_COPY_HOST_PTR: u64 = 1 << 5;

/// `cl_map_flags`
pub(crate) const MAP_READ: u64 = 1 << 0;
pub(crate) const MAP_WRITE: u64 = 1 << 1;
pub(crate) const MAP_WRITE_INVALIDATE: u64 = 1 << 2;

/// `cl_command_queue_properties` and its names in queries and lists.
pub(crate) const QUEUE_PROFILING: u64 = 1 << 1;
pub(crate) const QUEUE_PROPERTIES: u32 = 0x1093;

/// `cl_buffer_create_type`
pub(crate) const BUFFER_REGION: u32 = 0x1220;

/// `cl_kernel_info`, `cl_kernel_arg_info`
pub(crate) const KERNEL_FUNCTION_NAME: u32 = 0x1190;
pub(crate) const KERNEL_NUM_ARGS: u32 = 0x1191;
pub(crate) const KERNEL_PROGRAM: u32 = 0x1194;
pub(crate) const ARG_TYPE_NAME: u32 = 0x1198;
pub(crate) const ARG_TYPE_QUALIFIER: u32 = 0x1199;
pub(crate) const ARG_NAME: u32 = 0x119a;
/// `cl_program_info`, `cl_program_build_info`
pub(crate) const PROGRAM_DEVICES: u32 = 0x1163;
pub(crate) const PROGRAM_SOURCE: u32 = 0x1164;
pub(crate) const PROGRAM_BUILD_OPTIONS: u32 = 0x1182;
/// `CL_KERNEL_ARG_TYPE_CONST`
pub(crate) const ARG_TYPE_CONST: u64 = 1;

/// `cl_profiling_info`
pub(crate) const PROFILING_QUEUED: u32 = 0x1280;
pub(crate) const PROFILING_SUBMIT: u32 = 0x1281;
pub(crate) const PROFILING_START: u32 = 0x1282;
pub(crate) const PROFILING_END: u32 = 0x1283;
pub(crate) const PROFILING_COMPLETE: u32 = 0x1284;

/// `CL_EVENT_REFERENCE_COUNT`
pub(crate) const EVENT_REFERENCE_COUNT: u32 = 0x11d2;
/// `CL_EVENT_COMMAND_EXECUTION_STATUS`; the answer `CL_COMPLETE` is 0, errors are negative.
pub(crate) const EVENT_STATUS: u32 = 0x11d3;

/// `CL_MEM_REFERENCE_COUNT`
pub(crate) const MEM_REFERENCE_COUNT: u32 = 0x1105;

/// `CL_IMAGE_ELEMENT_SIZE`
pub(crate) const IMAGE_ELEMENT_SIZE: u32 = 0x1111;

/// `CL_SAMPLER_NORMALIZED_COORDS`, `CL_SAMPLER_ADDRESSING_MODE`, `CL_SAMPLER_FILTER_MODE`: each answer has four bytes.
pub(crate) const SAMPLER_QUERIES: [u32; 3] = [0x1152, 0x1153, 0x1154];

/// `cl_layer_info`, `CL_LAYER_API_VERSION_100`
pub(crate) const LAYER_API_VERSION: u32 = 0x4240;
pub(crate) const LAYER_NAME: u32 = 0x4241;
pub(crate) const LAYER_API_VERSION_100: u32 = 100;

/// `cl_buffer_region`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BufferRegion {
    pub(crate) origin: usize,
    pub(crate) size: usize,
}

/// `cl_image_desc`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ImageDescription {
    kind: u32,
    sizes: [usize; 6],
    levels: [u32; 2],
    /// The object whose memory the image is a view of.
    pub(crate) of: Handle,
}

/// Signatures of functions that the layer calls or answers.
pub(crate) mod signature {
    use super::{Handle, Status, c_char, c_void};

    /// Functions that answer a query: object, what, size, value, size needed.
    pub(crate) type Info =
        unsafe extern "C" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Status;
    pub(crate) type ArgumentInfo =
        unsafe extern "C" fn(Handle, u32, u32, usize, *mut c_void, *mut usize) -> Status;
    pub(crate) type BuildInfo =
        unsafe extern "C" fn(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Status;
    /// Functions of one object.
    pub(crate) type Object = unsafe extern "C" fn(Handle) -> Status;
    pub(crate) type CreateQueue = unsafe extern "C" fn(Handle, Handle, u64, *mut Status) -> Handle;
    pub(crate) type CreateQueueWithProperties =
        unsafe extern "C" fn(Handle, Handle, *const u64, *mut Status) -> Handle;
    pub(crate) type CreateBuffer =
        unsafe extern "C" fn(Handle, u64, usize, *mut c_void, *mut Status) -> Handle;
    pub(crate) type CreateBufferWithProperties =
        unsafe extern "C" fn(Handle, *const u64, u64, usize, *mut c_void, *mut Status) -> Handle;
    pub(crate) type CreateSubBuffer =
        unsafe extern "C" fn(Handle, u64, u32, *const c_void, *mut Status) -> Handle;
    pub(crate) type CreateImage = unsafe extern "C" fn(
        Handle,
        u64,
        *const c_void,
        *const c_void,
        *mut c_void,
        *mut Status,
    ) -> Handle;
    pub(crate) type CreateImageWithProperties = unsafe extern "C" fn(
        Handle,
        *const u64,
        u64,
        *const c_void,
        *const c_void,
        *mut c_void,
        *mut Status,
    ) -> Handle;
    pub(crate) type CreateImage2D = unsafe extern "C" fn(
        Handle,
        u64,
        *const c_void,
        usize,
        usize,
        usize,
        *mut c_void,
        *mut Status,
    ) -> Handle;
    pub(crate) type CreateImage3D = unsafe extern "C" fn(
        Handle,
        u64,
        *const c_void,
        usize,
        usize,
        usize,
        usize,
        usize,
        *mut c_void,
        *mut Status,
    ) -> Handle;
    pub(crate) type CreateKernel =
        unsafe extern "C" fn(Handle, *const c_char, *mut Status) -> Handle;
    pub(crate) type CreateKernels =
        unsafe extern "C" fn(Handle, u32, *mut Handle, *mut u32) -> Status;
    pub(crate) type CloneKernel = unsafe extern "C" fn(Handle, *mut Status) -> Handle;
    pub(crate) type SetKernelArg =
        unsafe extern "C" fn(Handle, u32, usize, *const c_void) -> Status;
    pub(crate) type SetKernelArgSvm = unsafe extern "C" fn(Handle, u32, *const c_void) -> Status;
    pub(crate) type SvmAlloc = unsafe extern "C" fn(Handle, u64, usize, u32) -> *mut c_void;
    pub(crate) type WaitForEvents = unsafe extern "C" fn(u32, *const Handle) -> Status;
    pub(crate) type SetEventCallback =
        unsafe extern "C" fn(Handle, i32, *const c_void, *mut c_void) -> Status;
    pub(crate) type Launch = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        *const usize,
        *const usize,
        *const usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type Task =
        unsafe extern "C" fn(Handle, Handle, u32, *const Handle, *mut Handle) -> Status;
    pub(crate) type WriteBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        usize,
        usize,
        *const c_void,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type ReadBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        usize,
        usize,
        *mut c_void,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type TransferRect = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        *const [usize; 3],
        *const [usize; 3],
        *const [usize; 3],
        usize,
        usize,
        usize,
        usize,
        *mut c_void,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type TransferImage = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        *const [usize; 3],
        *const [usize; 3],
        usize,
        usize,
        *mut c_void,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CopyBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        Handle,
        usize,
        usize,
        usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CopyRect = unsafe extern "C" fn(
        Handle,
        Handle,
        Handle,
        *const [usize; 3],
        *const [usize; 3],
        *const [usize; 3],
        usize,
        usize,
        usize,
        usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CopyImage = unsafe extern "C" fn(
        Handle,
        Handle,
        Handle,
        *const [usize; 3],
        *const [usize; 3],
        *const [usize; 3],
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CopyImageToBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        Handle,
        *const [usize; 3],
        *const [usize; 3],
        usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CopyBufferToImage = unsafe extern "C" fn(
        Handle,
        Handle,
        Handle,
        usize,
        *const [usize; 3],
        *const [usize; 3],
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type FillImage = unsafe extern "C" fn(
        Handle,
        Handle,
        *const c_void,
        *const [usize; 3],
        *const [usize; 3],
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type CreateSampler =
        unsafe extern "C" fn(Handle, u32, u32, u32, *mut Status) -> Handle;
    pub(crate) type CreateSamplerWithProperties =
        unsafe extern "C" fn(Handle, *const u64, *mut Status) -> Handle;
    pub(crate) type FillBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        *const c_void,
        usize,
        usize,
        usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
    pub(crate) type MapBuffer = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        u64,
        usize,
        usize,
        u32,
        *const Handle,
        *mut Handle,
        *mut Status,
    ) -> *mut c_void;
    pub(crate) type MapImage = unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        u64,
        *const [usize; 3],
        *const [usize; 3],
        *mut usize,
        *mut usize,
        u32,
        *const Handle,
        *mut Handle,
        *mut Status,
    ) -> *mut c_void;
    pub(crate) type Unmap = unsafe extern "C" fn(
        Handle,
        Handle,
        *mut c_void,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Status;
}
