// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of recorded results, by share, on the GPU for large memory. A candidate finds neither wanted memory nor the
//! sums' key there.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use super::tools::SHARE;
use super::{Kind, PART, Session};
use crate::error::driver;
use crate::room::Room;
use crate::{Loaded, ReplayError};

/// In bytes; smaller pieces are compared on the host, faster than a kernel loads.
pub(super) const LARGE: usize = 16 << 20;

#[derive(Clone, Default)]
struct Held {
    sums: Vec<[u64; 2]>,
    /// The first verdict reads memory instead, faster than sums.
    is_wanted: bool,
}

pub(super) struct Expected {
    pieces: RefCell<Vec<Held>>,
    key: u64,
}

impl Default for Expected {
    fn default() -> Self {
        Self {
            pieces: RefCell::default(),
            key: RandomState::new().hash_one(0),
        }
    }
}

impl Expected {
    pub(super) fn are_old(&self) {
        let mut all = self.pieces.borrow_mut();
        all.iter_mut().for_each(|held| held.sums.clear());
    }
}

impl Session {
    /// None if the host compares. Right after a restore, only changes are uploaded.
    pub(super) fn expect(
        &self,
        loaded: &Loaded,
        number: usize,
        is_restored: bool,
    ) -> Result<Option<Vec<[u64; 2]>>, ReplayError> {
        let contents = &self.contents[number];
        let (at, size) = (self.address(loaded, contents), contents.before.len());
        let is_small = size < LARGE || !at.is_multiple_of(16);
        if contents.kind == Kind::Host || is_small || self.ignored[number] {
            return Ok(None);
        }
        let mut all = self.expected.pieces.borrow_mut();
        all.resize(self.contents.len(), Held::default());
        let held = &mut all[number];
        if !held.is_wanted {
            held.is_wanted = !is_restored;
            return Ok(None);
        }
        if held.sums.is_empty() {
            // The launch may need room.
            if self.gpu.free_memory()? / 2 < size {
                return Ok(None);
            }
            let room = Room::new(&self.gpu, size)?;
            match (&contents.after, is_restored) {
                (after, true) => {
                    // SAFETY: both have so many bytes.
                    let status = unsafe {
                        self.gpu
                            .driver
                            .cuMemcpyDtoDAsync_v2(room.address, at, size, 0)
                    };
                    driver("cuMemcpyDtoDAsync_v2", status)?;
                    for range in after.iter().flat_map(|_| &contents.changed) {
                        let bytes = after.as_ref().and_then(|after| after.get(range.clone()));
                        let bytes = bytes.unwrap_or_default();
                        self.gpu.upload(room.address + range.start as u64, bytes)?;
                    }
                }
                (after, false) => {
                    let bytes = after.as_ref().unwrap_or(&contents.before);
                    self.gpu.upload(room.address, bytes)?;
                }
            }
            held.sums = self.sums_of_shares(room.address, size, self.expected.key)?;
        }
        Ok(Some(held.sums.clone()))
    }

    /// Parts that may differ, in order; of large pieces where sums differ.
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
        let at = self.address(loaded, contents);
        let got = self.sums_of_shares(at, size, self.expected.key)?;
        let mut parts: Vec<Range<usize>> = Vec::new();
        for (share, _) in got
            .iter()
            .zip(&want)
            .enumerate()
            .filter(|(_, (got, want))| got != want)
        {
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
