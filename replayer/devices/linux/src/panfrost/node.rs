// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open file of panfrost.

use std::path::{Path, PathBuf};

use super::abi;
use crate::error::OpenError;
use crate::render_node::{Driver, RenderNode};

/// Brought objects without execution, and heaps (Linux 5.4).
const PANFROST: Driver = Driver {
    name: "panfrost",
    oldest_minor: 1,
};

/// Panfrost's first render node.
///
/// # Errors
/// There is none.
pub fn find(root: &Path) -> Result<PathBuf, OpenError> {
    PANFROST.find(root)
}

#[derive(Debug)]
pub(crate) struct Node(RenderNode);

impl Node {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        PANFROST.open(path).map(Self)
    }

    pub(crate) fn shared(&self) -> &RenderNode {
        &self.0
    }

    pub(crate) fn parameter(&self, number: u32) -> Option<u64> {
        let mut get = abi::GetParam {
            parameter: number,
            ..abi::GetParam::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::parameter(self.0.fd(), &mut get) }.ok()?;
        Some(get.value)
    }

    pub(crate) fn create(&self, bytes: u32, flags: u32) -> Result<(u32, u64), nix::Error> {
        let mut create = abi::CreateBo {
            size: bytes,
            flags,
            ..abi::CreateBo::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::create(self.0.fd(), &mut create) }?;
        Ok((create.handle, create.va))
    }

    pub(crate) fn map_offset(&self, handle: u32) -> Result<u64, nix::Error> {
        let mut map = abi::MmapBo {
            handle,
            ..abi::MmapBo::default()
        };
        // SAFETY: the argument has the request's size.
        unsafe { abi::map(self.0.fd(), &mut map) }?;
        Ok(map.offset)
    }

    pub(crate) fn submit(
        &self,
        head: u64,
        objects: &[u32],
        requirements: u32,
    ) -> Result<(), nix::Error> {
        let submit = abi::Submit {
            head,
            out_sync: self.0.sync(),
            handles: objects.as_ptr() as u64,
            handle_count: objects.len() as u32,
            requirements,
            ..abi::Submit::default()
        };
        loop {
            // SAFETY: `objects` has as many handles as the argument says and lives until the call returns.
            match unsafe { abi::submit(self.0.fd(), &submit) } {
                // Nothing was submitted.
                Err(nix::Error::EINTR) => {}
                result => return result.map(drop),
            }
        }
    }
}
