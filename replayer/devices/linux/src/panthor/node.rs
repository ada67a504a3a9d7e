// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open file of panthor.

use std::path::{Path, PathBuf};

use mali_uapi::panthor::registers;

use super::abi;
use crate::error::OpenError;
use crate::mapped::Mapped;
use crate::render_node::{Driver, RenderNode};

const PANTHOR: Driver = Driver {
    name: "panthor",
    oldest_minor: 0,
};
const RING_BYTES: u32 = 1 << 16;
/// Above background groups, below demanding ones.
const MEDIUM: u8 = 1;

/// Panthor's first render node.
///
/// # Errors
/// There is none.
pub fn find(root: &Path) -> Result<PathBuf, OpenError> {
    PANTHOR.find(root)
}

#[derive(Debug)]
pub(crate) struct Node(RenderNode);

fn list<T>(items: &[T]) -> abi::ObjectArray {
    abi::ObjectArray {
        stride: size_of::<T>() as u32,
        count: items.len() as u32,
        array: items.as_ptr() as u64,
    }
}

impl Node {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        PANTHOR.open(path).map(Self)
    }

    pub(crate) fn shared(&self) -> &RenderNode {
        &self.0
    }

    pub(crate) fn gpu_info(&self) -> Result<abi::GpuInfo, nix::Error> {
        let mut info = abi::GpuInfo::default();
        let mut query = abi::DevQuery {
            kind: abi::query::GPU_INFO,
            size: size_of::<abi::GpuInfo>() as u32,
            pointer: (&raw mut info) as u64,
        };
        // SAFETY: `info` has the size that the argument says and lives until the call returns.
        unsafe { abi::dev_query(self.0.fd(), &mut query) }?;
        Ok(info)
    }

    pub(crate) fn space(&self) -> Result<Space<'_>, nix::Error> {
        let mut create = abi::VmCreate::default();
        // SAFETY: the argument has the request's size.
        unsafe { abi::vm_create(self.0.fd(), &mut create) }?;
        Ok(Space {
            node: self,
            vm: create.id,
            end: create.user_range,
        })
    }

    pub(crate) fn group(&self, vm: u32, info: &abi::GpuInfo) -> Result<u32, nix::Error> {
        let queues = [abi::QueueCreate {
            priority: 0,
            ring_bytes: RING_BYTES,
            ..abi::QueueCreate::default()
        }];
        let cores = info.shader_present.count_ones() as u8;
        let mut create = abi::GroupCreate {
            queues: list(&queues),
            compute_cores: cores,
            fragment_cores: cores,
            tilers: 1,
            priority: MEDIUM,
            compute_mask: info.shader_present,
            fragment_mask: info.shader_present,
            tiler_mask: 1,
            vm,
            ..abi::GroupCreate::default()
        };
        // SAFETY: `queues` lives until the call returns.
        unsafe { abi::group_create(self.0.fd(), &mut create) }?;
        Ok(create.handle)
    }

    /// What the old group still runs is dropped.
    pub(crate) fn renew(
        &self,
        group: u32,
        vm: u32,
        info: &abi::GpuInfo,
    ) -> Result<u32, nix::Error> {
        let mut destroy = abi::GroupDestroy {
            handle: group,
            ..abi::GroupDestroy::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::group_destroy(self.0.fd(), &mut destroy) }?;
        self.group(vm, info)
    }

    pub(crate) fn submit(
        &self,
        group: u32,
        (address, bytes): (u64, u32),
        latest_flush: u32,
    ) -> Result<(), nix::Error> {
        let signals = [abi::SyncOp {
            flags: abi::SYNC_SIGNAL,
            handle: self.0.sync(),
            point: 0,
        }];
        let submits = [abi::QueueSubmit {
            address,
            bytes,
            latest_flush,
            syncs: list(&signals),
            ..abi::QueueSubmit::default()
        }];
        let mut submit = abi::GroupSubmit {
            group,
            submits: list(&submits),
            ..abi::GroupSubmit::default()
        };
        loop {
            // SAFETY: both lists live until the call returns.
            match unsafe { abi::group_submit(self.0.fd(), &mut submit) } {
                // Nothing was submitted.
                Err(nix::Error::EINTR) => {}
                result => return result.map(drop),
            }
        }
    }

    pub(crate) fn has_fault(&self, group: u32) -> Result<bool, nix::Error> {
        let mut get = abi::GroupGetState {
            group,
            ..abi::GroupGetState::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::group_get_state(self.0.fd(), &mut get) }?;
        Ok(get.state & abi::GROUP_FATAL_FAULT != 0)
    }
}

#[derive(Debug)]
pub(crate) struct Space<'n> {
    node: &'n Node,
    pub(crate) vm: u32,
    pub(crate) end: u64,
}

impl Space<'_> {
    pub(crate) fn map(&self, va: u64, bytes: u64, flags: u32) -> Result<Mapped, nix::Error> {
        let fd = self.node.0.fd();
        let mut create = abi::BoCreate {
            size: bytes,
            exclusive_vm: self.vm,
            ..abi::BoCreate::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::bo_create(fd, &mut create) }?;
        let operations = [abi::VmBindOp {
            flags: abi::BIND_MAP | flags,
            handle: create.handle,
            va,
            size: bytes,
            ..abi::VmBindOp::default()
        }];
        let mut bind = abi::VmBind {
            vm: self.vm,
            flags: 0,
            operations: list(&operations),
        };
        // SAFETY: `operations` lives until the call returns.
        unsafe { abi::vm_bind(fd, &mut bind) }?;
        let mut place = abi::BoMmapOffset {
            handle: create.handle,
            ..abi::BoMmapOffset::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::bo_mmap_offset(fd, &mut place) }?;
        let length = usize::try_from(bytes).map_err(|_| nix::Error::ENOMEM)?;
        let mapped = Mapped::new(self.node.0.file(), place.offset, length);
        mapped.map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or(0)))
    }
}

#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) info: abi::GpuInfo,
    flush: Mapped,
}

impl Told {
    pub(crate) fn new(node: &Node) -> Result<Self, nix::Error> {
        let (info, page) = (node.gpu_info()?, gpureplay_format::PAGE_SIZE as usize);
        let flush = Mapped::read_only(node.shared().file(), abi::FLUSH_ID_OFFSET, page);
        let flush =
            flush.map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or(0)))?;
        Ok(Self { info, flush })
    }

    pub(crate) fn register(&self, offset: u32) -> u32 {
        let found = registers(&self.info)
            .into_iter()
            .find(|(register, _)| *register == offset);
        found.map_or(0, |(_, value)| value)
    }

    /// A stream with the latest flush's number begins with another flush.
    pub(crate) fn latest_flush(&self) -> u32 {
        self.flush.read32(0)
    }
}
