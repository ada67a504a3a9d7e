// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the execution of a set of work groups counts.

use super::Core;
use crate::Statistics;

/// What was counted between two moments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    statistics: Statistics,
    /// Clauses by number, and how many lanes executed them.
    visits: Vec<(u32, u64)>,
    lane_costs: u64,
    clauses: u64,
}

impl Counts {
    /// Clauses that were taken from the limits.
    pub(crate) fn clauses(&self) -> u64 {
        self.clauses
    }

    /// Bytes of memory that it takes up, besides itself.
    pub(crate) fn bytes(&self) -> usize {
        self.visits.capacity() * size_of::<(u32, u64)>()
    }
}

impl Core<'_> {
    /// Counts from zero. What was counted before comes back with [`Core::end_counting`].
    pub(crate) fn begin_counting(&mut self) -> Counts {
        let visits = std::mem::take(&mut self.visits);
        Counts {
            statistics: std::mem::take(&mut self.statistics),
            visits: (0..).zip(visits).collect(),
            lane_costs: self.earlier_costs + self.lane_costs,
            clauses: self.cycles,
        }
    }

    /// What was counted since then; the count goes on from what it was before.
    pub(crate) fn end_counting(&mut self, before: Counts) -> Counts {
        let visits = (0..).zip(self.visits.iter().copied());
        let counts = Counts {
            statistics: self.statistics,
            visits: visits.filter(|&(_, lanes)| lanes != 0).collect(),
            lane_costs: self.earlier_costs + self.lane_costs - before.lane_costs,
            clauses: self.cycles - before.clauses,
        };
        self.statistics.add(&before.statistics);
        self.add_visits(&before.visits);
        counts
    }

    /// Counts what came again, and takes it from the clauses that [`Core::afford`] made sure of.
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
