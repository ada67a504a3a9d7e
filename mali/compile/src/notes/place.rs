// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a memory object: the driver buffer with its transfers' contents.

use std::cell::Cell;

use gpureplay_trace::PAGE_SIZE;
use gpureplay_trace::note::content_hash;

use super::error::{MOST_COPIES, ProposeError};
use super::events::{Host, Root};
use crate::capture::{Buffer, Capture};
use crate::pages::Moment;

const PAGE: u64 = PAGE_SIZE as u64;

/// Steps, and bytes compared, 64 for a step. With 16 GiB, a network's weights of 1 GiB may each be looked for in 16
/// buffers.
const MOST_WORK: u64 = 1 << 28;
/// GPU memory that takes as much work as a step.
const BYTES_A_STEP: u64 = 64;

#[derive(Debug)]
pub(super) struct Work(Cell<u64>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(MOST_WORK))
    }
}

impl Work {
    pub(super) fn spend(&self, steps: u64) -> bool {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(super) fn was_enough(&self) -> Result<(), ProposeError> {
        match self.0.get() {
            0 => Err(ProposeError::TooMuchWork),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Moved {
    bytes: u64,
    most: u64,
}

impl Moved {
    pub(super) fn of(capture: &Capture) -> Self {
        let most = capture.memory_bytes().saturating_mul(MOST_COPIES);
        Self { bytes: 0, most }
    }

    /// False: too much, and it must not be kept.
    pub(super) fn add(&mut self, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= self.most
    }

    pub(super) fn was_enough(&self) -> Result<(), ProposeError> {
        match self.bytes > self.most {
            true => Err(ProposeError::TooMuchMoved { most: self.most }),
            false => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) va: u64,
    pub(super) bytes: Vec<u8>,
}

/// `None` if it is nowhere, or in several indistinguishable places.
pub(super) fn locate(
    capture: &Capture,
    root: &Root,
    host: &Host,
    moment: Moment,
    work: &Work,
) -> Option<Located> {
    let wanted = host.hash?;
    let end = host.at.offset.checked_add(host.size)?;
    // A note may claim more than the trace holds.
    let known = (capture.memory.known() as u64).saturating_mul(PAGE);
    if host.size == 0 || end > root.size || host.size > known {
        return None;
    }
    let at = |va: u64| -> Option<Located> {
        let va = va.checked_add(host.at.offset)?;
        if !work.spend(1 + host.size / BYTES_A_STEP) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(host.size).ok()?];
        let whole = capture.memory.read(moment, va, &mut bytes);
        (whole && content_hash(&bytes) == wanted).then_some(Located { va, bytes })
    };
    if let Some(buffer) = root.mapped.filter(|buffer| buffer.size >= root.size)
        && let Some(found) = at(buffer.va)
    {
        return Some(found);
    }
    // Else a free buffer of the object's size in pages or, rarely, larger.
    if !work.spend(capture.buffers.len() as u64) {
        return None;
    }
    let pages = root.size.checked_next_multiple_of(PAGE)?;
    let fits = |buffer: &&Buffer| buffer.size == pages;
    let larger = |buffer: &&Buffer| buffer.size > pages;
    let mut found = unique(capture.buffers.iter().filter(fits), at);
    if found.is_empty() {
        found = unique(capture.buffers.iter().filter(larger), at);
    }
    if found.len() > 1 {
        found.retain(|located| {
            let start = located.va.wrapping_sub(host.at.offset);
            let pages = capture.memory.changed(Moment::before(moment.job())).len() as u64;
            work.spend(pages * (PAGE / BYTES_A_STEP)) && is_named(capture, moment.job(), start)
        });
    }
    let last = found.pop()?;
    found.is_empty().then_some(last)
}

fn unique<'a>(
    buffers: impl Iterator<Item = &'a Buffer>,
    at: impl Fn(u64) -> Option<Located>,
) -> Vec<Located> {
    let mut out: Vec<Located> = Vec::new();
    let mut last = None;
    for buffer in buffers {
        if last.replace(buffer.va) != Some(buffer.va) {
            out.extend(at(buffer.va));
        }
    }
    out
}

/// Kernel arguments are addresses.
fn is_named(capture: &Capture, job: usize, va: u64) -> bool {
    let moment = Moment::before(job);
    capture.memory.changed(moment).iter().any(|page| {
        let (words, _) = capture.memory.page(moment, *page).as_chunks::<8>();
        words.iter().any(|word| u64::from_le_bytes(*word) == va)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_as_much_as_they_may_be() {
        let mut capture = Capture::default();
        for page in 1..=3 {
            capture.memory.set(Moment::before(0), page * PAGE, None);
        }
        let mut moved = Moved::of(&capture);
        assert!(moved.add(PAGE) && moved.add((MOST_COPIES * 3 - 1) * PAGE));
        assert_eq!(moved.was_enough(), Ok(()));
        assert!(!moved.add(1));
        let most = MOST_COPIES * 3 * PAGE;
        let error = ProposeError::TooMuchMoved { most };
        assert_eq!(moved.was_enough(), Err(error));
        assert!(!moved.add(u64::MAX));
    }

    #[test]
    fn a_transfer_is_looked_for_in_so_many_buffers_only() {
        let pages = 16;
        let mut capture = Capture::default();
        for page in 0..pages {
            capture.memory.set(Moment::before(0), page * PAGE, None);
        }
        let size = pages * PAGE;
        capture.buffers = vec![Buffer { va: 0, size }];
        let root = Root {
            size,
            image: false,
            mapped: None,
        };
        let host = |hash| Host {
            direction: gpureplay_trace::note::Direction::Write,
            at: gpureplay_trace::note::Place {
                object: 0,
                offset: 0,
            },
            size,
            hash: Some(hash),
            jobs: 0,
            kept: false,
        };
        let zeros = content_hash(&vec![0; size as usize]);
        let find = |hash, work: &Work| {
            let found = locate(&capture, &root, &host(hash), Moment::before(0), work);
            (found.is_some(), work.was_enough().is_ok())
        };
        // Just enough for the bytes and the buffer list.
        let enough = Work(Cell::new(size / BYTES_A_STEP + 3));
        assert_eq!(find(zeros, &enough), (true, true));
        assert_eq!(find(zeros, &enough), (false, false));
        assert_eq!(find(zeros, &Work::default()), (true, true));
        assert_eq!(find(zeros ^ 1, &Work::default()), (false, true));
        assert!(!Work::default().spend(MOST_WORK + 1));
    }
}
