// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of DRM, panfrost and sync files, and their arguments (Linux: `drm.h`, `panfrost_drm.h`, `sync_file.h`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A request of `ioctl`: number, class, size of the argument, direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(pub(crate) u32);

impl Request {
    /// Requests of DRM and its drivers.
    pub(crate) const DRM: u8 = b'd';
    /// Requests of sync files.
    pub(crate) const SYNC_FILE: u8 = b'>';

    pub(crate) const fn number(self) -> u8 {
        self.0 as u8
    }

    pub(crate) const fn class(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Bytes of the argument as the app knows it, which may be an older or a newer one.
    pub(crate) const fn size(self) -> usize {
        (self.0 >> 16 & 0x3fff) as usize
    }

    /// The driver reads the argument.
    pub(crate) const fn is_read(self) -> bool {
        self.0 >> 30 & 1 != 0
    }

    /// The driver writes the argument.
    pub(crate) const fn is_written(self) -> bool {
        self.0 >> 31 & 1 != 0
    }
}

/// Declares arguments: `Name { field: type, … }`, all numbers.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $kind),* }
    )*};
}

arguments! {
    /// VERSION.
    Version {
        major: i32, minor: i32, patch: i32, pad: u32,
        name_length: u64, name: u64, date_length: u64, date: u64, text_length: u64, text: u64,
    }
    /// GET_UNIQUE.
    Unique { length: u64, text: u64 }
    /// GET_CAP, SET_CLIENT_CAP.
    Capability { which: u64, value: u64 }
    /// GEM_CLOSE.
    GemClose { handle: u32, pad: u32 }
    /// PRIME_HANDLE_TO_FD, PRIME_FD_TO_HANDLE.
    Prime { handle: u32, flags: u32, fd: i32 }
    /// SUBMIT.
    Submit {
        chain: u64, in_syncs: u64, in_sync_count: u32, out_sync: u32, handles: u64, handle_count: u32, requirements: u32,
    }
    /// WAIT_BO.
    WaitBo { handle: u32, pad: u32, timeout: i64 }
    /// CREATE_BO.
    CreateBo { size: u32, flags: u32, handle: u32, pad: u32, offset: u64 }
    /// MMAP_BO.
    MmapBo { handle: u32, flags: u32, offset: u64 }
    /// GET_PARAM.
    GetParam { parameter: u32, pad: u32, value: u64 }
    /// GET_BO_OFFSET.
    GetBoOffset { handle: u32, pad: u32, offset: u64 }
    /// MADVISE.
    Madvise { handle: u32, advice: u32, retained: u32 }
    /// SYNCOBJ_CREATE, SYNCOBJ_DESTROY.
    Syncobj { handle: u32, flags: u32 }
    /// SYNCOBJ_HANDLE_TO_FD, SYNCOBJ_FD_TO_HANDLE.
    SyncobjFd { handle: u32, flags: u32, fd: i32, pad: u32 }
    /// SYNCOBJ_WAIT.
    SyncobjWait { handles: u64, timeout: i64, count: u32, flags: u32, first: u32, pad: u32, deadline: u64 }
    /// SYNCOBJ_RESET, SYNCOBJ_SIGNAL.
    SyncobjArray { handles: u64, count: u32, pad: u32 }
    /// SYNC_IOC_MERGE.
    SyncMerge { name: [u8; 32], fd: i32, fence: i32, flags: u32, pad: u32 }
    /// SYNC_IOC_FILE_INFO.
    SyncFileInfo { name: [u8; 32], status: i32, flags: u32, fences: u32, pad: u32, info: u64 }
    /// A fence of SYNC_IOC_FILE_INFO.
    SyncFenceInfo { object: [u8; 32], driver: [u8; 32], status: i32, flags: u32, timestamp: u64 }
}

