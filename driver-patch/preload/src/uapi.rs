// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of the kernel's interface (`drm.h`, `panfrost_drm.h`, `sync_file.h`) that a recorder follows or makes.

/// A request's parts, as `_IOC` puts them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(pub(crate) u32);

const READ: u32 = 2;
const WRITE: u32 = 1;

impl Request {
    const fn new(direction: u32, kind: u8, number: u8, size: usize) -> Self {
        Request(direction << 30 | (size as u32) << 16 | (kind as u32) << 8 | number as u32)
    }

    const fn drm<T>(direction: u32, number: u8) -> Self {
        Self::new(direction, b'd', number, size_of::<T>())
    }

    /// Whether it is one of DRM.
    pub(crate) const fn is_drm(self) -> bool {
        self.0 >> 8 & 0xff == b'd' as u32
    }

    /// Its number in DRM. Structures grow from kernel to kernel, and the rest of the request with them.
    pub(crate) const fn number(self) -> u8 {
        self.0 as u8
    }

    /// Bytes of its argument.
    pub(crate) const fn size(self) -> usize {
        (self.0 >> 16 & 0x3fff) as usize
    }
}

/// First of the numbers that belong to the driver.
const DRIVER: u8 = 0x40;

pub(crate) const VERSION: Request = Request::drm::<Version>(READ | WRITE, 0x00);
pub(crate) const GEM_CLOSE: Request = Request::drm::<GemClose>(WRITE, 0x09);
pub(crate) const HANDLE_TO_FD: Request = Request::drm::<Prime>(READ | WRITE, 0x2d);
pub(crate) const FD_TO_HANDLE: Request = Request::drm::<Prime>(READ | WRITE, 0x2e);
pub(crate) const SYNCOBJ_CREATE: Request = Request::drm::<SyncCreate>(READ | WRITE, 0xbf);
pub(crate) const SYNCOBJ_TO_FD: Request = Request::drm::<SyncToFd>(READ | WRITE, 0xc1);
pub(crate) const SYNCOBJ_WAIT: Request = Request::drm::<SyncWait>(READ | WRITE, 0xc3);
pub(crate) const SUBMIT: Request = Request::drm::<Submit>(WRITE, DRIVER);
pub(crate) const CREATE_BO: Request = Request::drm::<CreateBo>(READ | WRITE, DRIVER + 2);
pub(crate) const MMAP_BO: Request = Request::drm::<MmapBo>(READ | WRITE, DRIVER + 3);
pub(crate) const GET_PARAM: Request = Request::drm::<GetParam>(READ | WRITE, DRIVER + 4);
pub(crate) const GET_BO_OFFSET: Request = Request::drm::<GetBoOffset>(READ | WRITE, DRIVER + 5);
pub(crate) const MADVISE: Request = Request::drm::<Madvise>(READ | WRITE, DRIVER + 8);
pub(crate) const SYNC_BO: Request = Request::drm::<SyncBo>(READ | WRITE, DRIVER + 12);
pub(crate) const SYNC_FILE_INFO: Request =
    Request::new(READ | WRITE, b'>', 4, size_of::<SyncFileInfo>());

/// `DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL`
pub(crate) const WAIT_ALL: u32 = 1;
/// `DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE`
pub(crate) const EXPORT_SYNC_FILE: u32 = 1;
/// `PANFROST_JD_REQ_FS`: a job for slot 0.
pub(crate) const FRAGMENT: u32 = 1;
/// `PANFROST_BO_NOEXEC`
pub(crate) const NOEXEC: u32 = 1;
/// `PANFROST_BO_HEAP`: memory that the driver adds when a job needs it, which user space cannot map.
pub(crate) const HEAP: u32 = 2;
/// `PANFROST_BO_WB_MMAP`, panfrost 1.6: mapped through the processor's cache.
pub(crate) const WB_MMAP: u32 = 4;
/// `PANFROST_MADV_WILLNEED`
pub(crate) const WILLNEED: u32 = 0;
/// `PANFROST_BO_SYNC_CPU_CACHE_FLUSH_AND_INVALIDATE`
pub(crate) const FLUSH_AND_INVALIDATE: u32 = 1;

macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub(crate) struct $name { $(pub(crate) $field: $type),+ }
        )+
    };
}

structures! {
    /// `drm_version`; texts are pointers.
    Version { major: i32, minor: i32, patch: i32, name_length: usize, name: usize, date_length: usize, date: usize, text_length: usize, text: usize }
    /// `drm_gem_close`
    GemClose { handle: u32, pad: u32 }
    /// `drm_prime_handle`
    Prime { handle: u32, flags: u32, fd: i32 }
    /// `drm_syncobj_create`
    SyncCreate { handle: u32, flags: u32 }
    /// `drm_syncobj_handle`
    SyncToFd { handle: u32, flags: u32, fd: i32, pad: u32 }
    /// `drm_syncobj_wait`
    SyncWait { handles: u64, timeout_ns: i64, count: u32, flags: u32, first: u32, pad: u32 }
    /// `drm_panfrost_submit` up to Linux 7.2; later ones are longer.
    Submit { head: u64, in_syncs: u64, in_sync_count: u32, out_sync: u32, handles: u64, handle_count: u32, requirements: u32 }
    /// `drm_panfrost_create_bo`
    CreateBo { size: u32, flags: u32, handle: u32, pad: u32, va: u64 }
    /// `drm_panfrost_mmap_bo`
    MmapBo { handle: u32, flags: u32, offset: u64 }
    /// `drm_panfrost_get_param`
    GetParam { param: u32, pad: u32, value: u64 }
    /// `drm_panfrost_get_bo_offset`
    GetBoOffset { handle: u32, pad: u32, va: u64 }
    /// `drm_panfrost_madvise`
    Madvise { handle: u32, advice: u32, retained: u32 }
    /// `drm_panfrost_sync_bo`
    SyncBo { operations: u64, count: u32, pad: u32 }
    /// `drm_panfrost_bo_sync_op`
    SyncOperation { handle: u32, kind: u32, offset: u32, size: u32 }
    /// `sync_file_info`
    SyncFileInfo { name: [u8; 32], status: i32, flags: u32, fences: u32, pad: u32, list: u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as a C compiler computes them from the headers of Linux 6.12.
    #[test]
    fn requests_are_the_kernels() {
        assert_eq!(VERSION, Request(0xc040_6400));
        assert_eq!(GEM_CLOSE, Request(0x4008_6409));
        assert_eq!(HANDLE_TO_FD, Request(0xc00c_642d));
        assert_eq!(FD_TO_HANDLE, Request(0xc00c_642e));
        assert_eq!(SYNCOBJ_CREATE, Request(0xc008_64bf));
        assert_eq!(SYNCOBJ_TO_FD, Request(0xc010_64c1));
        assert_eq!(SUBMIT, Request(0x4028_6440));
        assert_eq!(CREATE_BO, Request(0xc018_6442));
        assert_eq!(MMAP_BO, Request(0xc010_6443));
        assert_eq!(GET_PARAM, Request(0xc010_6444));
        assert_eq!(GET_BO_OFFSET, Request(0xc010_6445));
        assert_eq!(MADVISE, Request(0xc00c_6448));
        assert_eq!(SYNC_FILE_INFO, Request(0xc038_3e04));
        assert!(SUBMIT.is_drm() && !SYNC_FILE_INFO.is_drm());
    }
}
