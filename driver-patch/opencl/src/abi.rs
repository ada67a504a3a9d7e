// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenCL's C interface, from `CL/cl.h` and `CL/cl_layer.h` of the Khronos headers.

use core::ffi::{c_char, c_void};
use core::ptr;

/// An object of the runtime, never followed.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    pub(crate) const NULL: Self = Self(0);
}

pub(crate) type Status = i32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const OUT_OF_RESOURCES: Status = -5;
pub(crate) const INVALID_VALUE: Status = -30;
pub(crate) const INVALID_QUEUE_PROPERTIES: Status = -35;
pub(crate) const INVALID_OPERATION: Status = -59;

pub(crate) const MEM_USE_HOST_PTR: u64 = 1 << 3;
pub(crate) const MEM_COPY_HOST_PTR: u64 = 1 << 5;

pub(crate) const MAP_READ: u64 = 1 << 0;
pub(crate) const MAP_WRITE: u64 = 1 << 1;
pub(crate) const MAP_WRITE_INVALIDATE: u64 = 1 << 2;

pub(crate) const QUEUE_PROFILING: u64 = 1 << 1;
pub(crate) const QUEUE_PROPERTIES: u32 = 0x1093;

pub(crate) const BUFFER_REGION: u32 = 0x1220;

pub(crate) const KERNEL_FUNCTION_NAME: u32 = 0x1190;
pub(crate) const KERNEL_NUM_ARGS: u32 = 0x1191;
pub(crate) const KERNEL_REFERENCE_COUNT: u32 = 0x1192;
pub(crate) const KERNEL_PROGRAM: u32 = 0x1194;
pub(crate) const ARG_TYPE_NAME: u32 = 0x1198;
pub(crate) const ARG_TYPE_QUALIFIER: u32 = 0x1199;
pub(crate) const ARG_NAME: u32 = 0x119a;
pub(crate) const PROGRAM_DEVICES: u32 = 0x1163;
pub(crate) const PROGRAM_SOURCE: u32 = 0x1164;
pub(crate) const PROGRAM_BUILD_OPTIONS: u32 = 0x1182;
pub(crate) const ARG_TYPE_CONST: u64 = 1;

pub(crate) const PROFILING_QUEUED: u32 = 0x1280;
pub(crate) const PROFILING_SUBMIT: u32 = 0x1281;
pub(crate) const PROFILING_START: u32 = 0x1282;
pub(crate) const PROFILING_END: u32 = 0x1283;
pub(crate) const PROFILING_COMPLETE: u32 = 0x1284;

pub(crate) const EVENT_REFERENCE_COUNT: u32 = 0x11d2;
/// `CL_EVENT_COMMAND_EXECUTION_STATUS`; the answer `CL_COMPLETE` is 0, errors are negative.
pub(crate) const EVENT_STATUS: u32 = 0x11d3;

pub(crate) const MEM_REFERENCE_COUNT: u32 = 0x1105;

pub(crate) const IMAGE_ELEMENT_SIZE: u32 = 0x1111;

/// `CL_SAMPLER_NORMALIZED_COORDS`, `CL_SAMPLER_ADDRESSING_MODE`, `CL_SAMPLER_FILTER_MODE`: each answer has four
/// bytes.
pub(crate) const SAMPLER_QUERIES: [u32; 3] = [0x1152, 0x1153, 0x1154];

pub(crate) const LAYER_API_VERSION: u32 = 0x4240;
pub(crate) const LAYER_NAME: u32 = 0x4241;
pub(crate) const LAYER_API_VERSION_100: u32 = 100;

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
    /// The image is a view of its memory.
    pub(crate) of: Handle,
}

pub(crate) mod signature {
    use super::{Handle, Status, c_char, c_void};

    type Triple = *const [usize; 3];

