// SPDX-License-Identifier: MIT OR Apache-2.0
//! panfrost's requests; arguments are in `mali_uapi`.

pub(crate) use mali_uapi::panfrost::request::{
    CreateBo, FRAGMENT, GetParam, HEAP, MmapBo, NO_EXECUTE, Submit,
};
use mali_uapi::panfrost::request::{Request, number};

nix::ioctl_write_ptr!(submit, Request::DRM, number::SUBMIT, Submit);
nix::ioctl_readwrite!(create, Request::DRM, number::CREATE_BO, CreateBo);
nix::ioctl_readwrite!(map, Request::DRM, number::MMAP_BO, MmapBo);
nix::ioctl_readwrite!(parameter, Request::DRM, number::GET_PARAM, GetParam);
