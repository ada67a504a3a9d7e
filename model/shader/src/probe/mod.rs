// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looking into a dispatch: analysers are told of clauses and accesses.
//!
//! What an analyser is told of has not happened yet.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use gpureplay_shader::probe::{Analyser, Launch, Part, Visit, Wanted};
//!
//! /// Counts the threads that execute clauses.
//! #[derive(Default)]
//! struct Lanes(Arc<Mutex<u64>>);
//! struct Share(u64, Arc<Mutex<u64>>);
//!
//! impl Analyser for Lanes {
//!     fn wanted(&self) -> Wanted {
//!         Wanted { clauses: true, ..Wanted::default() }
//!     }
//!     fn part(&self, _: &Launch<'_>) -> Box<dyn Part> {
//!         Box::new(Share(0, self.0.clone()))
//!     }
//! }
//!
//! impl Part for Share {
//!     fn clause(&mut self, visit: &Visit<'_>) {
//!         self.0 += u64::from(visit.lanes.active.count_ones());
//!     }
//!     fn finish(self: Box<Self>) {
//!         *self.1.lock().unwrap() += self.0;
//!     }
//! }
//! ```

mod insert;
mod operations;

pub(crate) use self::insert::{insert, insert_into};
use crate::Grid;
use crate::engine::layout::Layout;
use crate::ir::{Clause, Program};
use crate::rows::LANES;

/// What an analyser is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Executions of clauses.
    pub clauses: bool,
    /// Loads, stores, atomic operations.
    pub accesses: bool,
    /// Work groups run in ascending order on one host thread; else in any order, in several parts.
    pub in_order: bool,
}

/// Looks into dispatches.
pub trait Analyser: Send + Sync {
    /// What it is told of.
    fn wanted(&self) -> Wanted;

    /// For one host thread, which takes work groups by chance: putting parts together must not depend on it.
    fn part(&self, launch: &Launch<'_>) -> Box<dyn Part>;
}

/// What one host thread tells its share to.
pub trait Part: Send {
    /// A clause begins.
    fn clause(&mut self, visit: &Visit<'_>) {
        let _ = visit;
    }

    /// Before an access.
    fn access(&mut self, access: &Access<'_>) {
        let _ = access;
    }

    /// An access without [`Part::access`]: textures and images by coordinates.
    fn unseen(&mut self, visit: &Visit<'_>) {
        let _ = visit;
    }

    /// Ended, perhaps by a fault or a stop.
    fn finish(self: Box<Self>);
}

/// A dispatch before it starts.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Its threads.
    pub grid: &'a Grid,
    /// Per work group.
    pub workgroup_threads: u32,
    /// Per warp.
    pub warp_lanes: u32,
}

/// An address's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All threads.
    Global,
    /// A work group.
    Group,
    /// A thread.
    Thread,
}

impl Launch<'_> {
    /// An address's memory.
    pub fn place(&self, address: u64) -> Place {
        Storages::of(self.grid).place(address)
    }
}

/// Storage of threads and work groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storages {
    thread: (u64, u64),
    group: (u64, u64),
}

impl Storages {
    /// Those of a dispatch.
    pub fn of(grid: &Grid) -> Storages {
        let (thread, group) = (&grid.thread_storage, &grid.workgroup_storage);
        let cores = u64::from(64 - grid.cores.usable.leading_zeros()).max(1);
        let bytes = |base: u64, each: u32, count: u32| match base {
            0 => (0, 0),
            base => {
                let one = u64::from(each) * u64::from(count);
                (base, one.saturating_mul(cores))
            }
        };
        Storages {
            thread: bytes(thread.base, thread.bytes_per_thread, thread.threads),
            group: bytes(group.base, group.bytes, group.instances),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.thread.1 == 0 && self.group.1 == 0
    }

    /// An address's memory.
    #[inline]
    pub fn place(&self, address: u64) -> Place {
        let within = |(base, bytes): (u64, u64)| address.wrapping_sub(base) < bytes;
        if within(self.group) {
            Place::Group
        } else if within(self.thread) {
            Place::Thread
        } else {
            Place::Global
        }
    }
}

/// A clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its address.
    pub clause: u64,
    /// FMA unit's instructions per lane, without NOP.
    pub fma: u32,
    /// ADD unit's instructions per lane, without NOP and messages.
    pub add: u32,
    /// Kind of the first message, which loads or stores.
    pub message: Option<&'static str>,
    /// Messages.
    pub messages: u32,
}

/// Lanes together: up to 64 threads of one or more work groups.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<'a> {
    /// Executing lanes.
    pub active: u64,
    /// Lanes not ended, here or elsewhere.
    pub live: u64,
    /// 4, 8 or 16 lanes; lane `n` is in warp `n / warp`.
    pub warp: u32,
    /// Barriers passed by the work groups.
    pub barriers: u32,
    /// The first thread of the first lane's work group.
    first: u64,
    /// Per lane, from `first` on.
    threads: &'a [u32; LANES],
    size: u32,
}

impl Lanes<'_> {
    /// Executing lanes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        crate::rows::lanes(self.active)
    }

    /// Number in the dispatch.
    #[inline]
    pub fn thread(&self, lane: usize) -> u64 {
        self.first + u64::from(self.threads[lane % LANES])
    }

    /// Work group in the dispatch.
    pub fn workgroup(&self, lane: usize) -> u64 {
        self.thread(lane) / u64::from(self.size.max(1))
    }

    /// A bit per warp, its first lane's.
    #[inline]
    pub fn warps_of(&self, mask: u64) -> u64 {
        let mut any = mask | mask >> 1;
        any |= any >> 2;
        if self.warp == 4 {
            return any & 0x1111_1111_1111_1111;
        }
        any |= any >> 4;
        if self.warp == 8 {
            return any & 0x0101_0101_0101_0101;
        }
        (any | any >> 8) & 0x0001_0001_0001_0001
    }

    /// Executing warps.
    #[inline]
    pub fn warps(&self) -> u32 {
        self.warps_of(self.active).count_ones()
    }

    /// Executing warps with lanes elsewhere.
    #[inline]
    pub fn divergent(&self) -> u32 {
        if self.active == self.live {
            return 0;
        }
        (self.warps_of(self.active) & self.warps_of(self.live & !self.active)).count_ones()
    }
}