    macro_rules! signatures {
        ($($(#[$doc:meta])* $name:ident($($type:ty),*) -> $out:ty;)*) => {
            $($(#[$doc])* pub(crate) type $name = unsafe extern "C" fn($($type),*) -> $out;)*
        };
    }

    /// After the listed arguments come the events to wait for and the place for its own.
    macro_rules! commands {
        ($($name:ident($($type:ty),*);)*) => {
            $(pub(crate) type $name =
                unsafe extern "C" fn($($type,)* u32, *const Handle, *mut Handle) -> Status;)*
        };
    }

    signatures! {
        /// Object, what, size, value, size needed.
        Info(Handle, u32, usize, *mut c_void, *mut usize) -> Status;
        ArgumentInfo(Handle, u32, u32, usize, *mut c_void, *mut usize) -> Status;
        BuildInfo(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> Status;
        Object(Handle) -> Status;
        CreateQueue(Handle, Handle, u64, *mut Status) -> Handle;
        CreateQueueWithProperties(Handle, Handle, *const u64, *mut Status) -> Handle;
        CreateBuffer(Handle, u64, usize, *mut c_void, *mut Status) -> Handle;
        CreateBufferWithProperties(
            Handle, *const u64, u64, usize, *mut c_void, *mut Status
        ) -> Handle;
        CreateSubBuffer(Handle, u64, u32, *const c_void, *mut Status) -> Handle;
        CreateImage(Handle, u64, *const c_void, *const c_void, *mut c_void, *mut Status) -> Handle;
        CreateImageWithProperties(
            Handle, *const u64, u64, *const c_void, *const c_void, *mut c_void, *mut Status
        ) -> Handle;
        CreateImage2D(
            Handle, u64, *const c_void, usize, usize, usize, *mut c_void, *mut Status
        ) -> Handle;
        CreateImage3D(
            Handle, u64, *const c_void, usize, usize, usize, usize, usize, *mut c_void, *mut Status
        ) -> Handle;
        CreateKernel(Handle, *const c_char, *mut Status) -> Handle;
        CreateKernels(Handle, u32, *mut Handle, *mut u32) -> Status;
        CloneKernel(Handle, *mut Status) -> Handle;
        SetKernelArg(Handle, u32, usize, *const c_void) -> Status;
        SetKernelArgSvm(Handle, u32, *const c_void) -> Status;
        SvmAlloc(Handle, u64, usize, u32) -> *mut c_void;
        WaitForEvents(u32, *const Handle) -> Status;
        SetEventCallback(Handle, i32, *const c_void, *mut c_void) -> Status;
        CreateUserEvent(Handle, *mut Status) -> Handle;
        SetUserEventStatus(Handle, i32) -> Status;
        CreateSampler(Handle, u32, u32, u32, *mut Status) -> Handle;
        CreateSamplerWithProperties(Handle, *const u64, *mut Status) -> Handle;
        MapBuffer(
            Handle, Handle, u32, u64, usize, usize, u32, *const Handle, *mut Handle, *mut Status
        ) -> *mut c_void;
        MapImage(
            Handle, Handle, u32, u64, Triple, Triple, *mut usize, *mut usize, u32, *const Handle,
            *mut Handle, *mut Status
        ) -> *mut c_void;
    }

    commands! {
        Launch(Handle, Handle, u32, *const usize, *const usize, *const usize);
        Task(Handle, Handle);
        WriteBuffer(Handle, Handle, u32, usize, usize, *const c_void);
        ReadBuffer(Handle, Handle, u32, usize, usize, *mut c_void);
        TransferRect(
            Handle, Handle, u32, Triple, Triple, Triple, usize, usize, usize, usize, *mut c_void
        );
        TransferImage(Handle, Handle, u32, Triple, Triple, usize, usize, *mut c_void);
        CopyBuffer(Handle, Handle, Handle, usize, usize, usize);
        CopyRect(Handle, Handle, Handle, Triple, Triple, Triple, usize, usize, usize, usize);
        CopyImage(Handle, Handle, Handle, Triple, Triple, Triple);
        CopyImageToBuffer(Handle, Handle, Handle, Triple, Triple, usize);
        CopyBufferToImage(Handle, Handle, Handle, usize, Triple, Triple);
        FillImage(Handle, Handle, *const c_void, Triple, Triple);
        FillBuffer(Handle, Handle, *const c_void, usize, usize, usize);
        Unmap(Handle, Handle, *mut c_void);
    }
}

pub(crate) fn ask<const BYTES: usize>(
    info: Option<signature::Info>,
    object: Handle,
    what: u32,
) -> Option<[u8; BYTES]> {
    let mut answer = [0; BYTES];
    // SAFETY: the place has room for the answer; the handle is the app's or the layer's own.
    let status = unsafe {
        info?(
            object,
            what,
            BYTES,
            answer.as_mut_ptr().cast(),
            ptr::null_mut(),
        )
    };
    (status == SUCCESS).then_some(answer)
}
