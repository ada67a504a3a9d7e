// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions to the driver; tests have their own.

use std::os::fd::RawFd;

use gpureplay_trace::Driver as Driven;
use mali_uapi::kbase::Property;
use mali_uapi::panthor::GpuInfo;

use crate::memory::View;
use crate::object::Object;
use crate::threads::Asleep;

pub(crate) struct Mapped {
    pub(crate) offset: u64,
    pub(crate) view: Box<dyn View>,
}

pub(crate) trait Driver {
    fn kind(&self, fd: RawFd) -> Option<Driven>;
    fn is_same_file(&self, a: RawFd, b: RawFd) -> bool;
    /// A `drm_panfrost_param`.
    fn param(&self, fd: RawFd, param: u32) -> Option<u64>;
    fn tree_is_coherent(&self, fd: RawFd) -> bool;
    fn gpu_info(&self, fd: RawFd) -> Option<GpuInfo>;
    fn properties(&self, fd: RawFd) -> Vec<Property>;
    fn committed(&self, fd: RawFd, va: u64) -> Option<u64>;
    fn map(&self, fd: RawFd, kind: Driven, object: &Object) -> Option<Mapped>;
    fn address(&self, fd: RawFd, handle: u32) -> Option<u64>;
    fn shared_size(&self, buffer: RawFd) -> Option<u64>;
    fn invalidate(&self, fd: RawFd, kind: Driven, object: &Object) -> bool;
    fn asleep(&self) -> Option<Asleep>;
    fn release(&self) -> String;
    /// Monotonic, in nanoseconds.
    fn now(&self) -> u64;
}
