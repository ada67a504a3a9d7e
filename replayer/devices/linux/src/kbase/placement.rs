// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at chosen GPU addresses.
//!
//! Executable regions begin at a multiple of 16 MiB (24-bit program counter) and neither begin nor end at a
//! multiple of 4 GiB. So each 16 MiB window with code is one region. It moves if other memory or this process is in
//! the way: see [`moves`]. Source: `kbase_context_get_unmapped_area` of r25p0 to r44p1.

use std::collections::BTreeMap;

use gpureplay_format::{Access, PAGE_SIZE, Recording};

use super::abi::flags;
use super::gaps::{Gaps, LOWEST};
use crate::misfit::Misfit;

pub(crate) const CODE_ALIGNMENT: u64 = 1 << 24;

const PAGE: u64 = PAGE_SIZE as u64;
/// From 2 MiB on the driver aligns; neighbours look the same to the GPU.
const LARGEST: u64 = 1 << 20;
/// Each is a mapping of this process, which has 65,530.
const MOST_REGIONS: usize = 1 << 14;
/// Bits 31:24 of windows where code would touch a multiple of 4 GiB.
const AT_THE_EDGE: [u64; 2] = [0x00, 0xff];
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    pub(crate) access: Access,
}

impl Range {
    pub(crate) fn new(va: u64, pages: u32, access: Access) -> Self {
        Self {
            va,
            bytes: u64::from(pages) * PAGE,
            access,
        }
    }

    fn end(&self) -> u64 {
        self.va.saturating_add(self.bytes)
    }

    fn executable(&self) -> bool {
        self.access.contains(Access::EXECUTE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) va: u64,
    pub(crate) pages: u64,
    pub(crate) flags: u64,
}

impl Step {
    pub(crate) fn bytes(&self) -> u64 {
        self.pages.saturating_mul(PAGE)
    }

    pub(crate) fn end(&self) -> u64 {
        self.va.saturating_add(self.bytes())
    }

    pub(crate) fn executable(&self) -> bool {
        self.flags & flags::GPU_EXECUTE != 0
    }

    fn room(&self) -> (u64, u64) {
        let below = if self.executable() { CODE_ALIGNMENT } else { 0 };
        (self.va.saturating_sub(below), self.end())
    }
}

pub(crate) fn ranges(recording: &Recording<'_>) -> Vec<Range> {
    let regions = recording.regions().iter();
    regions
        .map(|it| Range::new(it.va.get(), it.pages.get(), Access(it.access)))
        .collect()
}

/// Windows with code, and the code's end.
fn windows(ranges: &[Range]) -> BTreeMap<u64, u64> {
    let mut ends = BTreeMap::new();
    for range in ranges.iter().filter(|range| range.executable()) {
        let mut at = range.va;
        while at < range.end() {
            let window = at & !(CODE_ALIGNMENT - 1);
            let end = range.end().min(window + CODE_ALIGNMENT);
            ends.entry(window)
                .and_modify(|used: &mut u64| *used = end.max(*used))
                .or_insert(end);
            at = end;
        }
    }
    ends
}

/// Regions in the order of creation. `ranges` ascend without overlap; `limit` ends GPU addresses.
pub(crate) fn plan(ranges: &[Range], limit: u64) -> Result<Vec<Step>, Misfit> {
    let bad = ranges.iter().find(|it| it.va < LOWEST || it.end() > limit);
    if let Some(range) = bad {
        return Err(Misfit::OutOfRange {
            va: range.va,
            first: LOWEST,
            end: limit,
        });
    }
    let base = flags::CPU_READ | flags::CPU_WRITE | flags::GPU_READ;
    let mut steps: Vec<Step> = Vec::new();
    // Code goes first, while the room below it is still empty.
    for (window, end) in windows(ranges) {
        let step = Step {
            va: window,
            pages: (end - window) / PAGE,
            flags: base | flags::GPU_EXECUTE,
        };
        let data = ranges.iter().filter(|range| !range.executable());
        let shared = data.filter(|it| it.va < end && window < it.end()).count();
        let near = steps.last().is_some_and(|last| step.room().0 < last.end());
        if shared != 0 || near || AT_THE_EDGE.contains(&(window >> 24 & 0xff)) {
            return Err(Misfit::Code(window));
        }
        steps.push(step);
    }
    for range in ranges.iter().filter(|range| !range.executable()) {
        let written = range.access.contains(Access::WRITE);
        let flags = base | if written { flags::GPU_WRITE } else { 0 };
        for at in (range.va..range.end()).step_by(LARGEST as usize) {
            if steps.len() >= MOST_REGIONS {
                return Err(Misfit::TooManyObjects(MOST_REGIONS));
            }
            steps.push(Step {
                va: at,
                pages: LARGEST.min(range.end() - at) / PAGE,
                flags,
            });
        }
    }
    Ok(steps)
}

pub(crate) fn free(steps: &[Step], gaps: &Gaps) -> Result<(), Misfit> {
    let room = steps.iter().map(Step::room);
    match room.into_iter().find(|&(start, end)| !gaps.has(start, end)) {
        Some((start, end)) => Err(Misfit::Taken(start, end)),
        None => Ok(()),
    }
}

/// New places of code windows that cannot stay; the lowest 24 bits stay.
pub(crate) fn moves(
    ranges: &[Range],
    limit: u64,
    gaps: &Gaps,
) -> Result<BTreeMap<u64, u64>, Misfit> {
    match plan(ranges, limit) {
        Ok(steps) if free(&steps, gaps).is_ok() => return Ok(BTreeMap::new()),
        Ok(_) | Err(Misfit::Code(_)) => {}
        Err(misfit) => return Err(misfit),
    }
    let top = ranges.iter().map(Range::end).max().unwrap_or(0);
    // The driver searches an unused window below each.
    let mut least = top.next_multiple_of(CODE_ALIGNMENT) + CODE_ALIGNMENT;
    let mut found = BTreeMap::new();
    for (window, end) in windows(ranges) {
        let target = lowest_window(gaps, least, end - window, limit).ok_or(Misfit::NoRoom)?;
        found.insert(window, target);
        least = target + 2 * CODE_ALIGNMENT;
    }
    Ok(found)
}

fn lowest_window(gaps: &Gaps, least: u64, bytes: u64, limit: u64) -> Option<u64> {
    gaps.iter().find_map(|(from, to)| {
        let first = from.checked_next_multiple_of(CODE_ALIGNMENT)?;
        let mut at = least.max(first.checked_add(CODE_ALIGNMENT)?);
        while AT_THE_EDGE.contains(&(at >> 24 & 0xff)) {
            at = at.checked_add(CODE_ALIGNMENT)?;
        }
        (at.checked_add(bytes)? <= to.min(limit)).then_some(at)
    })
}

#[cfg(test)]
mod tests;
