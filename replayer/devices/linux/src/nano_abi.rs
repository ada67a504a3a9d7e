// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nano driver's interface, from `nano-driver/gpureplay_nano.h`.

use crate::structures::structures;

pub(crate) const HAS_BASE: u32 = 1;
pub(crate) const WAIT: u32 = 1;
pub(crate) const COHERENT: u32 = 1;
pub(crate) const TO_GPU: u32 = 1;
pub(crate) const FROM_GPU: u32 = 2;

structures! {
    Info: 72, {
        features: u32, flags: u32, waiting: u32, idle_ms: u32, turn_ms: u32, reserved0: u32,
        pages: u64, free_bytes: u64, reserved: [u64; 4]
    }
    Acquire: 32, { flags: u32, reserved0: u32, reserved: [u64; 3] }
    Map: 32, { va: u64, pages: u64, flags: u32, reserved: u32, mmap_offset: u64 }
    Sync: 24, { va: u64, bytes: u64, direction: u32, reserved: u32 }
    Access: 16, { offset: u32, write: u32, value: u32, reserved: u32 }
    Registers: 16, { list: u64, count: u32, done: u32 }
    /// Result of one `read()`.
    Event: 64, {
        time_ns: u64, fault_address: u64, fault_status: u32, status: [u32; 3], reserved: [u64; 4]
    }
}

nix::ioctl_readwrite!(info, b'G', 0x80, Info);
nix::ioctl_write_ptr!(acquire, b'G', 0x81, Acquire);
nix::ioctl_readwrite!(map, b'G', 0x82, Map);
nix::ioctl_write_ptr!(sync, b'G', 0x84, Sync);
nix::ioctl_readwrite!(registers, b'G', 0x85, Registers);
nix::ioctl_none!(activate, b'G', 0x86);
nix::ioctl_none!(reset, b'G', 0x87);
nix::ioctl_none!(release, b'G', 0x88);
nix::ioctl_none!(yield_gpu, b'G', 0x89);
