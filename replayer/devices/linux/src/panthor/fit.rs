// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which recordings panthor can replay.

use gpureplay_format::layout::FAMILY_STREAMS;
use gpureplay_format::{Access, PAGE_SIZE, Recording};

use super::abi;
use crate::misfit::Misfit;

/// Bytes of a launch's largest stream.
pub(crate) const STREAM: u64 = 1 << 16;
/// End of user space with 48-bit GPU addresses.
const END: u64 = 1 << 47;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) va: u64,
    pub(crate) bytes: u64,
    access: Access,
}

impl Range {
    pub(crate) fn new(va: u64, pages: u32, access: Access) -> Self {
        Self {
            va,
            bytes: u64::from(pages) * u64::from(PAGE_SIZE),
            access,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.va.saturating_add(self.bytes)
    }

    pub(crate) fn flags(&self) -> u32 {
        let unless = |allowed, flag| match self.access.contains(allowed) {
            true => 0,
            false => flag,
        };
        unless(Access::WRITE, abi::MAP_READ_ONLY) | unless(Access::EXECUTE, abi::MAP_NO_EXECUTE)
    }
}

/// Room for a launch's instructions and a page on each side, outside all ranges.
pub(crate) fn gap(ranges: &[Range], end: u64) -> Option<u64> {
    let (page, mut top) = (u64::from(PAGE_SIZE), end);
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.va));
    for range in ranges {
        if top.saturating_sub(range.end()) >= STREAM + 2 * page {
            break;
        }
        top = top.min(range.va);
    }
    top.checked_sub(STREAM + page).filter(|at| *at >= page)
}

pub(crate) fn fits(recording: &Recording<'_>) -> Result<(), Misfit> {
    if recording.header().family.get() != FAMILY_STREAMS {
        return Err(Misfit::Chains);
    }
    let regions = recording.regions().iter();
    let ranges: Vec<Range> = regions
        .map(|region| Range::new(region.va.get(), region.pages.get(), Access(region.access)))
        .collect();
    if let Some(high) = ranges.iter().find(|range| range.end() > END) {
        return Err(Misfit::High(high.va));
    }
    gap(&ranges, END).map(drop).ok_or(Misfit::High(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(va: u64, pages: u32) -> Range {
        Range::new(va, pages, Access::READ_WRITE)
    }

    #[test]
    fn instructions_lie_apart_from_all_memory() {
        let page = 0x1000;
        assert_eq!(gap(&[], END), Some(END - STREAM - page));
        for ranges in [
            vec![range(0x1000, 1)],
            vec![range(END - page, 1)],
            vec![range(END - STREAM, 3), range(END - 4 * STREAM, 16)],
            vec![range(END - 2 * STREAM, 32), range(0x10_0000, 256)],
        ] {
            let at = gap(&ranges, END).unwrap();
            assert!(at + STREAM < END, "{at:#x}");
            for range in &ranges {
                assert!(at > range.end() || at + STREAM < range.va, "{at:#x}");
            }
        }
        let whole = range(0x4000, 0x1_0000);
        assert_eq!(gap(&[whole], whole.end() + 0x1000), None);
    }

    #[test]
    fn the_gpu_may_do_what_the_recording_says() {
        let flags = |access| Range::new(0, 1, access).flags();
        assert_eq!(flags(Access::READ_WRITE), abi::MAP_NO_EXECUTE);
        assert_eq!(flags(Access::READ_EXECUTE), abi::MAP_READ_ONLY);
        let neither = abi::MAP_READ_ONLY | abi::MAP_NO_EXECUTE;
        assert_eq!(flags(Access::READ), neither);
    }
}
