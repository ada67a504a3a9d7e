// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of DRM, panfrost and sync files.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Direction, argument's bytes, class, number, as `_IOC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(pub u32);

pub(crate) const IN: u32 = 1;
pub(crate) const OUT: u32 = 2;

impl Request {
    /// DRM and its drivers.
    pub const DRM: u8 = b'd';
    /// kbase.
    pub const KBASE: u8 = 0x80;
    /// Sync files.
    pub const SYNC_FILE: u8 = b'>';

    pub(crate) const fn new<T>(direction: u32, class: u8, number: u8) -> Self {
        let size = size_of::<T>() as u32;
        Self(direction << 30 | size << 16 | (class as u32) << 8 | number as u32)
    }

    /// Alike for all argument sizes.
    pub const fn number(self) -> u8 {
        self.0 as u8
    }

    /// Class of the request.
    pub const fn class(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Bytes of the argument, perhaps an older or newer one.
    pub const fn size(self) -> usize {
        (self.0 >> 16 & 0x3fff) as usize
    }

    /// Request for an argument of at most 16,383 bytes.
    #[must_use]
    pub const fn of_size(self, bytes: usize) -> Self {
        const BITS: u32 = 0x3fff;
        Self(self.0 & !(BITS << 16) | (bytes as u32 & BITS) << 16)
    }

    /// The driver reads the argument.
    pub const fn is_read(self) -> bool {
        self.0 >> 30 & IN != 0
    }

    /// The driver writes the argument.
    pub const fn is_written(self) -> bool {
        self.0 >> 30 & OUT != 0
    }
}

/// By number, direction, argument; requests and numbers share names.
macro_rules! requests {
    ($($class:ident { $($(#[$doc:meta])* $name:ident = $number:literal, $direction:expr, $argument:ty;)+ })+) => {
        $($($(#[$doc])* pub const $name: Request = Request::new::<$argument>($direction, Request::$class, $number);)+)+

        /// Numbers of requests in their classes.
        pub mod number {
            $($($(#[$doc])* pub const $name: u8 = $number;)+)+
        }
    };
}
pub(crate) use requests;

requests! {
    DRM {
        /// The driver's.
        VERSION = 0x00, IN | OUT, Version;
        /// A name of the bus.
        GET_UNIQUE = 0x01, IN | OUT, Unique;
        /// Closes an object.
        GEM_CLOSE = 0x09, IN, GemClose;
        /// What the driver can do.
        GET_CAP = 0x0c, IN | OUT, Capability;
        /// A file for an object.
        PRIME_HANDLE_TO_FD = 0x2d, IN | OUT, Prime;
        /// An object of a file.
        PRIME_FD_TO_HANDLE = 0x2e, IN | OUT, Prime;
        /// Creates a sync object.
        SYNCOBJ_CREATE = 0xbf, IN | OUT, Syncobj;
        /// Destroys a sync object.
        SYNCOBJ_DESTROY = 0xc0, IN | OUT, Syncobj;
        /// Of a sync object, or its fence.
        SYNCOBJ_HANDLE_TO_FD = 0xc1, IN | OUT, SyncobjFd;
        /// Of a file.
        SYNCOBJ_FD_TO_HANDLE = 0xc2, IN | OUT, SyncobjFd;
        /// Waits for sync objects.
        SYNCOBJ_WAIT = 0xc3, IN | OUT, SyncobjWait;
        /// Removes fences.
        SYNCOBJ_RESET = 0xc4, IN | OUT, SyncobjArray;
        /// Sets ended fences.
        SYNCOBJ_SIGNAL = 0xc5, IN | OUT, SyncobjArray;
        /// For points of time lines.
        SYNCOBJ_TIMELINE_WAIT = 0xca, IN | OUT, SyncobjTimelineWait;
        /// Time lines' last points.
        SYNCOBJ_QUERY = 0xcb, IN | OUT, SyncobjTimelineArray;
        /// Copies a fence.
        SYNCOBJ_TRANSFER = 0xcc, IN | OUT, SyncobjTransfer;
        /// Gives time lines ended points.
        SYNCOBJ_TIMELINE_SIGNAL = 0xcd, IN | OUT, SyncobjTimelineArray;
        /// Submits a job chain.
        SUBMIT = 0x40, IN, Submit;
        /// For an object's jobs.
        WAIT_BO = 0x41, IN, WaitBo;
        /// Creates an object.
        CREATE_BO = 0x42, IN | OUT, CreateBo;
        /// An object's file offset.
        MMAP_BO = 0x43, IN | OUT, MmapBo;
        /// A parameter of the GPU.
        GET_PARAM = 0x44, IN | OUT, GetParam;
        /// An object's GPU address.
        GET_BO_OFFSET = 0x45, IN | OUT, GetBoOffset;
        /// Enables counters.
        PERFCNT_ENABLE = 0x46, IN, [u32; 2];
        /// Reads counters.
        PERFCNT_DUMP = 0x47, IN, u64;
        /// Whether pages may be taken.
        MADVISE = 0x48, IN | OUT, Madvise;
        /// For the processor's cache (panfrost 1.6).
        SYNC_BO = 0x4c, IN | OUT, SyncBo;
    }
    SYNC_FILE {
        /// Merges two files.
        SYNC_MERGE = 3, IN | OUT, SyncMerge;
        /// States of a file's fences.
        SYNC_FILE_INFO = 4, IN | OUT, SyncFileInfo;
    }
}

/// [`CreateBo::flags`]: the GPU may not execute it.
pub const NO_EXECUTE: u32 = 1;
/// [`CreateBo::flags`]: 2 MiB on each GPU access; user space cannot map it.
pub const HEAP: u32 = 2;
/// [`CreateBo::flags`]: through the processor's cache (panfrost 1.6).
pub const CACHED_MAPPING: u32 = 4;
/// [`Submit::requirements`]: slot 0; all others slot 1.
pub const FRAGMENT: u32 = 1;
/// [`Submit::requirements`]: reads the cycle counter.
pub const CYCLE_COUNT: u32 = 2;
/// [`Madvise::advice`]: the pages are needed.
pub const WILL_NEED: u32 = 0;
/// [`SyncobjWait::flags`]: for all of them.
pub const WAIT_ALL: u32 = 1;
/// [`SyncobjFd::flags`]: as a sync file.
pub const EXPORT_SYNC_FILE: u32 = 1;
/// [`SyncOperation::kind`]: of the processor's cache.
pub const FLUSH_AND_INVALIDATE: u32 = 1;

/// `Name { field: type, … }`, all numbers.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
        #[repr(C)]
        #[allow(missing_docs, reason = "fields are named as in the kernel's headers")]
        pub struct $name { $($(#[$field_meta])* pub $field: $kind),* }

        impl Default for $name {
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    )*};
}
pub(crate) use arguments;

arguments! {
    /// `drm_version`; texts are pointers, lengths `__kernel_size_t`.
    Version {
        major: i32, minor: i32, patch: i32, #[cfg(target_pointer_width = "64")] pad: u32,
        name_length: usize, name: usize, date_length: usize, date: usize, text_length: usize, text: usize,
    }
    /// `drm_unique`
    Unique { length: usize, text: usize }
    /// `drm_get_cap`
    Capability { which: u64, value: u64 }
    /// `drm_gem_close`
    GemClose { handle: u32, pad: u32 }
    /// `drm_prime_handle`
    Prime { handle: u32, flags: u32, fd: i32 }
    /// `drm_syncobj_create`, `drm_syncobj_destroy`
    Syncobj { handle: u32, flags: u32 }
    /// `drm_syncobj_handle`, without points.
    SyncobjFd { handle: u32, flags: u32, fd: i32, pad: u32 }
    /// `drm_syncobj_wait`, before deadlines. Monotonic clock.
    SyncobjWait { handles: u64, timeout_ns: i64, count: u32, flags: u32, first: u32, pad: u32 }
    /// `drm_syncobj_array`
    SyncobjArray { handles: u64, count: u32, pad: u32 }
    /// `drm_syncobj_timeline_wait`, before deadlines.
    SyncobjTimelineWait { handles: u64, points: u64, timeout_ns: i64, count: u32, flags: u32, first: u32, pad: u32 }
    /// `drm_syncobj_timeline_array`
    SyncobjTimelineArray { handles: u64, points: u64, count: u32, flags: u32 }
    /// `drm_syncobj_transfer`
    SyncobjTransfer { source: u32, target: u32, source_point: u64, target_point: u64, flags: u32, pad: u32 }
    /// `drm_panfrost_submit`, up to Linux 7.2.
    Submit { head: u64, in_syncs: u64, in_sync_count: u32, out_sync: u32, handles: u64, handle_count: u32, requirements: u32 }
    /// `drm_panfrost_wait_bo`
    WaitBo { handle: u32, pad: u32, timeout_ns: i64 }
    /// `drm_panfrost_create_bo`
    CreateBo { size: u32, flags: u32, handle: u32, pad: u32, va: u64 }
    /// `drm_panfrost_mmap_bo`
    MmapBo { handle: u32, flags: u32, offset: u64 }
    /// `drm_panfrost_get_param`
    GetParam { parameter: u32, pad: u32, value: u64 }
    /// `drm_panfrost_get_bo_offset`
    GetBoOffset { handle: u32, pad: u32, va: u64 }
    /// `drm_panfrost_madvise`
    Madvise { handle: u32, advice: u32, retained: u32 }
    /// `drm_panfrost_sync_bo`
    SyncBo { operations: u64, count: u32, pad: u32 }
    /// `drm_panfrost_bo_sync_op`
    SyncOperation { handle: u32, kind: u32, offset: u32, size: u32 }
    /// `sync_merge_data`
    SyncMerge { name: [u8; 32], fd: i32, fence: i32, flags: u32, pad: u32 }
    /// `sync_file_info`; 1 ended, 0 not, less is an error.
    SyncFileInfo { name: [u8; 32], status: i32, flags: u32, fences: u32, pad: u32, list: u64 }
    /// `sync_fence_info`
    SyncFenceInfo { object: [u8; 32], driver: [u8; 32], status: i32, flags: u32, timestamp: u64 }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Numbers from a C compiler, of Linux 6.12.
    #[test]
    fn requests_are_the_kernels() {
        for (request, number) in [
            (VERSION, 0xc040_6400),
            (GET_UNIQUE, 0xc010_6401),
            (GEM_CLOSE, 0x4008_6409),
            (GET_CAP, 0xc010_640c),
            (PRIME_HANDLE_TO_FD, 0xc00c_642d),
            (PRIME_FD_TO_HANDLE, 0xc00c_642e),
            (SYNCOBJ_CREATE, 0xc008_64bf),
            (SYNCOBJ_HANDLE_TO_FD, 0xc010_64c1),
            (SYNCOBJ_RESET, 0xc010_64c4),
            (SYNCOBJ_TIMELINE_WAIT, 0xc028_64ca),
            (SYNCOBJ_QUERY, 0xc018_64cb),
            (SYNCOBJ_TRANSFER, 0xc020_64cc),
            (SYNCOBJ_TIMELINE_SIGNAL, 0xc018_64cd),
            (SUBMIT, 0x4028_6440),
            (WAIT_BO, 0x4010_6441),
            (CREATE_BO, 0xc018_6442),
            (MMAP_BO, 0xc010_6443),
            (GET_PARAM, 0xc010_6444),
            (GET_BO_OFFSET, 0xc010_6445),
            (MADVISE, 0xc00c_6448),
            (SYNC_MERGE, 0xc030_3e03),
            (SYNC_FILE_INFO, 0xc038_3e04),
        ] {
            assert_eq!(request, Request(number), "{request:x?}");
        }
        assert_eq!(SUBMIT.number(), number::SUBMIT);
        assert_eq!(SUBMIT.of_size(64), Request(0x4040_6440));
        assert!(SUBMIT.is_read() && !SUBMIT.is_written());
        assert_eq!(SYNC_FILE_INFO.class(), Request::SYNC_FILE);
    }
}
