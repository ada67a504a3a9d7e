// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where in GPU memory a memory object lies: a buffer of the driver in which every transfer's content is found.

use gpureplay_trace::PAGE_SIZE;
use gpureplay_trace::note::content_hash;

use super::events::{Host, Root};
use crate::capture::{Buffer, Capture};
use crate::pages::Moment;

const PAGE: u64 = PAGE_SIZE as u64;

/// The bytes of a transfer, as they lay in GPU memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// GPU virtual address of the first byte.
    pub(super) va: u64,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
}

/// Finds the content of a transfer at a moment; `None` if it is nowhere, or in several places that nothing tells apart.
pub(super) fn locate(
    capture: &Capture,
    root: &Root,
    host: &Host,
    moment: Moment,
) -> Option<Located> {
    let wanted = host.hash?;
    let end = host.at.offset.checked_add(host.size)?;
    // Memory that no page of the trace holds cannot be compared, whatever a note claims.
    let known = (capture.memory.addresses().count() as u64).saturating_mul(PAGE);
    if host.size == 0 || end > root.size || host.size > known {
        return None;
    }
    let at = |va: u64| -> Option<Located> {
        let va = va.checked_add(host.at.offset)?;
        let mut bytes = vec![0; usize::try_from(host.size).ok()?];
        let whole = capture.memory.read(moment, va, &mut bytes);
        (whole && content_hash(&bytes) == wanted).then_some(Located { va, bytes })
    };
    // The driver usually maps an object's buffer when the object is made.
    if let Some(buffer) = root.mapped.filter(|buffer| buffer.size >= root.size)
        && let Some(found) = at(buffer.va)
    {
        return Some(found);
    }
    // Else it is in a buffer that was free, of the object's size in pages or, rarely, larger.
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
            is_named(capture, moment.job(), start)
        });
    }
    let last = found.pop()?;
    found.is_empty().then_some(last)
}

/// The buffers, each address once, in which something is found.
fn unique<'a>(
    buffers: impl Iterator<Item = &'a Buffer>,
    at: impl Fn(u64) -> Option<Located>,
) -> Vec<Located> {
    let mut out: Vec<Located> = Vec::new();
    let mut last = None;
    // Sorted by address.
    for buffer in buffers {
        if last.replace(buffer.va) != Some(buffer.va) {
            out.extend(at(buffer.va));
        }
    }
    out
}

/// Whether the app's driver wrote this address into memory before the job: arguments of kernels are addresses.
fn is_named(capture: &Capture, job: usize, va: u64) -> bool {
    let moment = Moment::before(job);
    capture.memory.changed(moment).iter().any(|page| {
        let (words, _) = capture.memory.page(moment, *page).as_chunks::<8>();
        words.iter().any(|word| u64::from_le_bytes(*word) == va)
    })
}