/// A clause's execution.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The clause.
    pub site: &'a Site,
    /// From 0, as this part met them.
    pub number: u32,
    /// Lanes that execute it.
    pub lanes: Lanes<'a>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes at once.
    Atomic,
}

/// Accesses of several lanes, by one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The clause and its message.
    pub visit: Visit<'a>,
    /// What it does.
    pub kind: AccessKind,
    /// Per lane, 1 to 16.
    pub bytes: u32,
    /// Low address words, by lane.
    pub low: &'a [u32; LANES],
    /// High address words, by lane.
    pub high: &'a [u32; LANES],
    /// Stored words; `None`: memory will hold others.
    pub values: Option<[&'a [u32; LANES]; 4]>,
}

impl Access<'_> {
    /// Address of a lane's first byte.
    #[inline]
    pub fn address(&self, lane: usize) -> u64 {
        u64::from(self.high[lane % LANES]) << 32 | u64::from(self.low[lane % LANES])
    }

    /// A lane's bytes to write.
    pub fn value(&self, lane: usize) -> Option<[u8; 16]> {
        let words = self.values?.map(|row| row[lane % LANES]);
        Some(crate::words::bytes_of(words))
    }

    /// Whether all active lanes have one address.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        let first = self.visit.lanes.active.trailing_zeros() as usize % LANES;
        let (low, high) = (self.low[first], self.high[first]);
        let differ = |(lane, (&l, &h)): (usize, (&u32, &u32))| {
            (l ^ low | h ^ high) & ((self.visit.lanes.active >> lane) as u32 & 1).wrapping_neg()
        };
        let rows = self.low.iter().zip(self.high).enumerate();
        rows.map(differ).fold(0, |all, one| all | one) == 0
    }

    /// Whether neighbouring lanes' bytes are consecutive.
    #[inline]
    pub fn is_consecutive(&self) -> bool {
        let active = self.visit.lanes.active;
        let first = active.trailing_zeros() as usize % LANES;
        let run = active >> first;
        if run & run.wrapping_add(1) != 0 {
            return false;
        }
        let (start, high) = (self.low[first], self.high[first]);
        let count = active.count_ones();
        if start.checked_add(self.bytes * count).is_none() {
            return false;
        }
        let differ = |(lane, (&l, &h)): (usize, (&u32, &u32))| {
            let expected = start.wrapping_add(
                (lane as u32)
                    .wrapping_sub(first as u32)
                    .wrapping_mul(self.bytes),
            );
            (l ^ expected | h ^ high) & ((active >> lane) as u32 & 1).wrapping_neg()
        };
        let rows = self.low.iter().zip(self.high).enumerate();
        rows.map(differ).fold(0, |all, one| all | one) == 0
    }
}

fn site(clause: &Clause, kinds: &[&'static str]) -> Site {
    let kind = clause.messages.first();
    Site {
        clause: clause.address,
        fma: clause.fma as u32,
        add: clause.add as u32,
        message: kind.and_then(|&kind| kinds.get(usize::from(kind)).copied()),
        messages: clause.messages.len() as u32,
    }
}

pub(crate) struct Probing {
    part: Option<Box<dyn Part>>,
    wanted: Wanted,
    warp: u32,
    size: u32,
    kinds: &'static [&'static str],
    sites: Vec<Site>,
    threads: Vec<[u32; LANES]>,
    batch: usize,
    first: u64,
    barriers: u32,
}

impl Probing {
    pub(crate) fn new(
        analyser: &dyn Analyser,
        launch: &Launch<'_>,
        layout: &Layout,
        kinds: &'static [&'static str],
    ) -> Probing {
        let number = |batch: usize, lane: usize| {
            let number = (batch * LANES + lane) as u32;
            number / layout.pitch * layout.size + number % layout.pitch
        };
        Probing {
            part: Some(analyser.part(launch)),
            wanted: analyser.wanted(),
            warp: launch.warp_lanes,
            size: layout.size,
            kinds,
            sites: Vec::new(),
            threads: (0..layout.batches())
                .map(|batch| std::array::from_fn(|lane| number(batch, lane)))
                .collect(),
            batch: 0,
            first: 0,
            barriers: 0,
        }
    }

    pub(crate) fn learn(&mut self, program: &Program) {
        let new = program.clauses.get(self.sites.len()..);
        let new = new.unwrap_or_default().iter();
        self.sites
            .extend(new.map(|clause| site(clause, self.kinds)));
    }

    pub(crate) fn insert_into(&mut self, program: &mut Program, clause: usize) {
        insert_into(program, clause, self.wanted);
        self.learn(program);
        if let (Some(known), Some(clause)) =
            (self.sites.get_mut(clause), program.clauses.get(clause))
        {
            *known = site(clause, self.kinds);
        }
    }

    pub(crate) fn begin(&mut self, workgroup: u64) {
        self.first = workgroup.wrapping_mul(self.size.into());
        self.barriers = 0;
    }

    pub(crate) fn switch(&mut self, batch: usize) {
        self.batch = batch;
    }

    pub(crate) fn pass_barrier(&mut self) {
        self.barriers = self.barriers.saturating_add(1);
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            part.finish();
        }
    }
}
