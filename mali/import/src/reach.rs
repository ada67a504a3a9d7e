// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumped bytes that chains can read.
//!
//! The dump also holds the allocator's notes, and unused tables for graphics.

use std::collections::BTreeSet;
use std::ops::Range;

use mali_facts::{
    Draw, Job, JobType, LocalStorage, RendererState, UniformBuffer, WriteValue, bytes, job,
};

use crate::code;
use crate::files::{PAGE, word64};
use crate::meeting::Meeting;
use crate::{Chain, Image, Original};

/// Bytes; no driver writes nearly as many.
const MOST_UNIFORMS: u64 = 64 << 20;

#[derive(Default)]
struct Reach {
    ranges: Vec<Range<u64>>,
    pointers: BTreeSet<u64>,
    looked_at: u64,
}

/// Address ranges that the GPU can read, ascending and disjoint. `None`: a shader does not decode, a descriptor is
/// lost, or points at something other than uniforms, state and storage.
pub(crate) fn reachable(
    original: &Original,
    chains: &[Chain],
    image: &Image,
) -> Option<Vec<Range<u64>>> {
    let contents = &original.contents;
    let mut reach = Reach::default();
    for job in chains.iter().flat_map(|chain| &chain.jobs) {
        if job.job_type() == Some(JobType::Compute) {
            reach.compute(original, job)?;
        } else {
            // The longest payload of a replayed job.
            let bytes = job::PAYLOAD + WriteValue::SIZE as u64;
            reach.add(job.address, bytes)?;
        }
    }
    reach.ranges.extend(code::reachable(contents, chains)?);
    // Whole regions that a uniform points into or the app synchronised.
    let synchronised: Meeting = original.ranges.all().collect();
    for region in contents.regions.iter().filter(|region| region.dumped) {
        let range = region.committed();
        let next = image.runs.partition_point(|run| run.end <= range.start);
        if image.runs.get(next).is_some_and(|run| run.execute) {
            continue;
        }
        let pointed = reach.pointers.range(range.clone()).next().is_some();
        if pointed || synchronised.count(&range) > 0 {
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
    fn add(&mut self, start: u64, length: u64) -> Option<()> {
        self.ranges.push(start..start.checked_add(length)?);
        Some(())
    }

    fn compute(&mut self, original: &Original, job: &Job) -> Option<()> {
        let contents = &original.contents;
        let draw = Draw::of(contents, job)?;
        self.add(job.address, job::COMPUTE_BYTES)?;
        let others = [
            draw.textures(),
            draw.samplers(),
            draw.attribute_buffers(),
            draw.attributes(),
            draw.varying_buffers(),
            draw.varyings(),
        ];
        if others.iter().any(|&pointer| pointer != 0) {
            return None;
        }
        let state = draw.renderer_state(contents)?;
        self.add(draw.state_at(), RendererState::SIZE as u64)?;
        if let Some(storage) = draw.storage_at() {
            self.add(storage, LocalStorage::SIZE as u64)?;
        }
        self.data(original, draw.push_uniforms(), state.uniform_bytes())?;
        let entry = UniformBuffer::SIZE as u64;
        let table = draw.uniform_buffers();
        self.add(table, state.uniform_buffer_count() * entry)?;
        for index in 0..state.uniform_buffer_count() {
            let buffer = UniformBuffer::from_bytes(&bytes(contents, table + index * entry)?);
            self.data(original, buffer.pointer(), buffer.bytes())?;
        }
        Some(())
    }

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
