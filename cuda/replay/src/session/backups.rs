// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU copies of what a launch changes, for faster restores.

use std::cell::{Cell, RefCell};

use gpureplay_cuda_launch::abi::Status;

use super::expected::LARGE;
use super::{Kind, Session};
use crate::error::driver;
use crate::{Loaded, ReplayError};

/// Addresses of copies by piece; 0 without room.
#[derive(Default)]
pub(super) struct Backups {
    addresses: RefCell<Vec<u64>>,
    are_whole: Cell<bool>,
}

impl Backups {
    pub(super) fn are_old(&self) {
        self.are_whole.set(false);
    }
}

impl Session {
    pub(super) fn restore_changed(&self, loaded: &Loaded) -> Result<(), ReplayError> {
        let mut addresses = self.backups.addresses.borrow_mut();
        addresses.resize(self.contents.len(), 0);
        let is_whole = self.backups.are_whole.replace(true);
        let changed = self.contents.iter().zip(addresses.iter_mut());
        for (contents, backup) in changed.filter(|(contents, _)| contents.after.is_some()) {
            let size = contents.before.len();
            if contents.kind != Kind::Host && !is_whole {
                if *backup == 0 {
                    // SAFETY: a pointer to an element.
                    let status = unsafe { self.gpu.driver.cuMemAlloc_v2(backup, size) };
                    match status {
                        Status::OUT_OF_MEMORY => *backup = 0,
                        status => driver("cuMemAlloc_v2", status)?,
                    }
                }
                if *backup != 0 {
                    self.gpu.upload(*backup, &contents.before)?;
                }
            }
            if *backup == 0 {
                self.put(loaded, contents, &contents.before)?;
                continue;
            }
            let to = self.address(loaded, contents);
            // The driver's copy leaves more in caches than kernels do.
            if size >= LARGE && to.is_multiple_of(16) && size.is_multiple_of(16) {
                self.copy_on_gpu(*backup, to, size)?;
                continue;
            }
            // SAFETY: both have so many bytes.
            let status = unsafe { self.gpu.driver.cuMemcpyDtoDAsync_v2(to, *backup, size, 0) };
            driver("cuMemcpyDtoDAsync_v2", status)?;
        }
        self.gpu.synchronize()
    }
}
