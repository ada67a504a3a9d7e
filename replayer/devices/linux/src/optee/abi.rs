// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux's TEE driver, from `include/uapi/linux/tee.h`.

use crate::structures::structures;

pub(crate) const OPTEE: u32 = 1;
pub(crate) const LOGIN_PUBLIC: u32 = 0;

pub(crate) const VALUE_OUTPUT: u64 = 2;
pub(crate) const MEMORY_INPUT: u64 = 5;
pub(crate) const MEMORY_INOUT: u64 = 7;

pub(crate) const PARAMETERS: u32 = 4;

structures! {
    Version: 12, { implementation: u32, its_capabilities: u32, capabilities: u32 }
    Allocate: 16, { size: u64, flags: u32, id: i32 }
    Buffer: 16, { address: u64, length: u64 }
    /// Memory: offset, size, number; or a value.
    Parameter: 32, { kind: u64, a: u64, b: u64, c: u64 }
    Open: 56 + 4 * 32, {
        application: [u8; 16], client: [u8; 16], login: u32, cancel_id: u32, session: u32,
        result: u32, origin: u32, count: u32, parameters: [Parameter; PARAMETERS as usize]
    }
    Invoke: 24 + 4 * 32, {
        command: u32, session: u32, cancel_id: u32, result: u32, origin: u32, count: u32,
        parameters: [Parameter; PARAMETERS as usize]
    }
    Cancel: 8, { cancel_id: u32, session: u32 }
    Close: 4, { session: u32 }
}

nix::ioctl_read!(version, 0xa4, 0, Version);
nix::ioctl_readwrite!(allocate, 0xa4, 1, Allocate);
nix::ioctl_read!(open_session, 0xa4, 2, Buffer);
nix::ioctl_read!(invoke, 0xa4, 3, Buffer);
nix::ioctl_read!(cancel, 0xa4, 4, Cancel);
nix::ioctl_read!(close_session, 0xa4, 5, Close);
