// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes read and written, by line.

use gpureplay_shader::probe::{Access, AccessKind};

use crate::pages::{PAGE, Pages};
use crate::pattern::Pattern;

/// Bytes; level-2 cache of all job-manager GPUs.
pub(crate) const LINE: u64 = 64;

const LINES: usize = (PAGE / LINE) as usize;

/// 4 GiB of memory, a quarter of that for counts.
const MOST: usize = 1 << 20;

pub(crate) struct Page(pub(crate) [[u64; 2]; LINES]);

impl Default for Page {
    fn default() -> Page {
        Page([[0; 2]; LINES])
    }
}

pub(crate) struct Heat {
    pub(crate) pages: Pages<Page>,
}

impl Default for Heat {
    fn default() -> Heat {
        Heat {
            pages: Pages::new(MOST),
        }
    }
}

impl Heat {
    pub(crate) fn access(&mut self, access: &Access<'_>, pattern: Pattern) {
        let how = match access.kind {
            AccessKind::Load => [1, 0],
            AccessKind::Store => [0, 1],
            AccessKind::Atomic => [1, 1],
        };
        let bytes = u64::from(access.bytes);
        let lanes = u64::from(access.visit.lanes.active.count_ones());
        match pattern {
            Pattern::Uniform(at) => self.add(at, bytes, how.map(|one| one * lanes)),
            Pattern::Consecutive(at) => self.add(at, bytes * lanes, how),
            Pattern::Scattered => {
                for lane in access.visit.lanes.iter() {
                    self.add(access.address(lane), bytes, how);
                }
            }
        }
    }

    #[inline]
    fn add(&mut self, mut at: u64, mut bytes: u64, how: [u64; 2]) {
        while bytes > 0 {
            let part = bytes.min(LINE - at % LINE);
            if let Some(page) = self.pages.page(at / PAGE) {
                let line = &mut page.0[(at % PAGE / LINE) as usize];
                line[0] += part * how[0];
                line[1] += part * how[1];
            }
            at = at.wrapping_add(part);
            bytes -= part;
        }
    }

    pub(crate) fn merge(&mut self, other: Heat) {
        self.pages.full |= other.pages.full;
        for (number, from) in other.pages.into_pages() {
            if let Some(page) = self.pages.page(number) {
                for (line, from) in page.0.iter_mut().zip(from.0) {
                    line[0] += from[0];
                    line[1] += from[1];
                }
            }
        }
    }
}
