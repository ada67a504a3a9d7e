// SPDX-License-Identifier: MIT OR Apache-2.0
//! The render node of panfrost, and an open file of it: an address space with objects.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::abi;
use crate::error::OpenError;
use crate::way_in;

/// Name of the driver.
const DRIVER: &str = "panfrost";
/// First version, in major 1, that has objects without execution and heaps (Linux 5.4).
const OLDEST_MINOR: i32 = 1;

/// The first render node whose driver is panfrost. Nothing is opened: a node of another GPU would wake that one up.
///
/// # Errors
/// There is none.
pub fn find(root: &Path) -> Result<PathBuf, OpenError> {
    let mut nodes: Vec<PathBuf> = fs::read_dir(root.join("sys/class/drm"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    nodes.sort();
    nodes
        .iter()
        .filter_map(|node| {
            let name = node.file_name()?.to_str()?;
            let driver = fs::canonicalize(node.join("device/driver")).ok()?;
            let ours = name.starts_with("renderD") && driver.file_name()? == DRIVER;
            ours.then(|| root.join("dev/dri").join(name))
        })
        .next()
        .ok_or(OpenError::NoPanfrost)
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Node {
    file: File,
    /// Sync object for the end of a submission.
    sync: u32,
}

/// How a submission ended, as its fence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The driver reports success, or a fault that it does not tell of (Linux 6.1).
    Well,
    /// The driver took the job off the GPU, mostly because it ran for too long.
    Cancelled,
    /// Another error.
    Failed,
    /// Not yet.
    Runs,
}

impl Node {
    /// Opens a render node of panfrost.
    ///
    /// # Errors
    /// It cannot be opened, or another driver has it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(nix::libc::EACCES | nix::libc::EPERM) => OpenError::Permission {
                path: path.to_owned(),
                cure: way_in::to_render_node(path),
            },
            Some(nix::libc::ENOENT | nix::libc::ENODEV | nix::libc::ENXIO) => OpenError::NoPanfrost,
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
        let mut version = abi::Version {
            name_length: name.len(),
            name: name.as_mut_ptr() as usize,
            ..abi::Version::default()
        };
        // SAFETY: `name` has the length that the argument says and lives until the call returns.
        unsafe { abi::version(file.as_raw_fd(), &mut version) }
            .map_err(failed("version of the driver"))?;
        let name = name.get(..version.name_length).unwrap_or_default();
        if name != DRIVER.as_bytes() || version.major != 1 || version.minor < OLDEST_MINOR {
            return Err(OpenError::OtherDriver {
                path: path.to_owned(),
                found: format!(
                    "{} {}.{}",
                    String::from_utf8_lossy(name),
                    version.major,
                    version.minor
                ),
            });
        }
        let mut made = abi::Syncobj::default();
        // SAFETY: the argument has the size that the request names.
        unsafe { abi::create_sync(file.as_raw_fd(), &mut made) }.map_err(failed("sync object"))?;
        Ok(Self {
            file,
            sync: made.handle,
        })
    }

    /// The file, for mappings.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A parameter of the GPU; `None`: the driver does not have it.
    pub(crate) fn parameter(&self, number: u32) -> Option<u64> {
        let mut get = abi::GetParam {
            parameter: number,
            ..abi::GetParam::default()
        };
        // SAFETY: the argument has the size that the request names.
        unsafe { abi::parameter(self.file.as_raw_fd(), &mut get) }.ok()?;
        Some(get.value)
    }

    /// A new object: its handle and its GPU address.
    pub(crate) fn create(&self, bytes: u32, flags: u32) -> Result<(u32, u64), nix::Error> {
        let mut create = abi::CreateBo {
            size: bytes,
            flags,
            ..abi::CreateBo::default()
        };
        // SAFETY: the argument has the size that the request names.
        unsafe { abi::create(self.file.as_raw_fd(), &mut create) }?;
        Ok((create.handle, create.va))
    }

    /// Gives an object up; a job that uses it keeps it.
    pub(crate) fn close(&self, handle: u32) -> Result<(), nix::Error> {
        let close = abi::GemClose { handle, pad: 0 };
        // SAFETY: plain data in, nothing out.
        unsafe { abi::close(self.file.as_raw_fd(), &close) }.map(drop)
    }

    /// Offset in the file at which an object can be mapped.
    pub(crate) fn map_offset(&self, handle: u32) -> Result<u64, nix::Error> {
        let mut map = abi::MmapBo {
            handle,
            ..abi::MmapBo::default()
        };
        // SAFETY: the argument has the size that the request names.
        unsafe { abi::map(self.file.as_raw_fd(), &mut map) }?;
        Ok(map.offset)
    }

    /// Submits a chain that uses these objects.
    pub(crate) fn submit(
        &self,
        head: u64,
        objects: &[u32],
        requirements: u32,
    ) -> Result<(), nix::Error> {
        let submit = abi::Submit {
            head,
            out_sync: self.sync,
            handles: objects.as_ptr() as u64,
            handle_count: objects.len() as u32,
            requirements,
            ..abi::Submit::default()
        };
        loop {
            // SAFETY: `objects` has as many handles as the argument says and lives until the call returns.
            match unsafe { abi::submit(self.file.as_raw_fd(), &submit) } {
                // Nothing was submitted.
                Err(nix::Error::EINTR) => {}
                result => return result.map(drop),
            }
        }
    }

    /// Waits for the end of the last submission, for so long at most.
    pub(crate) fn wait(&self, time: Duration) -> Result<Ended, nix::Error> {
        let until = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?) + time;
        let mut wait = abi::SyncobjWait {
            handles: (&raw const self.sync) as u64,
            timeout_ns: until.as_nanos().try_into().unwrap_or(i64::MAX),
            count: 1,
            ..abi::SyncobjWait::default()
        };
        loop {
            // SAFETY: `handles` names one handle that lives until the call returns.
            match unsafe { abi::wait_sync(self.file.as_raw_fd(), &mut wait) } {
                Ok(_) => return self.ended(),
                Err(nix::Error::ETIME) => return Ok(Ended::Runs),
                // The time is an absolute one.
                Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// What the fence of the last submission says.
    fn ended(&self) -> Result<Ended, nix::Error> {
        let mut export = abi::SyncobjFd {
            handle: self.sync,
            flags: abi::EXPORT_SYNC_FILE,
            fd: -1,
            pad: 0,
        };
        // SAFETY: the argument has the size that the request names.
        unsafe { abi::export_sync(self.file.as_raw_fd(), &mut export) }?;
        // SAFETY: the kernel made this descriptor for us just now, and nobody else has it.
        let fence = unsafe { OwnedFd::from_raw_fd(export.fd) };
        let mut info = abi::SyncFileInfo::default();
        // SAFETY: the argument has the size that the request names; no list is asked for.
        unsafe { abi::sync_file_info(fence.as_raw_fd(), &mut info) }?;
        Ok(match info.status {
            1.. => Ended::Well,
            0 => Ended::Runs,
            status if status == -(nix::libc::ECANCELED) => Ended::Cancelled,
            _ => Ended::Failed,
        })
    }
}
