// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver and one GPU of it.

use std::ffi::CStr;

use gpureplay_cuda_launch::abi::{DevicePointer, Driver, Handle, attribute};
use gpureplay_cuda_launch::recording::Run;

use crate::ReplayError;
use crate::error::driver;

const QUEUES: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
/// The driver's default.
const MOST_QUEUES: usize = 8;

/// A GPU. Its context is made late: recorded addresses are then easier to have.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) driver: Driver,
    pub(crate) device: i32,
    info: GpuInfo,
}

/// Properties of GPU and driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// As the driver names it.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: [i32; 2],
    /// Version of CUDA: 13000 is 13.0.
    pub driver: i32,
    /// Number of GPUs.
    pub count: i32,
}

impl Gpu {
    /// Opens a GPU by ordinal.
    ///
    /// # Errors
    /// No driver, or no such GPU.
    pub fn open(ordinal: i32) -> Result<Self, ReplayError> {
        // SAFETY: a C string and a flag; the library's constructors are the driver's.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err(ReplayError::NoDriver);
        }
        // SAFETY: a handle of a library that stays, C strings.
        let address = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) } as usize;
        // SAFETY: addresses of the driver's own functions.
        let functions = unsafe { Driver::new(address) }
            .map_err(|missing| ReplayError::Incomplete(missing.0))?;
        let mut gpu = Self {
            driver: functions,
            device: 0,
            info: GpuInfo {
                name: String::new(),
                capability: [0; 2],
                driver: 0,
                count: 0,
            },
        };
        let mut name = [0; 256];
        // SAFETY: pointers to locals of the passed sizes.
        unsafe {
            driver("cuInit", gpu.driver.cuInit(0))?;
            driver(
                "cuDeviceGetCount",
                gpu.driver.cuDeviceGetCount(&raw mut gpu.info.count),
            )?;
            driver(
                "cuDeviceGet",
                gpu.driver.cuDeviceGet(&raw mut gpu.device, ordinal),
            )?;
            driver(
                "cuDriverGetVersion",
                gpu.driver.cuDriverGetVersion(&raw mut gpu.info.driver),
            )?;
            driver(
                "cuDeviceGetName",
                gpu.driver
                    .cuDeviceGetName(name.as_mut_ptr(), 256, gpu.device),
            )?;
            gpu.info.name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
        }
        gpu.info.capability = [
            gpu.attribute(attribute::device::CAPABILITY_MAJOR)?,
            gpu.attribute(attribute::device::CAPABILITY_MINOR)?,
        ];
        Ok(gpu)
    }

    /// Opens a GPU for one run, without other threads or contexts: as many queues as streams, not eight of each
    /// kind, halve the context's time. The environment overrules.
    pub(crate) fn open_alone(ordinal: i32, run: &Run) -> Result<Self, ReplayError> {
        if std::env::var_os(QUEUES).is_none() {
            let streams = run.streams.len().clamp(1, MOST_QUEUES);
            // SAFETY: no other thread reads the environment, as the caller says.
            unsafe { std::env::set_var(QUEUES, streams.to_string()) };
        }
        Self::open(ordinal)
    }

    /// Properties of the GPU.
    #[must_use]
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    pub(crate) fn attribute(&self, number: i32) -> Result<i32, ReplayError> {
        let mut value = 0;
        // SAFETY: a pointer to a local.
        let status = unsafe {
            self.driver
                .cuDeviceGetAttribute(&raw mut value, number, self.device)
        };
        driver("cuDeviceGetAttribute", status).map(|()| value)
    }

    pub(crate) fn enter(&self) -> Result<(), ReplayError> {
        let mut context = 0;
        // SAFETY: a pointer to a local; the context just made.
        unsafe {
            driver(
                "cuDevicePrimaryCtxRetain",
                self.driver
                    .cuDevicePrimaryCtxRetain(&raw mut context, self.device),
            )?;
            driver("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(context))
        }
    }

    pub(crate) fn limit(&self, limits: &[[u64; 2]]) -> Result<(), ReplayError> {
        for [number, value] in limits {
            let wrong = ReplayError::Impossible("a limit is larger than memory");
            let (Ok(number), Ok(value)) = (i32::try_from(*number), usize::try_from(*value)) else {
                return Err(wrong);
            };
            // SAFETY: numbers only; the driver checks them.
            driver("cuCtxSetLimit", unsafe {
                self.driver.cuCtxSetLimit(number, value)
            })?;
        }
        Ok(())
    }

    pub(crate) fn upload(&self, address: DevicePointer, bytes: &[u8]) -> Result<(), ReplayError> {
        // SAFETY: the slice is read only; the driver checks the address.
        let status = unsafe {
            self.driver
                .cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len())
        };
        driver("cuMemcpyHtoD_v2", status)
    }

    pub(crate) fn clear(&self, address: DevicePointer, size: u64) -> Result<(), ReplayError> {
        let size = usize::try_from(size)
            .map_err(|_| ReplayError::Impossible("memory is larger than memory"))?;
        // SAFETY: the driver checks the address.
        let status = unsafe { self.driver.cuMemsetD8_v2(address, 0, size) };
        driver("cuMemsetD8_v2", status)
    }

    pub(crate) fn download(
        &self,
        address: DevicePointer,
        bytes: &mut [u8],
    ) -> Result<(), ReplayError> {
        // SAFETY: the slice is writable for its length; the driver checks the address.
        let status = unsafe {
            self.driver
                .cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, bytes.len())
        };
        driver("cuMemcpyDtoH_v2", status)
    }

    pub(crate) fn free_memory(&self) -> Result<usize, ReplayError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: pointers to locals.
        let status = unsafe { self.driver.cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        driver("cuMemGetInfo_v2", status).map(|()| free)
    }

    pub(crate) fn synchronize(&self) -> Result<(), ReplayError> {
        // SAFETY: no arguments.
        driver("cuCtxSynchronize", unsafe {
            self.driver.cuCtxSynchronize()
        })
    }
}

pub(crate) struct Context {
    gpu: Gpu,
    handle: Handle,
}

impl Context {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, ReplayError> {
        let mut handle = 0;
        // SAFETY: a pointer to a local.
        let status = unsafe {
            gpu.driver
                .cuDevicePrimaryCtxRetain(&raw mut handle, gpu.device)
        };
        driver("cuDevicePrimaryCtxRetain", status)?;
        Ok(Self {
            gpu: gpu.clone(),
            handle,
        })
    }

    pub(crate) fn enter(&self) -> Result<Entered, ReplayError> {
        let entered = Entered::keep(&self.gpu)?;
        // SAFETY: a retained context.
        driver("cuCtxSetCurrent", unsafe {
            self.gpu.driver.cuCtxSetCurrent(self.handle)
        })?;
        Ok(entered)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once by `new`. As in other drops, a failure leaves what the process gives back.
        let _ = unsafe {
            self.gpu
                .driver
                .cuDevicePrimaryCtxRelease_v2(self.gpu.device)
        };
    }
}

/// Current context; on drop restores the thread's earlier one.
pub(crate) struct Entered {
    driver: Driver,
    before: Handle,
}

impl Entered {
    pub(crate) fn keep(gpu: &Gpu) -> Result<Self, ReplayError> {
        let mut before = 0;
        // SAFETY: a pointer to a local.
        driver("cuCtxGetCurrent", unsafe {
            gpu.driver.cuCtxGetCurrent(&raw mut before)
        })?;
        Ok(Self {
            driver: gpu.driver.clone(),
            before,
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: it was this thread's context, or none.
        let _ = unsafe { self.driver.cuCtxSetCurrent(self.before) };
    }
}
