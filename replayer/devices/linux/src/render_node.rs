// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DRM render node.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mali_uapi::panfrost::request::{
    EXPORT_SYNC_FILE, GemClose, Request, SyncFileInfo, Syncobj, SyncobjFd, SyncobjWait, Version,
    number,
};
use nix::time::{ClockId, clock_gettime};

use crate::error::OpenError;
use crate::stock::Ended;
use crate::way_in;

nix::ioctl_readwrite!(version, Request::DRM, number::VERSION, Version);
nix::ioctl_write_ptr!(close, Request::DRM, number::GEM_CLOSE, GemClose);
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

const FIRST: &str = "dev/dri/renderD128";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    pub(crate) name: &'static str,
    /// Of major version 1.
    pub(crate) oldest_minor: i32,
}

impl Driver {
    /// Opens nothing: that would wake other GPUs. Without any node in sysfs, tries the first, maybe the model's.
    pub(crate) fn find(self, root: &Path) -> Result<PathBuf, OpenError> {
        let entries = fs::read_dir(root.join("sys/class/drm"));
        let mut nodes: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with("renderD"))
            })
            .collect();
        nodes.sort();
        let first = root.join(FIRST);
        if nodes.is_empty() && File::open(&first).is_ok() {
            return Ok(first);
        }
        let ours = |node: &&PathBuf| {
            let driver = fs::canonicalize(node.join("device/driver"));
            driver.is_ok_and(|driver| driver.file_name().is_some_and(|name| name == self.name))
        };
        let found = nodes.iter().find(ours).and_then(|node| node.file_name());
        found
            .map(|name| root.join("dev/dri").join(name))
            .ok_or(OpenError::NoRenderNode(self.name))
    }

    pub(crate) fn open(self, path: &Path) -> Result<RenderNode, OpenError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(nix::libc::EACCES | nix::libc::EPERM) => OpenError::Permission {
                path: path.to_owned(),
                cure: way_in::to_render_node(path),
            },
            Some(nix::libc::ENOENT | nix::libc::ENODEV | nix::libc::ENXIO) => {
                OpenError::NoRenderNode(self.name)
            }
            _ => OpenError::Io {
                what: path.display().to_string(),
                error,
            },
        })?;
        let failed = |what: &'static str| {
            move |errno: nix::Error| OpenError::Io {
                what: format!("{}: {what}", path.display()),
                error: errno.into(),
            }
        };
        let mut name = [0u8; 32];
        let mut found = Version {
            name_length: name.len(),
            name: name.as_mut_ptr() as usize,
            ..Version::default()
        };
        // SAFETY: `name` has the length that the argument says and lives until the call returns.
        unsafe { version(file.as_raw_fd(), &mut found) }
            .map_err(failed("version of the driver"))?;
        let name = name.get(..found.name_length).unwrap_or_default();
        if name != self.name.as_bytes() || found.major != 1 || found.minor < self.oldest_minor {
            return Err(OpenError::OtherDriver {
                wanted: format!("{} 1.{} or a newer 1.x", self.name, self.oldest_minor),
                path: path.to_owned(),
                found: format!(
                    "{} {}.{}",
                    String::from_utf8_lossy(name),
                    found.major,
                    found.minor
                ),
            });
        }
        let mut made = Syncobj::default();
        // SAFETY: the argument has the request's size.
        unsafe { create_sync(file.as_raw_fd(), &mut made) }.map_err(failed("sync object"))?;
        Ok(RenderNode {
            file,
            sync: made.handle,
        })
    }
}

#[derive(Debug)]
pub(crate) struct RenderNode {
    file: File,
    sync: u32,
}

impl RenderNode {
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn sync(&self) -> u32 {
        self.sync
    }

    /// Jobs keep the objects that they use.
    pub(crate) fn close(&self, handle: u32) -> Result<(), nix::Error> {
        let argument = GemClose { handle, pad: 0 };
        // SAFETY: plain data in, nothing out.
        unsafe { close(self.file.as_raw_fd(), &argument) }.map(drop)
    }

    pub(crate) fn wait(&self, time: Duration) -> Result<Ended, nix::Error> {
        let until = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?) + time;
        let mut wait = SyncobjWait {
            handles: (&raw const self.sync) as u64,
            timeout_ns: until.as_nanos().try_into().unwrap_or(i64::MAX),
            count: 1,
            ..SyncobjWait::default()
        };
        loop {
            // SAFETY: `handles` names one handle that lives until the call returns.
            match unsafe { wait_sync(self.file.as_raw_fd(), &mut wait) } {
                Ok(_) => return self.ended(),
                Err(nix::Error::ETIME) => return Ok(Ended::Runs),
                // The time-out is absolute.
                Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn ended(&self) -> Result<Ended, nix::Error> {
        let mut export = SyncobjFd {
            handle: self.sync,
            flags: EXPORT_SYNC_FILE,
            fd: -1,
            pad: 0,
        };
        // SAFETY: the argument has the request's size.
        unsafe { export_sync(self.file.as_raw_fd(), &mut export) }?;
        // SAFETY: the kernel just made this descriptor for us alone.
        let fence = unsafe { OwnedFd::from_raw_fd(export.fd) };
        let mut info = SyncFileInfo::default();
        // SAFETY: the argument has the request's size; no list is asked for.
        unsafe { sync_file_info(fence.as_raw_fd(), &mut info) }?;
        Ok(match info.status {
            1.. => Ended::Well,
            0 => Ended::Runs,
            status if status == -(nix::libc::ECANCELED) => Ended::Cancelled,
            _ => Ended::Failed,
        })
    }
}