/// Numbers of DRM's requests.
pub(crate) mod drm {
    pub(crate) const VERSION: u8 = 0x00;
    pub(crate) const GET_UNIQUE: u8 = 0x01;
    pub(crate) const GEM_CLOSE: u8 = 0x09;
    pub(crate) const GET_CAP: u8 = 0x0c;
    pub(crate) const PRIME_HANDLE_TO_FD: u8 = 0x2d;
    pub(crate) const PRIME_FD_TO_HANDLE: u8 = 0x2e;
    pub(crate) const SYNCOBJ_CREATE: u8 = 0xbf;
    pub(crate) const SYNCOBJ_DESTROY: u8 = 0xc0;
    pub(crate) const SYNCOBJ_HANDLE_TO_FD: u8 = 0xc1;
    pub(crate) const SYNCOBJ_FD_TO_HANDLE: u8 = 0xc2;
    pub(crate) const SYNCOBJ_WAIT: u8 = 0xc3;
    pub(crate) const SYNCOBJ_RESET: u8 = 0xc4;
    pub(crate) const SYNCOBJ_SIGNAL: u8 = 0xc5;
    /// The requests of timelines, which panfrost does not have.
    pub(crate) const SYNCOBJ_TIMELINES: std::ops::RangeInclusive<u8> = 0xca..=0xcd;
}

/// Numbers of panfrost's requests.
pub(crate) mod panfrost {
    pub(crate) const SUBMIT: u8 = 0x40;
    pub(crate) const WAIT_BO: u8 = 0x41;
    pub(crate) const CREATE_BO: u8 = 0x42;
    pub(crate) const MMAP_BO: u8 = 0x43;
    pub(crate) const GET_PARAM: u8 = 0x44;
    pub(crate) const GET_BO_OFFSET: u8 = 0x45;
    pub(crate) const PERFCNT_ENABLE: u8 = 0x46;
    pub(crate) const PERFCNT_DUMP: u8 = 0x47;
    pub(crate) const MADVISE: u8 = 0x48;

    /// CREATE_BO: the GPU may not execute it.
    pub(crate) const NO_EXECUTE: u32 = 1;
    /// CREATE_BO: it grows when the tiler needs it.
    pub(crate) const HEAP: u32 = 2;
    /// SUBMIT: a fragment chain.
    pub(crate) const FRAGMENT: u32 = 1;
    /// SUBMIT: the chain reads the cycle counter.
    pub(crate) const CYCLE_COUNT: u32 = 2;
}

/// Numbers of the requests of sync files.
pub(crate) mod sync_file {
    pub(crate) const MERGE: u8 = 3;
    pub(crate) const FILE_INFO: u8 = 4;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests as libdrm and Mesa make them.
    #[test]
    fn sizes_are_the_kernels() {
        for (request, size) in [
            (0xc040_6400, size_of::<Version>()),
            (0xc010_6401, size_of::<Unique>()),
            (0x4008_6409, size_of::<GemClose>()),
            (0xc010_640c, size_of::<Capability>()),
            (0xc00c_642d, size_of::<Prime>()),
            (0x4028_6440, size_of::<Submit>()),
            (0x4010_6441, size_of::<WaitBo>()),
            (0xc018_6442, size_of::<CreateBo>()),
            (0xc010_6443, size_of::<MmapBo>()),
            (0xc010_6444, size_of::<GetParam>()),
            (0xc010_6445, size_of::<GetBoOffset>()),
            (0xc00c_6448, size_of::<Madvise>()),
            (0xc008_64bf, size_of::<Syncobj>()),
            (0xc010_64c1, size_of::<SyncobjFd>()),
            (0xc028_64c3, size_of::<SyncobjWait>()),
            (0xc010_64c4, size_of::<SyncobjArray>()),
            (0xc030_3e03, size_of::<SyncMerge>()),
            (0xc038_3e04, size_of::<SyncFileInfo>()),
        ] {
            assert_eq!(Request(request).size(), size, "{request:#x}");
        }
        let submit = Request(0x4028_6440);
        assert_eq!((submit.class(), submit.number()), (Request::DRM, 0x40));
        assert!(submit.is_read() && !submit.is_written());
    }
}
