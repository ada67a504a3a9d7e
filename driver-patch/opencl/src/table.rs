// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatch tables of the app and the layer.

use core::sync::atomic::{AtomicUsize, Ordering};

/// In the order of `CL/cl_icd.h`.
macro_rules! functions {
    ($macro:ident) => {
        $macro! {
            clGetPlatformIDs, clGetPlatformInfo, clGetDeviceIDs, clGetDeviceInfo, clCreateContext,
            clCreateContextFromType, clRetainContext, clReleaseContext, clGetContextInfo,
            clCreateCommandQueue, clRetainCommandQueue, clReleaseCommandQueue, clGetCommandQueueInfo,
            clSetCommandQueueProperty, clCreateBuffer, clCreateImage2D, clCreateImage3D,
            clRetainMemObject, clReleaseMemObject, clGetSupportedImageFormats, clGetMemObjectInfo,
            clGetImageInfo, clCreateSampler, clRetainSampler, clReleaseSampler, clGetSamplerInfo,
            clCreateProgramWithSource, clCreateProgramWithBinary, clRetainProgram, clReleaseProgram,
            clBuildProgram, clUnloadCompiler, clGetProgramInfo, clGetProgramBuildInfo, clCreateKernel,
            clCreateKernelsInProgram, clRetainKernel, clReleaseKernel, clSetKernelArg, clGetKernelInfo,
            clGetKernelWorkGroupInfo, clWaitForEvents, clGetEventInfo, clRetainEvent, clReleaseEvent,
            clGetEventProfilingInfo, clFlush, clFinish, clEnqueueReadBuffer, clEnqueueWriteBuffer,
            clEnqueueCopyBuffer, clEnqueueReadImage, clEnqueueWriteImage, clEnqueueCopyImage,
            clEnqueueCopyImageToBuffer, clEnqueueCopyBufferToImage, clEnqueueMapBuffer,
            clEnqueueMapImage, clEnqueueUnmapMemObject, clEnqueueNDRangeKernel, clEnqueueTask,
            clEnqueueNativeKernel, clEnqueueMarker, clEnqueueWaitForEvents, clEnqueueBarrier,
            clGetExtensionFunctionAddress, clCreateFromGLBuffer, clCreateFromGLTexture2D,
            clCreateFromGLTexture3D, clCreateFromGLRenderbuffer, clGetGLObjectInfo, clGetGLTextureInfo,
            clEnqueueAcquireGLObjects, clEnqueueReleaseGLObjects, clGetGLContextInfoKHR,
            clGetDeviceIDsFromD3D10KHR, clCreateFromD3D10BufferKHR, clCreateFromD3D10Texture2DKHR,
            clCreateFromD3D10Texture3DKHR, clEnqueueAcquireD3D10ObjectsKHR,
            clEnqueueReleaseD3D10ObjectsKHR, clSetEventCallback, clCreateSubBuffer,
            clSetMemObjectDestructorCallback, clCreateUserEvent, clSetUserEventStatus,
            clEnqueueReadBufferRect, clEnqueueWriteBufferRect, clEnqueueCopyBufferRect,
            clCreateSubDevicesEXT, clRetainDeviceEXT, clReleaseDeviceEXT, clCreateEventFromGLsyncKHR,
            clCreateSubDevices, clRetainDevice, clReleaseDevice, clCreateImage,
            clCreateProgramWithBuiltInKernels, clCompileProgram, clLinkProgram,
            clUnloadPlatformCompiler, clGetKernelArgInfo, clEnqueueFillBuffer, clEnqueueFillImage,
            clEnqueueMigrateMemObjects, clEnqueueMarkerWithWaitList, clEnqueueBarrierWithWaitList,
            clGetExtensionFunctionAddressForPlatform, clCreateFromGLTexture,
            clGetDeviceIDsFromD3D11KHR, clCreateFromD3D11BufferKHR, clCreateFromD3D11Texture2DKHR,
            clCreateFromD3D11Texture3DKHR, clCreateFromDX9MediaSurfaceKHR,
            clEnqueueAcquireD3D11ObjectsKHR, clEnqueueReleaseD3D11ObjectsKHR,
            clGetDeviceIDsFromDX9MediaAdapterKHR, clEnqueueAcquireDX9MediaSurfacesKHR,
            clEnqueueReleaseDX9MediaSurfacesKHR, clCreateFromEGLImageKHR,
            clEnqueueAcquireEGLObjectsKHR, clEnqueueReleaseEGLObjectsKHR, clCreateEventFromEGLSyncKHR,
            clCreateCommandQueueWithProperties, clCreatePipe, clGetPipeInfo, clSVMAlloc, clSVMFree,
            clEnqueueSVMFree, clEnqueueSVMMemcpy, clEnqueueSVMMemFill, clEnqueueSVMMap,
            clEnqueueSVMUnmap, clCreateSamplerWithProperties, clSetKernelArgSVMPointer,
            clSetKernelExecInfo, clGetKernelSubGroupInfoKHR, clCloneKernel, clCreateProgramWithIL,
            clEnqueueSVMMigrateMem, clGetDeviceAndHostTimer, clGetHostTimer, clGetKernelSubGroupInfo,
            clSetDefaultDeviceCommandQueue, clSetProgramReleaseCallback,
            clSetProgramSpecializationConstant, clCreateBufferWithProperties,
            clCreateImageWithProperties, clSetContextDestructorCallback,
        }
    };
}
pub(crate) use functions;

