// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which dumped bytes the GPU can read when it runs the chains: job descriptors, what they point at, and code.
//!
//! The dump also holds the allocator's notes between descriptors and tables for graphics that no chain uses.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::code;
use crate::files::{PAGE, word64};
use crate::{Chain, Image, JobHeader, Original};

/// Job type of a compute job.
const COMPUTE: u8 = 4;
/// Header, invocation, parameters and draw section of a compute job.
const JOB_BYTES: u64 = 192;
/// Renderer state and local storage descriptors.
const DESCRIPTOR_BYTES: u64 = 64;
/// Bytes of a job header alone.
const HEADER_BYTES: u64 = 32;
/// Bytes of uniforms that are looked at; no driver writes nearly as many.
const MOST_UNIFORMS: u64 = 64 << 20;
/// Offset of the draw section in a job.
const DRAW: usize = 64;

/// Collects address ranges.
#[derive(Default)]
struct Reach {
    ranges: Vec<Range<u64>>,
    /// Values that may be addresses of data.
    pointers: BTreeSet<u64>,
    /// Bytes of uniforms looked at.
    looked_at: u64,
}

/// Address ranges that the GPU can read of what is dumped, ascending and disjoint. `None` when that cannot be told:
/// a shader that does not decode, a descriptor that is not in the dump, or one that points at something other than
/// uniforms, state and storage.
pub(crate) fn reachable(
    original: &Original,
    chains: &[Chain],
    image: &Image,
) -> Option<Vec<Range<u64>>> {
    let contents = &original.contents;
    let mut reach = Reach::default();
    for job in chains.iter().flat_map(|chain| &chain.jobs) {
        if job.job_type == COMPUTE {
            reach.compute(original, job)?;
        } else {
            reach.ranges.push(job.va..job.va + HEADER_BYTES * 2);
        }
    }
    reach.ranges.extend(code::reachable(contents, chains)?);
    // Data that was dumped along: whole regions that a uniform points into or the app synchronised.
    for region in contents.regions.iter().filter(|region| region.dumped) {
        let range = region.committed();
        let next = image.runs.partition_point(|run| run.end <= range.start);
        if image.runs.get(next).is_some_and(|run| run.execute) {
            continue;
        }
        let pointed = reach.pointers.range(range.clone()).next().is_some();
        let synchronised = original
            .ranges
            .ranges
            .iter()
            .any(|r| r.start < range.end && range.start < r.end);
        if pointed || synchronised {
            reach.ranges.push(range);
        }
    }
    reach.ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in reach.ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    Some(merged)
}

impl Reach {
    /// Adds a compute job and all that its descriptors name.
    fn compute(&mut self, original: &Original, job: &JobHeader) -> Option<()> {
        let contents = &original.contents;
        let mut bytes = [0; JOB_BYTES as usize];
        contents.read(job.va, &mut bytes)?;
        self.ranges.push(job.va..job.va + JOB_BYTES);
        let pointer = |word: usize| word64(&bytes[DRAW + 4 * word..]);
        // Textures, samplers, attribute buffers, attributes, varyings.
        let others = [8, 10, 16, 18, 20, 22];
        if others.iter().any(|&word| pointer(word) != 0) {
            return None;
        }
        let state = pointer(14) & !63;
        let mut renderer = [0; DESCRIPTOR_BYTES as usize];
        contents.read(state, &mut renderer)?;
        self.ranges.push(state..state + DESCRIPTOR_BYTES);
        let storage = pointer(28) & !63;
        if storage != 0 {
            let end = storage.checked_add(DESCRIPTOR_BYTES)?;
            self.ranges.push(storage..end);
        }
        let word = |i: usize| word64(&renderer[4 * i..]) as u32;
        let slots = u64::from(word(12) >> 15 & 0x7f);
        self.data(original, pointer(12), slots * 8)?;
        let buffers = u64::from(word(4) & 0xff);
        let table = pointer(6);
        self.ranges.push(table..table.checked_add(buffers * 8)?);
        for index in 0..buffers {
            let mut entry = [0; 8];
            contents.read(table + index * 8, &mut entry)?;
            let entry = u64::from_le_bytes(entry);
            self.data(original, entry >> 12 << 4, ((entry & 0xfff) + 1) * 16)?;
        }
        Some(())
    }

    /// Adds uniforms, and notes what may be pointers in them.
    fn data(&mut self, original: &Original, start: u64, length: u64) -> Option<()> {
        if length == 0 {
            return Some(());
        }
        self.looked_at += length;
        if self.looked_at > MOST_UNIFORMS {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        original.contents.read(start, &mut bytes)?;
        self.ranges.push(start..start.checked_add(length)?);
        for at in (0..bytes.len().saturating_sub(7)).step_by(4) {
            let value = word64(&bytes[at..]);
            self.pointers.insert(value - value % PAGE);
        }
        Some(())
    }
}

/// Zeros the bytes of a page that lie in no range.
pub(crate) fn keep(va: u64, page: &mut [u8], ranges: &[Range<u64>]) {
    let mut at = 0;
    let length = page.len() as u64;
    let next = ranges.partition_point(|range| range.end <= va);
    for range in ranges.iter().skip(next) {
        if range.start >= va + length {
            break;
        }
        let start = range.start.saturating_sub(va) as usize;
        page[at..start.max(at)].fill(0);
        at = (range.end - va).min(length) as usize;
    }
    page[at..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_are_zero() {
        let mut page = [1u8; 16];
        keep(0x100, &mut page, &[0..0x104, 0x106..0x108, 0x10e..0x200]);
        assert_eq!(page, [1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        keep(0x100, &mut page, &[0..0x100, 0x110..0x120]);
        assert_eq!(page, [0; 16]);
    }
}
