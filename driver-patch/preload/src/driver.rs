// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions to the driver while the app is in a call; tests have a driver of their own.

use std::os::fd::RawFd;

use gpureplay_trace::Driver as Driven;
use mali_facts::kbase::Property;
use mali_facts::panthor::GpuInfo;

use crate::memory::View;
use crate::object::Object;
use crate::threads::Asleep;

/// Of the recorder.
pub(crate) struct Mapped {
    /// The app's mappings are known by it.
    pub(crate) offset: u64,
    pub(crate) view: Box<dyn View>,
}

/// On the file of the call.
pub(crate) trait Driver {
    /// If it is recorded.
    fn kind(&self, fd: RawFd) -> Option<Driven>;
    fn is_same_file(&self, a: RawFd, b: RawFd) -> bool;
    /// By `drm_panfrost_param`; `None` if the driver does not know it.
    fn param(&self, fd: RawFd, param: u32) -> Option<u64>;
    /// The device tree says that the GPU snoops the processor's caches.
    fn tree_is_coherent(&self, fd: RawFd) -> bool;
    fn gpu_info(&self, fd: RawFd) -> Option<GpuInfo>;
    /// kbase's properties of the GPU.
    fn properties(&self, fd: RawFd) -> Vec<Property>;
    /// Of a region of kbase.
    fn committed(&self, fd: RawFd, va: u64) -> Option<u64>;
    /// For reading.
    fn map(&self, fd: RawFd, kind: Driven, object: &Object) -> Option<Mapped>;
    /// GPU virtual address.
    fn address(&self, fd: RawFd, handle: u32) -> Option<u64>;
    /// Bytes of a shared buffer.
    fn shared_size(&self, buffer: RawFd) -> Option<u64>;
    /// `false` if the driver cannot.
    fn invalidate(&self, fd: RawFd, kind: Driven, object: &Object) -> bool;
    /// If all of them sleep.
    fn asleep(&self) -> Option<Asleep>;
    /// Of the kernel.
    fn release(&self) -> String;
    /// Monotonic, nanoseconds.
    fn now(&self) -> u64;
}
