// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory tracks may take up, and whether it pays to record more of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Most bytes of all tracks together. They are read from one end to the other each time, and are of use as long as they stay in caches.
const MOST_BYTES: usize = 4 << 20;

/// What it costs to record a clause, as a multiple of what is won when a track has it.
const RECORDING_COST: u64 = 16;

/// Clauses that may be recorded before any was won.
const ADVANCE: u64 = 1 << 16;

/// What all tracks have together.
#[derive(Debug)]
struct Shared {
    /// Bytes that they may still take up.
    bytes: AtomicUsize,
    /// What may be spent on recording. Where tracks are forgotten before they were of use, nothing is left soon.
    gain: AtomicU64,
}

/// A share of the room for tracks. The bytes that it has taken are given back with it.
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

    /// Another share of the same.
    pub(crate) fn share(&self) -> Room {
        Room {
            shared: Arc::clone(&self.shared),
            taken: 0,
        }
    }

    pub(super) fn bytes_left(&self) -> usize {
        self.shared.bytes.load(Relaxed)
    }

    /// Whether it may be worth it to record another track.
    pub(super) fn is_worth_it(&self) -> bool {
        self.shared.gain.load(Relaxed) > 0
    }

    /// So many clauses were recorded.
    pub(super) fn spend(&self, clauses: u64) {
        let less = |gain: u64| Some(gain.saturating_sub(clauses.saturating_mul(RECORDING_COST)));
        let _ = self.shared.gain.fetch_update(Relaxed, Relaxed, less);
    }

    /// A track had so many clauses.
    pub(super) fn win(&self, clauses: u64) {
        self.shared.gain.fetch_add(clauses, Relaxed);
    }

    /// Takes so many bytes, if there are as many.
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
