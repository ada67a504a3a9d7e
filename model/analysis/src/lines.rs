// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that warps use, against those of touched lines.
//!
//! The unit is an access of a warp's active lanes, however the model groups warps.

use std::collections::BTreeMap;

use gpureplay_shader::probe::{Access, AccessKind, Site};

use crate::heat::LINE;
use crate::pattern::Pattern;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) accesses: u64,
    pub(crate) asked: u64,
    pub(crate) used: u64,
    pub(crate) lines: u64,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl Use {
    fn add(&mut self, other: &Use) {
        self.accesses += other.accesses;
        self.asked += other.asked;
        self.used += other.used;
        self.lines += other.lines;
        self.read += other.read;
        self.written += other.written;
    }
}

/// Of one host thread, by clause number.
#[derive(Default)]
pub(crate) struct Lines(Vec<(Option<Site>, Use)>);

fn lines_of(at: u64, bytes: u64) -> u64 {
    (at % LINE + bytes).div_ceil(LINE)
}

impl Lines {
    pub(crate) fn access(&mut self, access: &Access<'_>, pattern: Pattern) {
        let visit = &access.visit;
        let number = visit.number as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, (None, Use::default()));
        }
        let (site, sum) = &mut self.0[number];
        site.get_or_insert(*visit.site);
        let (lanes, warp) = (&visit.lanes, visit.lanes.warp);
        let bytes = u64::from(access.bytes);
        let warps = u64::from(lanes.warps());
        let asked = u64::from(lanes.active.count_ones()) * bytes;
        sum.accesses += warps;
        sum.asked += asked;
        if access.kind != AccessKind::Store {
            sum.read += asked;
        }
        if access.kind != AccessKind::Load {
            sum.written += asked;
        }
        match pattern {
            Pattern::Uniform(at) => {
                sum.used += bytes * warps;
                sum.lines += lines_of(at, bytes) * warps;
            }
            Pattern::Consecutive(start) => {
                sum.used += asked;
                let mut at = start;
                for part in split(lanes.active, warp) {
                    let bytes = u64::from(part.count_ones()) * bytes;
                    sum.lines += lines_of(at, bytes);
                    at = at.wrapping_add(bytes);
                }
            }
            Pattern::Scattered => {
                for part in split(lanes.active, warp) {
                    let (used, lines) = scattered(access, part);
                    sum.used += used;
                    sum.lines += lines;
                }
            }
        }
    }

    pub(crate) fn merge_into(self, all: &mut BTreeMap<u64, Use>) {
        for (site, sum) in self.0 {
            if let Some(site) = site {
                all.entry(site.clause).or_default().add(&sum);
            }
        }
    }
}

fn split(active: u64, warp: u32) -> impl Iterator<Item = u64> {
    let first = u64::MAX >> (64 - warp);
    let masks = (0..64 / warp).map(move |number| active & first << (number * warp));
    masks.filter(|mask| *mask != 0)
}

fn scattered(access: &Access<'_>, mut part: u64) -> (u64, u64) {
    // Two each for sixteen lanes.
    const MOST: usize = 32;
    let mut lines = [(0, 0); MOST];
    let mut count = 0;
    while part != 0 {
        let address = access.address(part.trailing_zeros() as usize);
        part &= part - 1;
        let (mut at, mut left) = (address, u64::from(access.bytes));
        while left > 0 {
            let offset = at % LINE;
            let here = left.min(LINE - offset);
            let bits = (u64::MAX >> (64 - here)) << offset;
            let line = at / LINE;
            match lines[..count]
                .iter_mut()
                .rev()
                .find(|(known, _)| *known == line)
            {
                Some((_, used)) => *used |= bits,
                None if count < MOST => {
                    lines[count] = (line, bits);
                    count += 1;
                }
                None => {}
            }
            at = at.wrapping_add(here);
            left -= here;
        }
    }
    let used = lines[..count]
        .iter()
        .map(|(_, used)| u64::from(used.count_ones()));
    (used.sum(), count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_split_by_warp() {
        let parts: Vec<_> = split(0xf00f_0030, 4).collect();
        assert_eq!(parts, [0x30, 0xf_0000, 0xf000_0000]);
        let parts: Vec<_> = split(0xf00f_0030, 8).collect();
        assert_eq!(parts, [0x30, 0xf_0000, 0xf000_0000]);
        assert_eq!(split(u64::MAX, 8).count(), 8);
        let parts: Vec<_> = split(0xf00f_0030, 16).collect();
        assert_eq!(parts, [0x30, 0xf00f_0000]);
    }

    #[test]
    fn a_range_touches_the_lines_that_it_reaches_into() {
        assert_eq!(
            [
                lines_of(0, 64),
                lines_of(60, 4),
                lines_of(60, 5),
                lines_of(1, 64)
            ],
            [1, 1, 2, 2]
        );
    }
}
