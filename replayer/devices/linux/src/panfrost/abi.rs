// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of DRM and panfrost that a replay makes; `mali_facts` has their arguments.

pub(crate) use mali_facts::panfrost::request::{
    CreateBo, EXPORT_SYNC_FILE, FRAGMENT, GemClose, GetParam, HEAP, MmapBo, NO_EXECUTE, Submit,
    SyncFileInfo, Syncobj, SyncobjFd, SyncobjWait, Version,
};
use mali_facts::panfrost::request::{Request, number};

nix::ioctl_readwrite!(version, Request::DRM, number::VERSION, Version);
nix::ioctl_write_ptr!(close, Request::DRM, number::GEM_CLOSE, GemClose);
nix::ioctl_write_ptr!(submit, Request::DRM, number::SUBMIT, Submit);
nix::ioctl_readwrite!(create, Request::DRM, number::CREATE_BO, CreateBo);
nix::ioctl_readwrite!(map, Request::DRM, number::MMAP_BO, MmapBo);
nix::ioctl_readwrite!(parameter, Request::DRM, number::GET_PARAM, GetParam);
nix::ioctl_readwrite!(create_sync, Request::DRM, number::SYNCOBJ_CREATE, Syncobj);
nix::ioctl_readwrite!(
    export_sync,
    Request::DRM,
    number::SYNCOBJ_HANDLE_TO_FD,
    SyncobjFd
);
nix::ioctl_readwrite!(wait_sync, Request::DRM, number::SYNCOBJ_WAIT, SyncobjWait);
nix::ioctl_readwrite!(
    sync_file_info,
    Request::SYNC_FILE,
    number::SYNC_FILE_INFO,
    SyncFileInfo
);
