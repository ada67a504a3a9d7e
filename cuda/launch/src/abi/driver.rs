// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that gpureplay calls itself.
#![allow(non_snake_case, reason = "the driver's own names")]

use core::ffi::{CStr, c_char, c_void};

use crate::abi::{
    AccessDescriptor, AllocationProperties, Copy3d, DevicePointer, EdgeData, Handle, HostNode,
    KernelNode, LaunchConfiguration, LaunchParameter, MemsetNode, Status,
};

/// Function without which nothing works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(pub &'static str);

macro_rules! driver {
    ($($name:ident ( $($argument:ident : $kind:ty),* );)*) => {
        /// Missing functions answer `CUDA_ERROR_NOT_FOUND`.
        #[derive(Clone)]
        pub struct Driver {
            $($name: usize,)*
        }

        impl Driver {
            /// Looks up every function.
            ///
            /// # Safety
            /// `address` must return the driver's function of that name, or 0.
            ///
            /// # Errors
            /// Without `cuInit`.
            #[allow(unsafe_code, reason = "the caller vouches for addresses of functions")]
            pub unsafe fn new(mut address: impl FnMut(&CStr) -> usize) -> Result<Self, Missing> {
                let driver = Self {
                    $($name: address(
                        const {
                            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name without a zero"),
                            }
                        },
                    ),)*
                };
                if driver.cuInit == 0 { Err(Missing("cuInit")) } else { Ok(driver) }
            }

            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                ///
                /// # Safety
                /// Valid pointers, live handles.
                #[allow(unsafe_code, clippy::too_many_arguments, reason = "calls of the driver")]
                pub unsafe fn $name(&self, $($argument: $kind),*) -> Status {
                    if self.$name == 0 {
                        return Status::NOT_FOUND;
                    }
                    // SAFETY: `new`'s caller vouches for the address; signatures are those of cuda.h.
                    let function = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> Status>(self.$name)
                    };
                    // SAFETY: our caller's promise.
                    unsafe { function($($argument),*) }
                }
            )*
        }
    };
}

driver! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: *mut i32);
    cuDeviceGet(device: *mut i32, ordinal: i32);
    cuDeviceGetCount(count: *mut i32);
    cuDeviceGetName(name: *mut c_char, length: i32, device: i32);
    cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: i32);
    cuDevicePrimaryCtxRelease_v2(device: i32);
    cuCtxSetCurrent(context: Handle);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxGetDevice(device: *mut i32);
    cuCtxSynchronize();
    cuPointerGetAttribute(value: *mut c_void, attribute: i32, address: DevicePointer);
    cuMemAddressReserve(address: *mut DevicePointer, size: usize, alignment: usize, wanted: DevicePointer, flags: u64);
    cuMemAddressFree(address: DevicePointer, size: usize);
    cuMemCreate(handle: *mut Handle, size: usize, properties: *const AllocationProperties, flags: u64);
    cuMemRelease(handle: Handle);
    cuMemMap(address: DevicePointer, size: usize, offset: usize, handle: Handle, flags: u64);
    cuMemUnmap(address: DevicePointer, size: usize);
    cuMemSetAccess(address: DevicePointer, size: usize, descriptors: *const AccessDescriptor, count: usize);
    cuMemAlloc_v2(address: *mut DevicePointer, size: usize);
    cuMemFree_v2(address: DevicePointer);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemcpyDtoH_v2(host: *mut c_void, device: DevicePointer, size: usize);
    cuMemcpyHtoD_v2(device: DevicePointer, host: *const c_void, size: usize);
    cuMemsetD8_v2(device: DevicePointer, value: u8, size: usize);
    cuMemHostAlloc(address: *mut *mut c_void, size: usize, flags: u32);
    cuMemFreeHost(address: *mut c_void);
    cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: u32);
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, options: u32, names: *mut i32, values: *mut u64);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuModuleGetGlobal_v2(address: *mut DevicePointer, size: *mut usize, module: Handle, name: *const c_char);
    cuLibraryGetGlobal(address: *mut DevicePointer, size: *mut usize, library: Handle, name: *const c_char);
    cuKernelGetFunction(function: *mut Handle, kernel: Handle);
    cuKernelGetName(name: *mut *const c_char, kernel: Handle);
    cuKernelGetLibrary(library: *mut Handle, kernel: Handle);
    cuKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncGetName(name: *mut *const c_char, function: Handle);
    cuFuncGetModule(module: *mut Handle, function: Handle);
    cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncGetAttribute(value: *mut i32, attribute: i32, function: Handle);
    cuFuncSetAttribute(function: Handle, attribute: i32, value: i32);
    cuLaunchKernelEx(configuration: *const LaunchConfiguration, function: Handle, parameters: *const *const c_void, extra: *const *const c_void);
    cuStreamIsCapturing(stream: Handle, state: *mut i32);
    cuCtxSetLimit(limit: i32, value: usize);
    cuLibraryGetModule(module: *mut Handle, library: Handle);
    cuMemcpyDtoHAsync_v2(host: *mut c_void, device: DevicePointer, size: usize, stream: Handle);
    cuMemcpyHtoDAsync_v2(device: DevicePointer, host: *const c_void, size: usize, stream: Handle);
    cuMemcpy3DAsync_v2(copy: *const Copy3d, stream: Handle);
    cuMemsetD8Async(device: DevicePointer, value: u8, count: usize, stream: Handle);
    cuMemsetD16Async(device: DevicePointer, value: u16, count: usize, stream: Handle);
    cuMemsetD32Async(device: DevicePointer, value: u32, count: usize, stream: Handle);
    cuMemsetD2D8Async(device: DevicePointer, pitch: usize, value: u8, width: usize, height: usize, stream: Handle);
    cuMemsetD2D16Async(device: DevicePointer, pitch: usize, value: u16, width: usize, height: usize, stream: Handle);
    cuMemsetD2D32Async(device: DevicePointer, pitch: usize, value: u32, width: usize, height: usize, stream: Handle);
    cuLaunchHostFunc(stream: Handle, function: usize, data: usize);
    cuStreamCreate(stream: *mut Handle, flags: u32);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamGetFlags(stream: Handle, flags: *mut u32);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32);
    cuStreamBeginCapture_v2(stream: Handle, mode: i32);
    cuStreamEndCapture(stream: Handle, graph: *mut Handle);
    cuMemcpyDtoDAsync_v2(to: DevicePointer, from: DevicePointer, size: usize, stream: Handle);
    cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64);
    cuGraphLaunch(executable: Handle, stream: Handle);
    cuGraphExecDestroy(executable: Handle);
    cuGraphClone(clone: *mut Handle, graph: Handle);
    cuGraphDestroy(graph: Handle);
    cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize);
    cuGraphGetEdges_v2(graph: Handle, from: *mut Handle, to: *mut Handle, data: *mut EdgeData, count: *mut usize);
    cuGraphNodeGetType(node: Handle, kind: *mut i32);
    cuGraphNodeFindInClone(copy: *mut Handle, node: Handle, clone: Handle);
    cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut KernelNode);
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const KernelNode);
    cuGraphKernelNodeGetAttribute(node: Handle, attribute: i32, value: *mut [u64; 8]);
    cuGraphMemcpyNodeGetParams(node: Handle, parameters: *mut Copy3d);
    cuGraphMemsetNodeGetParams(node: Handle, parameters: *mut MemsetNode);
    cuGraphHostNodeGetParams(node: Handle, parameters: *mut HostNode);
    cuGraphChildGraphNodeGetGraph(node: Handle, graph: *mut Handle);
    cuEventCreate(event: *mut Handle, flags: u32);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);
    cuEventSynchronize(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
}

