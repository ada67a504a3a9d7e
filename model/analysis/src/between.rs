// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races between jobs: accesses to a byte, one of which writes, that no dependency or barrier orders.
//!
//! Per word it keeps the first clause that writes, reads and changes it atomically: enough to notice a race, not to
//! list all pairs.

use std::collections::{BTreeMap, HashMap};

use gpureplay_shader::probe::{Access, AccessKind, Place, Storages};

use crate::pages::PAGE;
use crate::report::RaceKind;

const WORDS: usize = PAGE as usize / 4;
/// Of all jobs, 16 KiB each: at most 256 MiB.
const MOST: usize = 1 << 14;

/// Earlier jobs that may run at the same time, per job.
pub type Unordered = BTreeMap<usize, Vec<usize>>;

#[derive(Clone, Copy, Default)]
struct Word {
    /// Low half of the clause's address, never 0.
    clauses: [u32; 3],
    bytes: [u8; 3],
}

const STORE: usize = 0;
const LOAD: usize = 1;
const ATOMIC: usize = 2;

/// What a job reaches, without thread and group storage.
#[derive(Default)]
pub(crate) struct Reach {
    pages: HashMap<u64, Box<[Word; WORDS]>>,
    storages: Storages,
    /// High word of all clauses' addresses.
    high: u64,
    room: usize,
    pub(crate) full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) kind: RaceKind,
    pub(crate) clauses: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) words: u64,
    pub(crate) address: u64,
}

impl Reach {
    pub(crate) fn new(storages: Storages, room: usize) -> Self {
        Self {
            storages,
            room,
            ..Self::default()
        }
    }

    pub(crate) fn access(&mut self, access: &Access<'_>) {
        let kind = match access.kind {
            AccessKind::Store => STORE,
            AccessKind::Load => LOAD,
            AccessKind::Atomic => ATOMIC,
        };
        let clause = access.visit.site.clause;
        self.high = clause >> 32;
        for lane in access.visit.lanes.iter() {
            let address = access.address(lane);
            if self.storages.place(address) == Place::Global {
                self.mark(address, access.bytes.into(), kind, clause as u32);
            }
        }
    }

    fn mark(&mut self, address: u64, bytes: u64, kind: usize, clause: u32) {
        for at in address..address.saturating_add(bytes) {
            let page = at - at % PAGE;
            if self.pages.len() >= self.room && !self.pages.contains_key(&page) {
                self.full = true;
                return;
            }
            let words = self.pages.entry(page);
            let words = words.or_insert_with(|| Box::new([Word::default(); WORDS]));
            let word = &mut words[(at - page) as usize / 4];
            if word.bytes[kind] == 0 {
                word.clauses[kind] = clause;
            }
            word.bytes[kind] |= 1 << (at % 4);
        }
    }

    pub(crate) fn races(&self, earlier: &Reach) -> BTreeMap<Pair, Found> {
        const PAIRS: [(usize, usize, RaceKind); 7] = [
            (STORE, STORE, RaceKind::WriteWrite),
            (STORE, LOAD, RaceKind::ReadWrite),
            (LOAD, STORE, RaceKind::ReadWrite),
            (STORE, ATOMIC, RaceKind::Atomic),
            (ATOMIC, STORE, RaceKind::Atomic),
            (LOAD, ATOMIC, RaceKind::Atomic),
            (ATOMIC, LOAD, RaceKind::Atomic),
        ];
        let mut found: BTreeMap<Pair, Found> = BTreeMap::new();
        for (page, theirs) in &earlier.pages {
            let Some(mine) = self.pages.get(page) else {
                continue;
            };
            for (at, (first, second)) in (0u64..).zip(theirs.iter().zip(mine.iter())) {
                for (one, other, kind) in PAIRS {
                    if first.bytes[one] & second.bytes[other] == 0 {
                        continue;
                    }
                    let clauses = [
                        earlier.high << 32 | u64::from(first.clauses[one]),
                        self.high << 32 | u64::from(second.clauses[other]),
                    ];
                    let address = page + 4 * at;
                    let all = found
                        .entry(Pair { kind, clauses })
                        .or_insert(Found { words: 0, address });
                    all.words += 1;
                    all.address = all.address.min(address);
                }
            }
        }
        found
    }
}

#[derive(Default)]
pub(crate) struct Between {
    unordered: Unordered,
    kept: BTreeMap<usize, Reach>,
}

impl Between {
    pub(crate) fn new(unordered: Unordered) -> Self {
        Self {
            unordered,
            kept: BTreeMap::new(),
        }
    }

    /// Room in pages, if what it reaches matters.
    pub(crate) fn concerns(&self, job: usize) -> Option<usize> {
        let concerns = self.unordered.contains_key(&job)
            || self.unordered.values().any(|it| it.contains(&job));
        let kept: usize = self.kept.values().map(|reach| reach.pages.len()).sum();
        concerns.then(|| MOST.saturating_sub(kept))
    }

    pub(crate) fn ended(&mut self, job: usize, reach: Reach) -> Vec<(usize, Pair, Found)> {
        let earlier = self.unordered.get(&job).into_iter().flatten();
        let races = earlier
            .filter_map(|at| Some((*at, self.kept.get(at)?)))
            .flat_map(|(at, earlier)| {
                let found = reach.races(earlier).into_iter();
                found.map(move |(pair, found)| (at, pair, found))
            })
            .collect();
        self.kept.insert(job, reach);
        let unordered = &self.unordered;
        let later = |kept: usize| {
            let mut after = unordered.range(job + 1..);
            after.any(|(_, jobs)| jobs.contains(&kept))
        };
        self.kept.retain(|kept, _| later(*kept));
        races
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_the_pages_that_are_kept() {
        let mut between = Between::new((1..40).map(|job| (job, vec![0])).collect());
        let mut kept = 0;
        for job in 0..3 {
            let room = between.concerns(job).unwrap();
            assert_eq!(room, MOST - kept);
            let mut reach = Reach::new(Storages::default(), room);
            for page in 0..MOST as u64 / 2 + 10 {
                reach.mark(page * PAGE, 4, LOAD, 64);
            }
            assert_eq!(reach.full, room < MOST / 2 + 10);
            kept = reach.pages.len().max(kept);
            between.ended(job, reach);
        }
        assert_eq!(between.concerns(50), None);
    }
}
