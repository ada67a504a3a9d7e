// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of Linux's TEE driver, as `include/uapi/linux/tee.h` defines it.

/// Number of OP-TEE among the implementations.
pub(crate) const OPTEE: u32 = 1;
/// Anybody may open the session.
pub(crate) const LOGIN_PUBLIC: u32 = 0;

/// Kinds of parameters.
pub(crate) const VALUE_OUTPUT: u64 = 2;
pub(crate) const MEMORY_INPUT: u64 = 5;
pub(crate) const MEMORY_INOUT: u64 = 7;

/// Parameters of a call.
pub(crate) const PARAMETERS: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Version {
    pub(crate) implementation: u32,
    pub(crate) its_capabilities: u32,
    pub(crate) capabilities: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Allocate {
    pub(crate) size: u64,
    pub(crate) flags: u32,
    pub(crate) id: i32,
}

/// Where the argument of a call lies.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) address: u64,
    pub(crate) length: u64,
}

/// One parameter. Of memory: offset, size and number of the shared memory. Of a value: the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Parameter {
    pub(crate) kind: u64,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Open {
    pub(crate) application: [u8; 16],
    pub(crate) client: [u8; 16],
    pub(crate) login: u32,
    pub(crate) cancel_id: u32,
    pub(crate) session: u32,
    pub(crate) result: u32,
    pub(crate) origin: u32,
    pub(crate) count: u32,
    pub(crate) parameters: [Parameter; PARAMETERS as usize],
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Invoke {
    pub(crate) command: u32,
    pub(crate) session: u32,
    pub(crate) cancel_id: u32,
    pub(crate) result: u32,
    pub(crate) origin: u32,
    pub(crate) count: u32,
    pub(crate) parameters: [Parameter; PARAMETERS as usize],
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Cancel {
    pub(crate) cancel_id: u32,
    pub(crate) session: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Close {
    pub(crate) session: u32,
}

const _: () = {
    assert!(size_of::<Version>() == 12);
    assert!(size_of::<Allocate>() == 16);
    assert!(size_of::<Buffer>() == 16);
    assert!(size_of::<Parameter>() == 32);
    assert!(size_of::<Open>() == 56 + 4 * 32);
    assert!(size_of::<Invoke>() == 24 + 4 * 32);
    assert!(size_of::<Cancel>() == 8);
};

nix::ioctl_read!(version, 0xa4, 0, Version);
nix::ioctl_readwrite!(allocate, 0xa4, 1, Allocate);
nix::ioctl_read!(open_session, 0xa4, 2, Buffer);
nix::ioctl_read!(invoke, 0xa4, 3, Buffer);
nix::ioctl_read!(cancel, 0xa4, 4, Cancel);
nix::ioctl_read!(close_session, 0xa4, 5, Close);
