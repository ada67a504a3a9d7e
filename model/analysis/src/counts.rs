// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executions of clauses, lanes, and parting warps.

use std::collections::BTreeMap;

use gpureplay_shader::probe::{Site, Visit};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) warps: u64,
    pub(crate) lanes: u64,
    pub(crate) divergent: u64,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.warps += other.warps;
        self.lanes += other.lanes;
        self.divergent += other.divergent;
    }
}

/// Of one host thread, by clause number.
#[derive(Default)]
pub(crate) struct Counts(Vec<(Option<Site>, Count)>);

impl Counts {
    #[inline]
    pub(crate) fn clause(&mut self, visit: &Visit<'_>) {
        let number = visit.number as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, (None, Count::default()));
        }
        let (site, count) = &mut self.0[number];
        site.get_or_insert(*visit.site);
        count.warps += u64::from(visit.lanes.warps());
        count.lanes += u64::from(visit.lanes.active.count_ones());
        count.divergent += u64::from(visit.lanes.divergent());
    }

    pub(crate) fn merge_into(self, all: &mut BTreeMap<u64, (Site, Count)>) {
        for (site, count) in self.0 {
            if let Some(site) = site {
                let entry = all.entry(site.clause);
                entry.or_insert((site, Count::default())).1.add(&count);
            }
        }
    }
}