macro_rules! table {
    ($($name:ident),+ $(,)?) => {
        #[allow(non_camel_case_types, dead_code, reason = "the names are those of the C interface, and the table is whole")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Function { $($name,)+ }

        pub(crate) const NAMES: &[&core::ffi::CStr] = &[$(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no NUL"),
            },
        )+];
    };
}
functions!(table);

/// Later loaders add entries at the end, passed on unchanged.
pub(crate) const CAPACITY: usize = 256;

pub(crate) struct Table([AtomicUsize; CAPACITY]);

impl Table {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; CAPACITY])
    }

    pub(crate) fn get(&self, index: usize) -> usize {
        self.0
            .get(index)
            .map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, index: usize, address: usize) {
        if let Some(entry) = self.0.get(index) {
            entry.store(address, Ordering::Release);
        }
    }
}

/// Below the layer.
pub(crate) static NEXT: Table = Table::new();
/// For the app.
pub(crate) static OURS: Table = Table::new();

/// `None` if the runtime lacks it.
macro_rules! next {
    ($name:ident: $type:ty) => {{
        let address = $crate::table::NEXT.get($crate::table::Function::$name as usize);
        // SAFETY: the address is the loader's or the runtime's for this name, which has this signature; an optional
        // function pointer has the same layout, with 0 as `None`.
        unsafe { core::mem::transmute::<usize, Option<$type>>(address) }
    }};
    ($name:ident: $type:ty, or $absent:expr) => {
        match $crate::table::next!($name: $type) {
            Some(next) => next,
            None => return $absent,
        }
    };
}
pub(crate) use next;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_c_structure() {
        for (function, place, name) in [
            (Function::clGetPlatformIDs, 0, c"clGetPlatformIDs"),
            (Function::clCreateBuffer, 14, c"clCreateBuffer"),
            (
                Function::clEnqueueNDRangeKernel,
                59,
                c"clEnqueueNDRangeKernel",
            ),
            (Function::clCreateSubBuffer, 82, c"clCreateSubBuffer"),
            (
                Function::clCreateCommandQueueWithProperties,
                123,
                c"clCreateCommandQueueWithProperties",
            ),
            (
                Function::clCreateBufferWithProperties,
                146,
                c"clCreateBufferWithProperties",
            ),
            (
                Function::clSetContextDestructorCallback,
                148,
                c"clSetContextDestructorCallback",
            ),
        ] {
            assert_eq!((function as usize, NAMES[place]), (place, name));
        }
        assert!(NAMES.len() < CAPACITY);
    }
}
