// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for tracks, and whether recording pays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// They are read from end to end, and help only in caches.
const MOST_BYTES: usize = 4 << 20;

/// Recording a clause costs this multiple of what a track saves.
const RECORDING_COST: u64 = 16;

/// Clauses recorded before any was saved.
const ADVANCE: u64 = 1 << 16;

#[derive(Debug)]
struct Shared {
    bytes: AtomicUsize,
    /// In clauses; runs out if tracks are forgotten before use.
    gain: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Room {
    shared: Arc<Shared>,
    taken: usize,
}

impl Room {
    pub(crate) fn new() -> Room {
        Room {
            shared: Arc::new(Shared {
                bytes: MOST_BYTES.into(),
                gain: (ADVANCE * RECORDING_COST).into(),
            }),
            taken: 0,
        }
    }

    pub(crate) fn share(&self) -> Room {
        Room {
            shared: Arc::clone(&self.shared),
            taken: 0,
        }
    }

    pub(super) fn bytes_left(&self) -> usize {
        self.shared.bytes.load(Relaxed)
    }

    pub(super) fn is_worth_it(&self) -> bool {
        self.shared.gain.load(Relaxed) > 0
    }

    pub(super) fn spend(&self, clauses: u64) {
        let less = |gain: u64| Some(gain.saturating_sub(clauses.saturating_mul(RECORDING_COST)));
        let _ = self.shared.gain.fetch_update(Relaxed, Relaxed, less);
    }

    pub(super) fn win(&self, clauses: u64) {
        self.shared.gain.fetch_add(clauses, Relaxed);
    }

    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        let bytes_left = &self.shared.bytes;
        let taken = bytes_left.fetch_update(Relaxed, Relaxed, less).is_ok();
        self.taken += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.bytes.fetch_add(self.taken, Relaxed);
    }
}
