// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory shared with the secure world.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use memmap2::{MmapOptions, MmapRaw};

use super::abi;
use super::error::{Error, io};

/// The secure world changes it during calls: no reference to its bytes exists.
#[derive(Debug)]
pub(crate) struct Shared {
    map: MmapRaw,
    id: i32,
}

impl Shared {
    pub(crate) fn new(tee: &File, bytes: usize) -> Result<Self, Error> {
        let what = "memory that is shared with the secure world";
        let mut wanted = abi::Allocate {
            size: bytes.max(1) as u64,
            ..abi::Allocate::default()
        };
        // SAFETY: open descriptor, argument of the request's size.
        let descriptor = unsafe { abi::allocate(tee.as_raw_fd(), &mut wanted) }
            .map_err(|errno| io(what)(errno.into()))?;
        // SAFETY: the driver just made it for us.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let map = MmapOptions::new().len(bytes.max(1)).map_raw(&file);
        Ok(Self {
            map: map.map_err(io(what))?,
            id: wanted.id,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn parameter(&self, kind: u64, bytes: usize) -> abi::Parameter {
        abi::Parameter {
            kind,
            a: 0,
            b: bytes.min(self.len()) as u64,
            // The driver gives no negative number.
            c: u64::try_from(self.id).unwrap_or_default(),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        let length = bytes.len().min(self.len());
        // SAFETY: the range is inside the mapping, to which no reference exists, so `bytes` does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr(), length) };
    }

    pub(crate) fn read(&self, bytes: &mut [u8]) {
        let length = bytes.len().min(self.len());
        // SAFETY: as in `write`, in the other direction.
        unsafe { std::ptr::copy_nonoverlapping(self.map.as_ptr(), bytes.as_mut_ptr(), length) };
    }

    /// Secret inputs do not stay.
    pub(crate) fn clear(&self) {
        // SAFETY: the whole mapping, to which no reference exists.
        unsafe { std::ptr::write_bytes(self.map.as_mut_ptr(), 0, self.len()) };
    }
}
