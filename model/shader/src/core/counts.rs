// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of executed work groups.

use super::Core;
use crate::Statistics;

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    statistics: Statistics,
    visits: Vec<(u32, u64)>,
    lane_costs: u64,
    clauses: u64,
}

impl Counts {
    pub(crate) fn clauses(&self) -> u64 {
        self.clauses
    }

    pub(crate) fn bytes(&self) -> usize {
        self.visits.capacity() * size_of::<(u32, u64)>()
    }
}

impl Core<'_> {
    pub(crate) fn begin_counting(&mut self) -> Counts {
        let visits = std::mem::take(&mut self.visits);
        Counts {
            statistics: std::mem::take(&mut self.statistics),
            visits: (0..).zip(visits).collect(),
            lane_costs: self.charged_lane_costs + self.lane_costs,
            clauses: self.cycles,
        }
    }

    pub(crate) fn end_counting(&mut self, before: Counts) -> Counts {
        let visits = (0..).zip(self.visits.iter().copied());
        let counts = Counts {
            statistics: self.statistics,
            visits: visits.filter(|&(_, lanes)| lanes != 0).collect(),
            lane_costs: self.charged_lane_costs + self.lane_costs - before.lane_costs,
            clauses: self.cycles - before.clauses,
        };
        self.statistics.add(&before.statistics);
        self.add_visits(&before.visits);
        counts
    }

    /// Needs a successful [`Core::afford`] of the clauses.
    pub(crate) fn add_counts(&mut self, counts: &Counts) {
        self.statistics.add(&counts.statistics);
        self.add_visits(&counts.visits);
        self.lane_costs += counts.lane_costs;
        self.cycles += counts.clauses;
        self.budget -= counts.clauses;
    }

    fn add_visits(&mut self, visits: &[(u32, u64)]) {
        if let Some((last, _)) = visits.last() {
            let count = (*last as usize + 1).max(self.visits.len());
            self.visits.resize(count, 0);
        }
        for &(number, lanes) in visits {
            self.visits[number as usize] += lanes;
        }
    }
}
