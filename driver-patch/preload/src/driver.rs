// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the recorder asks panfrost, panthor or kbase while the app is in a call; tests have a driver of their own.

use std::os::fd::RawFd;

use gpureplay_trace::Driver as Driven;
use mali_facts::kbase::Property;
use mali_facts::panthor::GpuInfo;

use crate::memory::View;
use crate::object::Object;
use crate::threads::Asleep;

/// A mapping of the recorder's own.
pub(crate) struct Mapped {
    /// Where the object lies in the file, by which the app's mappings are known.
    pub(crate) offset: u64,
    /// Its memory.
    pub(crate) view: Box<dyn View>,
}

/// Questions to the driver and the kernel, on the file of the call.
pub(crate) trait Driver {
    /// The driver that the file is of, if it is one that is recorded.
    fn kind(&self, fd: RawFd) -> Option<Driven>;
    /// Whether two numbers name one open file.
    fn is_same_file(&self, a: RawFd, b: RawFd) -> bool;
    /// A parameter, by its number in `drm_panfrost_param`; `None` if the driver does not know it.
    fn param(&self, fd: RawFd, param: u32) -> Option<u64>;
    /// Whether the device tree says that the GPU snoops the processor's caches.
    fn tree_is_coherent(&self, fd: RawFd) -> bool;
    fn gpu_info(&self, fd: RawFd) -> Option<GpuInfo>;
    /// What kbase says of the GPU, as numbers of properties with their values.
    fn properties(&self, fd: RawFd) -> Vec<Property>;
    /// Pages that a region of kbase has.
    fn committed(&self, fd: RawFd, va: u64) -> Option<u64>;
    /// Maps an object to be read.
    fn map(&self, fd: RawFd, kind: Driven, object: &Object) -> Option<Mapped>;
    /// An object's GPU virtual address.
    fn address(&self, fd: RawFd, handle: u32) -> Option<u64>;
    /// Bytes of a buffer that is shared by a file.
    fn shared_size(&self, buffer: RawFd) -> Option<u64>;
    /// Makes the processor's caches forget an object; `false` if the driver cannot.
    fn invalidate(&self, fd: RawFd, kind: Driven, object: &Object) -> bool;
    /// The app's other threads, if all of them sleep.
    fn asleep(&self) -> Option<Asleep>;
    /// The kernel's release.
    fn release(&self) -> String;
    /// Monotonic clock, nanoseconds.
    fn now(&self) -> u64;
}
