// SPDX-License-Identifier: MIT OR Apache-2.0
//! panthor's requests; arguments are in `mali_uapi`.

use mali_uapi::panfrost::request::Request;
pub(crate) use mali_uapi::panthor::{
    BIND_MAP, BoCreate, BoMmapOffset, DevQuery, FLUSH_ID_OFFSET, GROUP_FATAL_FAULT, GpuInfo,
    GroupCreate, GroupDestroy, GroupGetState, GroupSubmit, MAP_NO_EXECUTE, MAP_READ_ONLY,
    ObjectArray, QueueCreate, QueueSubmit, SYNC_SIGNAL, SyncOp, VmBind, VmBindOp, VmCreate, query,
};

/// Numbers count from 0x40 (`DRM_COMMAND_BASE`).
macro_rules! requests {
    ($($name:ident = $number:literal, $argument:ty;)*) => {
        $(nix::ioctl_readwrite!($name, Request::DRM, 0x40 + $number, $argument);)*
    };
}

requests! {
    dev_query = 0, DevQuery;
    vm_create = 1, VmCreate;
    vm_bind = 3, VmBind;
    bo_create = 5, BoCreate;
    bo_mmap_offset = 6, BoMmapOffset;
    group_create = 7, GroupCreate;
    group_destroy = 8, GroupDestroy;
    group_submit = 9, GroupSubmit;
    group_get_state = 10, GroupGetState;
}
