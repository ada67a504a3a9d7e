// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a replay needs of kbase's user interface: version 11 of the job-manager driver, r9p0 to r44p1.
//!
//! Numbers and layouts are those of the driver's uapi headers (`mali_kbase_ioctl.h`, `mali_base_jm_kernel.h`); older
//! releases have the same ones in `mali_kbase_ioctl.h` and `mali_base_kernel.h` beside the driver.

/// Major version of the job-manager interface.
pub(crate) const MAJOR: u16 = 11;
/// The highest minor version that the driver's encoding has: it answers with its own.
pub(crate) const NEWEST: u16 = 0xfff;
/// What is mapped at this offset marks the process as the context's owner; releases before r38 insist on it.
pub(crate) const TRACKING_PAGE: i64 = 3 << 12;

/// `BASE_MEM_*`: what a new region is for.
pub(crate) mod flags {
    pub(crate) const CPU_READ: u64 = 1 << 0;
    pub(crate) const CPU_WRITE: u64 = 1 << 1;
    pub(crate) const GPU_READ: u64 = 1 << 2;
    pub(crate) const GPU_WRITE: u64 = 1 << 3;
    pub(crate) const GPU_EXECUTE: u64 = 1 << 4;
    /// CPU and GPU see it at the same address.
    pub(crate) const SAME_VA: u64 = 1 << 13;
}

/// `BASE_JD_REQ_FS`: the chain has fragment jobs.
pub(crate) const REQUIRES_FRAGMENT: u32 = 1 << 0;
/// `BASE_JD_REQ_CS`: the chain has compute jobs.
pub(crate) const REQUIRES_COMPUTE: u32 = 1 << 1;

/// `BASE_JD_EVENT_*`: how an atom ended. Other codes are faults.
pub(crate) mod event {
    pub(crate) const DONE: u32 = 0x1;
    pub(crate) const STOPPED: u32 = 0x3;
    pub(crate) const TERMINATED: u32 = 0x4;
    pub(crate) const JOB_CANCELLED: u32 = 0x4002;
}

/// Exchange of versions.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

/// Flags of a new context.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SetFlags {
    pub(crate) flags: u32,
}

/// A new region: `words` is va_pages, commit_pages, extension, flags on the way in; flags, gpu_va on the way out.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Allocate {
    pub(crate) words: [u64; 4],
}

/// Atoms to run.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Submit {
    pub(crate) atoms: u64,
    pub(crate) count: u32,
    pub(crate) stride: u32,
}

/// Where the GPU's properties, or the release's name, go.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) buffer: u64,
    pub(crate) size: u32,
    pub(crate) zero: u32,
}

/// Another atom that must end before.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Dependency {
    pub(crate) atom: u8,
    pub(crate) kind: u8,
}

/// A job chain. The 48 bytes that all releases take; later fields are for other uses.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Atom {
    pub(crate) chain: u64,
    pub(crate) user_data: [u64; 2],
    pub(crate) resources: u64,
    pub(crate) resource_count: u16,
    pub(crate) jit: [u8; 2],
    pub(crate) dependencies: [Dependency; 2],
    pub(crate) number: u8,
    pub(crate) priority: u8,
    pub(crate) device: u8,
    pub(crate) slot: u8,
    pub(crate) requirements: u32,
}

/// What reading the device gives: an atom has ended.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) code: u32,
    pub(crate) atom: u8,
    pub(crate) padding: [u8; 3],
    pub(crate) user_data: [u64; 2],
}

const _: () = {
    assert!(size_of::<Version>() == 4);
    assert!(size_of::<Allocate>() == 32);
    assert!(size_of::<Submit>() == 16);
    assert!(size_of::<Buffer>() == 16);
    assert!(size_of::<Atom>() == 48);
    assert!(size_of::<Event>() == 24);
};

nix::ioctl_readwrite!(check_version, 0x80, 0, Version);
nix::ioctl_write_ptr!(set_flags, 0x80, 1, SetFlags);
nix::ioctl_write_ptr!(submit, 0x80, 2, Submit);
nix::ioctl_readwrite!(allocate, 0x80, 5, Allocate);
nix::ioctl_write_ptr!(properties, 0x80, 3, Buffer);
nix::ioctl_write_ptr!(release, 0x80, 13, Buffer);
