// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies on the GPU of what the recorded launch left: large memory is compared there, and only what differs is read.

use std::cell::RefCell;
use std::ops::Range;

use gpureplay_cuda_launch::abi::Status;

use super::tools::SHARE;
use super::{Kind, PART, Session};
use crate::error::driver;
use crate::room::Room;
use crate::{Loaded, ReplayError};

/// Pieces of fewer bytes are read and compared here, which takes less time than to load a kernel.
pub(super) const LARGE: usize = 16 << 20;

/// The copy of a piece.
#[derive(Clone, Copy, Default)]
struct Held {
    address: u64,
    is_whole: bool,
    /// The GPU has no room for it.
    is_refused: bool,
}

/// The copy of each piece, by its number.
#[derive(Default)]
pub(super) struct Expected(RefCell<Vec<Held>>);

impl Expected {
    /// What the launch is to leave has changed.
    pub(super) fn are_old(&self) {
        let mut all = self.0.borrow_mut();
        all.iter_mut().for_each(|held| held.is_whole = false);
    }
}

impl Session {
    /// Where the GPU holds what a piece is to be after the launch; none if it is compared here. Right after the piece was restored
    /// only what the launch changes is copied to the GPU.
    pub(super) fn expect(
        &self,
        loaded: &Loaded,
        number: usize,
        is_restored: bool,
    ) -> Result<Option<u64>, ReplayError> {
        let contents = &self.contents[number];
        let (at, size) = (self.address(loaded, contents), contents.before.len());
        let is_small = size < LARGE || !at.is_multiple_of(16);
        if contents.kind == Kind::Host || is_small || self.ignored[number] {
            return Ok(None);
        }
        let mut all = self.expected.0.borrow_mut();
        all.resize(self.contents.len(), Held::default());
        let held = &mut all[number];
        if held.address == 0 && !held.is_refused {
            // The launch may need room of its own.
            held.is_refused = self.gpu.free_memory()? / 2 < size;
            if !held.is_refused {
                // SAFETY: a pointer to a place of ours.
                let status = unsafe {
                    let address = &raw mut held.address;
                    self.gpu.driver.cuMemAlloc_v2(address, size)
                };
                match status {
                    Status::OUT_OF_MEMORY => held.is_refused = true,
                    status => driver("cuMemAlloc_v2", status)?,
                }
            }
        }
        if held.is_refused {
            return Ok(None);
        }
        let to = held.address;
        if !held.is_whole {
            match (&contents.after, is_restored) {
                (after, true) => {
                    // SAFETY: both have so many bytes.
                    let status = unsafe { self.gpu.driver.cuMemcpyDtoDAsync_v2(to, at, size, 0) };
                    driver("cuMemcpyDtoDAsync_v2", status)?;
                    for range in after.iter().flat_map(|_| &contents.changed) {
                        let bytes = after.as_ref().and_then(|after| after.get(range.clone()));
                        let bytes = bytes.unwrap_or_default();
                        self.gpu.upload(to + range.start as u64, bytes)?;
                    }
                }
                (after, false) => {
                    let bytes = after.as_ref().unwrap_or(&contents.before);
                    self.gpu.upload(to, bytes)?;
                }
            }
            held.is_whole = true;
        }
        Ok(Some(to))
    }

    /// Parts of a piece that may differ from what the recorded launch left, in order: of large ones those that the GPU finds to differ.
    pub(super) fn parts_to_compare(
        &self,
        loaded: &Loaded,
        number: usize,
    ) -> Result<Vec<Range<usize>>, ReplayError> {
        let contents = &self.contents[number];
        let size = contents.before.len();
        let Some(want) = self.expect(loaded, number, false)? else {
            let starts = (0..size).step_by(PART);
            return Ok(starts.map(|start| start..size.min(start + PART)).collect());
        };
        let flags = Room::new(&self.gpu, size.div_ceil(SHARE) * 8)?;
        let got = self.address(loaded, contents);
        self.compare_on_gpu([got, want], size, flags.address)?;
        let mut parts: Vec<Range<usize>> = Vec::new();
        for (share, [differs]) in flags.read::<1>()?.into_iter().enumerate() {
            if differs == 0 {
                continue;
            }
            let start = share * SHARE;
            let end = size.min(start + SHARE);
            match parts.last_mut() {
                Some(last) if last.end == start && end - last.start <= PART => last.end = end,
                _ => parts.push(start..end),
            }
        }
        Ok(parts)
    }
}
