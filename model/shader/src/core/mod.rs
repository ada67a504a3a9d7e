// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host thread's batches share.

mod counts;
mod family;
mod tlb;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) use counts::Counts;
pub use family::{Begin, Family, Ids};
pub use tlb::{OFFSET, Tlb};
pub use trouble::{Done, Trouble};

use crate::ir::{Clause, Translate};
use crate::probe::Probing;
use crate::rows::Row;
use crate::{Access, AddressSpace, Control, FaultKind, Grid, Statistics};

/// Clauses taken from the control at once.
const SHARE: u64 = 1024;

/// Units of lane-by-lane work in a clause.
const LANE_COSTS: u64 = 16;

/// Clauses charged for a page's look-up.
const PAGE_COST: u64 = 8;

/// A uniform buffer.
#[derive(Clone, Copy, Debug)]
pub struct UniformBuffer {
    /// Virtual.
    pub address: u64,
    /// Size; what lies outside is zero.
    pub bytes: u64,
}

/// Rows filled lane by lane before they replace registers.
#[derive(Debug)]
pub struct Results(pub [Box<Row>; 4]);

impl Default for Results {
    fn default() -> Results {
        Results(std::array::from_fn(|_| Box::new(Row::ZERO)))
    }
}

impl Results {
    /// Writes a lane's words.
    #[inline(always)]
    pub fn put(&mut self, lane: usize, words: &[u32]) {
        for (row, word) in self.0.iter_mut().zip(words) {
            row.0[lane] = *word;
        }
    }
}

/// What a host thread's batches share.
pub struct Core<'s> {
    /// Threads.
    pub grid: &'s Grid,
    /// The family's part, this host thread's own.
    pub family: &'s mut dyn Family,
    pub(crate) isa: &'static dyn Translate,
    /// Per warp.
    pub warp_lanes: u32,
    pub(crate) ids: Ids,
    pub(crate) begin: Option<Begin>,
    pub(crate) uniforms: Arc<[u32]>,
    /// For loads.
    pub read: Tlb<'s>,
    /// For stores.
    pub write: Tlb<'s>,
    pub(crate) fetch: Tlb<'s>,
    /// Counts so far.
    pub statistics: Statistics,
    pub(crate) visits: Vec<u64>,
    pub(crate) ahead: u64,
    /// Of the executing operation.
    pub results: Results,
    control: &'s Control,
    /// Another host thread of the dispatch met a fault.
    stop: &'s AtomicBool,
    budget: u64,
    /// Not charged yet, in [`LANE_COSTS`] of a clause.
    lane_costs: u64,
    charged_lane_costs: u64,
    /// Counts clauses; shaders read it.
    pub cycles: u64,
    pub(crate) probing: Option<Box<Probing>>,
}

impl<'s> Core<'s> {
    pub(crate) fn new(
        grid: &'s Grid,
        family: &'s mut dyn Family,
        space: &'s dyn AddressSpace,
        control: &'s Control,
        stop: &'s AtomicBool,
    ) -> Core<'s> {
        Core {
            grid,
            isa: family.isa(),
            warp_lanes: family.warp_lanes(),
            ids: family.ids(),
            begin: family.begin(),
            family,
            uniforms: Arc::default(),
            read: Tlb::new(space, Access::Read),
            write: Tlb::new(space, Access::Write),
            fetch: Tlb::new(space, Access::Execute),
            statistics: Statistics::default(),
            visits: Vec::new(),
            ahead: 0,
            results: Results::default(),
            control,
            stop,
            budget: 0,
            lane_costs: 0,
            charged_lane_costs: 0,
            cycles: 0,
            probing: None,
        }
    }

    /// Spends one clause, or as many as [`Core::has`].
    #[inline(always)]
    pub(crate) fn spend(&mut self, clauses: u64) -> Done {
        if self.budget == 0 {
            self.refill()?;
        }
        self.budget -= clauses;
        self.cycles += clauses;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn has(&mut self, clauses: u64) -> bool {
        self.budget >= clauses || self.can_have(clauses)
    }

    #[cold]
    fn can_have(&mut self, clauses: u64) -> bool {
        self.budget == 0 && self.refill().is_ok() && self.budget >= clauses
    }

    pub(crate) fn charge(&self, clauses: u64) -> Done {
        if self.control.charge(clauses) {
            return Ok(());
        }
        Err(self.used_up())
    }

    #[cold]
    fn used_up(&self) -> Trouble {
        let work = self.control.work();
        if work.is_used_up() {
            let limit = work.limit();
            let text = format!("the limit of {limit} clauses for all work together is used up");
            return Trouble::new(FaultKind::WorkLimit, 0, text);
        }
        let text = "the shader used up the clauses that it was allowed; it may never end";
        Trouble::new(FaultKind::Budget, 0, text)
    }

    #[inline(always)]
    pub(crate) fn lane_by_lane(&mut self, lanes: u64, each: u32) {
        self.lane_costs += lanes * u64::from(each);
    }

    fn take_slow_clauses(&mut self) -> u64 {
        let costs = std::mem::take(&mut self.lane_costs);
        self.charged_lane_costs += costs;
        let slow = costs / LANE_COSTS;
        let tables = [&mut self.read, &mut self.write, &mut self.fetch];
        let pages: u64 = tables.into_iter().map(Tlb::take_misses).sum();
        slow + pages * PAGE_COST
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, number: u32, lanes: u64, clause: &Clause) {
        let number = number as usize;
        if number >= self.visits.len() {
            self.visits.resize(number + 1, 0);
        }
        self.statistics.clauses += clause.count();
        self.visits[number] += lanes;
        self.lane_by_lane(lanes, clause.lane_cost);
    }

    #[cold]
    pub(crate) fn uncount(&mut self, number: u32, lanes: u64, clause: &Clause) {
        self.statistics.clauses -= clause.count();
        self.visits[number as usize] -= lanes;
    }

    #[cold]
    fn refill(&mut self) -> Done {
        if self.control.is_aborted() || self.stop.load(Relaxed) {
            return Err(Trouble::new(
                FaultKind::Aborted,
                0,
                "the dispatch was told to stop",
            ));
        }
        let slow = self.take_slow_clauses();
        self.charge(slow)?;
        self.budget = self.control.take(SHARE);
        if self.budget == 0 {
            return Err(self.used_up());
        }
        Ok(())
    }

    /// False: a limit is near or the dispatch is to stop; executing the clauses shows which.
    pub(crate) fn afford(&mut self, clauses: u64) -> bool {
        if self.budget < clauses {
            if self.control.is_aborted() || self.stop.load(Relaxed) {
                return false;
            }
            let slow = self.take_slow_clauses();
            if self.charge(slow).is_err() {
                return false;
            }
            self.budget += self.control.take((clauses - self.budget).max(SHARE));
        }
        self.budget >= clauses
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        self.control.give_back(self.budget);
        // If this uses up the limit, the next dispatch reports it.
        let _ = self.control.charge(self.take_slow_clauses());
    }
}
