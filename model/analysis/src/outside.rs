// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to buffers of no tensor.

use std::collections::BTreeMap;
use std::sync::Arc;

use gpureplay_shader::probe::{Access, AccessKind};

use crate::map::{AreaKind, Map};
use crate::pattern::Pattern;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub(crate) lanes: u64,
    pub(crate) bytes: u64,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    pub(crate) thread: u64,
}

impl Stray {
    fn add(&mut self, other: &Stray) {
        self.lanes += other.lanes;
        self.bytes += other.bytes;
        self.highest = self.highest.max(other.highest);
        if (other.lowest, other.thread) < (self.lowest, self.thread) {
            (self.lowest, self.thread) = (other.lowest, other.thread);
        }
    }
}

/// By clause; true: writes.
pub(crate) type Strays = BTreeMap<(u64, bool), Stray>;

pub(crate) struct Outside {
    map: Arc<Map>,
    pub(crate) strays: Strays,
    last: (bool, u64, u64),
}

impl Outside {
    pub(crate) fn new(map: Arc<Map>) -> Outside {
        Outside {
            map,
            strays: Strays::new(),
            last: (true, 0, 0),
        }
    }

    #[inline]
    fn is_inside(&mut self, at: u64, bytes: u64) -> bool {
        let (inside, start, end) = self.last;
        if inside && at >= start && at.saturating_add(bytes) <= end {
            return true;
        }
        self.last = self.map.covered(at);
        self.last.0 && at.saturating_add(bytes) <= self.last.2
    }

    pub(crate) fn access(&mut self, access: &Access<'_>, pattern: Pattern) {
        let bytes = u64::from(access.bytes);
        let lanes = &access.visit.lanes;
        let all = bytes * u64::from(lanes.active.count_ones());
        let inside = match pattern {
            Pattern::Uniform(at) => self.is_inside(at, bytes),
            Pattern::Consecutive(at) => self.is_inside(at, all),
            Pattern::Scattered => false,
        };
        if inside {
            return;
        }
        for lane in lanes.iter() {
            let at = access.address(lane);
            if !self.is_inside(at, bytes) {
                self.stray(access, lane, at, bytes);
            }
        }
    }

    #[cold]
    fn stray(&mut self, access: &Access<'_>, lane: usize, at: u64, bytes: u64) {
        let writes = access.kind != AccessKind::Load;
        // They belong to no tensor.
        match self.map.kind(at) {
            Some(AreaKind::Scratch) => return,
            Some(AreaKind::Descriptors | AreaKind::Code) if !writes => return,
            _ => {}
        }
        let (inside, _, end) = self.map.covered(at);
        let last = at.saturating_add(bytes - 1);
        let (lowest, highest, bytes) = if !inside && last < end {
            (at, last, bytes)
        } else {
            let out = |byte: &u64| !self.map.covered(*byte).0;
            let mut found = (at..=last).filter(out);
            let Some(lowest) = found.next() else { return };
            let more = found.clone().count() as u64;
            (lowest, found.next_back().unwrap_or(lowest), 1 + more)
        };
        let stray = Stray {
            lanes: 1,
            bytes,
            lowest,
            highest,
            thread: access.visit.lanes.thread(lane),
        };
        let key = (access.visit.site.clause, writes);
        let known = self.strays.entry(key);
        known.and_modify(|known| known.add(&stray)).or_insert(stray);
    }

    pub(crate) fn merge_into(self, all: &mut Strays) {
        for (key, stray) in self.strays {
            let known = all.entry(key);
            known.and_modify(|known| known.add(&stray)).or_insert(stray);
        }
    }
}
