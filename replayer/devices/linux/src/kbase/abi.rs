// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests to kbase, as functions.

pub(crate) use mali_uapi::kbase::request::{
    Allocate, Atom, Buffer, Event, MAJOR, NEWEST, SetFlags, Submit, TRACKING_PAGE, Version, event,
    flags, number, requirement,
};
use mali_uapi::panfrost::request::Request;

nix::ioctl_readwrite!(
    check_version,
    Request::KBASE,
    number::VERSION_CHECK,
    Version
);
nix::ioctl_write_ptr!(set_flags, Request::KBASE, number::SET_FLAGS, SetFlags);
nix::ioctl_write_ptr!(submit, Request::KBASE, number::JOB_SUBMIT, Submit);
nix::ioctl_readwrite!(allocate, Request::KBASE, number::MEM_ALLOC, Allocate);
nix::ioctl_write_ptr!(properties, Request::KBASE, number::GET_GPUPROPS, Buffer);
nix::ioctl_write_ptr!(release, Request::KBASE, number::GET_DDK_VERSION, Buffer);
