// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nano driver's interface, as `nano-driver/gpureplay_nano.h` defines it.

/// All that this crate needs of a driver.
pub(crate) const HAS_BASE: u32 = 1;
/// Wait for the turn.
pub(crate) const WAIT: u32 = 1;
/// The GPU snoops CPU caches.
pub(crate) const COHERENT: u32 = 1;
/// Direction of a sync: the CPU wrote, the GPU will read.
pub(crate) const TO_GPU: u32 = 1;
/// Direction of a sync: the GPU wrote, the CPU will read.
pub(crate) const FROM_GPU: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Info {
    pub(crate) features: u32,
    pub(crate) flags: u32,
    pub(crate) waiting: u32,
    pub(crate) idle_ms: u32,
    pub(crate) turn_ms: u32,
    pub(crate) reserved0: u32,
    pub(crate) pages: u64,
    pub(crate) free_bytes: u64,
    pub(crate) reserved: [u64; 4],
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Acquire {
    pub(crate) flags: u32,
    pub(crate) reserved0: u32,
    pub(crate) reserved: [u64; 3],
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Map {
    pub(crate) va: u64,
    pub(crate) pages: u64,
    pub(crate) flags: u32,
    pub(crate) reserved: u32,
    pub(crate) mmap_offset: u64,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Sync {
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    pub(crate) direction: u32,
    pub(crate) reserved: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Access {
    pub(crate) offset: u32,
    pub(crate) write: u32,
    pub(crate) value: u32,
    pub(crate) reserved: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) list: u64,
    pub(crate) count: u32,
    pub(crate) done: u32,
}

/// What one `read()` returns.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) fault_address: u64,
    pub(crate) fault_status: u32,
    pub(crate) status: [u32; 3],
    pub(crate) reserved: [u64; 4],
}

const _: () = {
    assert!(size_of::<Info>() == 72);
    assert!(size_of::<Acquire>() == 32);
    assert!(size_of::<Map>() == 32);
    assert!(size_of::<Sync>() == 24);
    assert!(size_of::<Access>() == 16);
    assert!(size_of::<Registers>() == 16);
    assert!(size_of::<Event>() == 64);
};

nix::ioctl_readwrite!(info, b'G', 0x80, Info);
nix::ioctl_write_ptr!(acquire, b'G', 0x81, Acquire);
nix::ioctl_readwrite!(map, b'G', 0x82, Map);
nix::ioctl_write_ptr!(sync, b'G', 0x84, Sync);
nix::ioctl_readwrite!(registers, b'G', 0x85, Registers);
nix::ioctl_none!(activate, b'G', 0x86);
nix::ioctl_none!(reset, b'G', 0x87);
nix::ioctl_none!(release, b'G', 0x88);
nix::ioctl_none!(yield_gpu, b'G', 0x89);
