// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ioctls of DRM, its sync objects and panfrost that a replay needs, as `drm.h`, `sync_file.h` and `panfrost_drm.h` of Linux define them.

/// Object flag: the GPU may not execute it.
pub(crate) const NO_EXECUTE: u32 = 1;
/// Object flag: pages come when the GPU touches them. Such objects are whole pieces of 2 MiB, and not executable.
pub(crate) const HEAP: u32 = 2;
/// Requirement of a job: slot 0, for fragments. All others run on slot 1.
pub(crate) const FRAGMENT: u32 = 1;
/// Flag of an export: a file for the fence in the sync object.
pub(crate) const SYNC_FILE: u32 = 1;

/// `struct drm_version`; lengths are of type `__kernel_size_t`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Version {
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) patch: i32,
    pub(crate) name_length: usize,
    pub(crate) name: usize,
    pub(crate) date_length: usize,
    pub(crate) date: usize,
    pub(crate) description_length: usize,
    pub(crate) description: usize,
}

/// `struct drm_gem_close`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Close {
    pub(crate) handle: u32,
    pub(crate) reserved: u32,
}

/// `struct drm_panfrost_submit`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Submit {
    pub(crate) head: u64,
    pub(crate) in_syncs: u64,
    pub(crate) in_sync_count: u32,
    pub(crate) out_sync: u32,
    pub(crate) objects: u64,
    pub(crate) object_count: u32,
    pub(crate) requirements: u32,
}

/// `struct drm_panfrost_create_bo`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Create {
    pub(crate) bytes: u32,
    pub(crate) flags: u32,
    pub(crate) handle: u32,
    pub(crate) reserved: u32,
    pub(crate) va: u64,
}

/// `struct drm_panfrost_mmap_bo`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Map {
    pub(crate) handle: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
}

/// `struct drm_panfrost_get_param`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Parameter {
    pub(crate) number: u32,
    pub(crate) reserved: u32,
    pub(crate) value: u64,
}

/// `struct drm_syncobj_create`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct CreateSync {
    pub(crate) handle: u32,
    pub(crate) flags: u32,
}

/// `struct drm_syncobj_handle`, as it was before it could name a point of a time line.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ExportSync {
    pub(crate) handle: u32,
    pub(crate) flags: u32,
    pub(crate) file: i32,
    pub(crate) reserved: u32,
}

/// `struct drm_syncobj_wait`, as it was before it had a deadline.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct WaitSync {
    pub(crate) handles: u64,
    /// On the monotonic clock.
    pub(crate) until_ns: i64,
    pub(crate) count: u32,
    pub(crate) flags: u32,
    pub(crate) first_signalled: u32,
    pub(crate) reserved: u32,
}

/// `struct sync_file_info`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct SyncFileInfo {
    pub(crate) name: [u8; 32],
    /// 1: ended; 0: not yet; negative: an error.
    pub(crate) status: i32,
    pub(crate) flags: u32,
    pub(crate) fences: u32,
    pub(crate) reserved: u32,
    pub(crate) list: u64,
}

const _: () = {
    assert!(size_of::<Close>() == 8);
    assert!(size_of::<Submit>() == 40);
    assert!(size_of::<Create>() == 24);
    assert!(size_of::<Map>() == 16);
    assert!(size_of::<Parameter>() == 16);
    assert!(size_of::<CreateSync>() == 8);
    assert!(size_of::<ExportSync>() == 16);
    assert!(size_of::<WaitSync>() == 32);
    assert!(size_of::<SyncFileInfo>() == 56);
};

nix::ioctl_readwrite!(version, b'd', 0x00, Version);
nix::ioctl_write_ptr!(close, b'd', 0x09, Close);
nix::ioctl_write_ptr!(submit, b'd', 0x40, Submit);
nix::ioctl_readwrite!(create, b'd', 0x42, Create);
nix::ioctl_readwrite!(map, b'd', 0x43, Map);
nix::ioctl_readwrite!(parameter, b'd', 0x44, Parameter);
nix::ioctl_readwrite!(create_sync, b'd', 0xbf, CreateSync);
nix::ioctl_readwrite!(export_sync, b'd', 0xc1, ExportSync);
nix::ioctl_readwrite!(wait_sync, b'd', 0xc3, WaitSync);
nix::ioctl_readwrite!(sync_file_info, b'>', 4, SyncFileInfo);