#[allow(unsafe_code, reason = "calls of the driver")]
impl Driver {
    /// A memset as a graph's node says it.
    ///
    /// # Safety
    /// As for the driver's functions of memsets.
    pub unsafe fn memset(&self, set: &MemsetNode, stream: Handle) -> Status {
        let MemsetNode {
            destination: to,
            pitch,
            value,
            width,
            height,
            ..
        } = *set;
        let bytes = value.to_le_bytes();
        let short = u16::from_le_bytes([bytes[0], bytes[1]]);
        // SAFETY: our caller's promise.
        unsafe {
            match (set.element, height) {
                (1, 0..=1) => self.cuMemsetD8Async(to, bytes[0], width, stream),
                (2, 0..=1) => self.cuMemsetD16Async(to, short, width, stream),
                (4, 0..=1) => self.cuMemsetD32Async(to, value, width, stream),
                (1, _) => self.cuMemsetD2D8Async(to, pitch, bytes[0], width, height, stream),
                (2, _) => self.cuMemsetD2D16Async(to, pitch, short, width, height, stream),
                (4, _) => self.cuMemsetD2D32Async(to, pitch, value, width, height, stream),
                _ => Status::INVALID_VALUE,
            }
        }
    }

    /// A kernel with packed parameters.
    ///
    /// # Safety
    /// As for `cuLaunchKernelEx`.
    pub unsafe fn launch_packed(
        &self,
        configuration: &LaunchConfiguration,
        kernel: Handle,
        parameters: &[u8],
    ) -> Status {
        let size = parameters.len();
        let extra = [
            LaunchParameter::BufferPointer as usize as *const _,
            parameters.as_ptr().cast(),
            LaunchParameter::BufferSize as usize as *const _,
            (&raw const size).cast(),
            LaunchParameter::End as usize as *const _,
        ];
        let extra = match size {
            0 => core::ptr::null(),
            _ => extra.as_ptr(),
        };
        // SAFETY: our caller's promise; what `extra` points at lives until the call returns.
        unsafe { self.cuLaunchKernelEx(configuration, kernel, core::ptr::null(), extra) }
    }
}
