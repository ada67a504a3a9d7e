// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on the GPU for a while.

use crate::error::driver;
use crate::{Gpu, ReplayError};

/// Zeroed.
pub(crate) struct Room<'a> {
    gpu: &'a Gpu,
    pub(crate) address: u64,
    pub(crate) size: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn new(gpu: &'a Gpu, size: usize) -> Result<Self, ReplayError> {
        let size = size.max(8);
        let mut room = Self {
            gpu,
            address: 0,
            size,
        };
        // SAFETY: a pointer to a field.
        let status = unsafe { gpu.driver.cuMemAlloc_v2(&raw mut room.address, size) };
        driver("cuMemAlloc_v2", status)?;
        // SAFETY: our memory.
        let status = unsafe { gpu.driver.cuMemsetD8_v2(room.address, 0, size) };
        driver("cuMemsetD8_v2", status).map(|()| room)
    }

    pub(crate) fn read<const N: usize>(&self) -> Result<Vec<[u64; N]>, ReplayError> {
        let mut bytes = vec![0; self.size];
        self.gpu.download(self.address, &mut bytes)?;
        let words = bytes.as_chunks::<8>().0.iter();
        let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
        Ok(words.as_chunks::<N>().0.to_vec())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: our memory, which nothing uses any more.
            let _ = unsafe { self.gpu.driver.cuMemFree_v2(self.address) };
        }
    }
}
