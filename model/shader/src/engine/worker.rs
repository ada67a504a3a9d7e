// SPDX-License-Identifier: MIT OR Apache-2.0
//! One host thread's share of a dispatch.

use std::sync::Arc;

use super::batch::{Batch, Execute, Plainly};
use super::layout::Layout;
use super::places::Places;
use super::prepared::{Prepared, Purpose};
use super::tracks::{Resolved, Set, Tracks, Way};
use crate::core::{Core, Ids};
use crate::ir::{Program, special};
use crate::rows::{LANES, Rows, lanes};
use crate::{Grid, ShaderFault, Statistics, Threads};

pub(crate) struct Worker<'s> {
    pub(crate) core: Core<'s>,
    program: Arc<Program>,
    layout: Layout,
    batches: Vec<Batch>,
    places: Vec<Places>,
    tracks: Tracks,
    pages: Resolved<'s>,
    index: u32,
    placed: Option<u32>,
    visible: u64,
    threads: &'s Threads,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(
        core: Core<'s>,
        program: Arc<Program>,
        layout: Layout,
        index: u32,
        threads: &'s Threads,
    ) -> Worker<'s> {
        let purpose = Purpose::new(&core, &program, layout, index);
        let prepared = threads
            .take_rows(&purpose)
            .unwrap_or_else(|others| prepare(&core, &program, purpose, others, threads));
        let batches = prepared.rows.into_iter().map(Batch::new).collect();
        let visible = program.first_values();
        Worker {
            core,
            program,
            layout,
            batches,
            places: prepared.places,
            tracks: prepared.tracks,
            pages: Resolved::default(),
            index,
            placed: prepared.placed,
            visible,
            threads,
        }
    }

    pub(crate) fn totals(&self) -> Statistics {
        totals(&self.core, &self.program)
    }

    pub(crate) fn run(&mut self, first: u64, core: Option<u32>) -> Result<(), Box<ShaderFault>> {
        if !self.program.own || self.core.begin.is_some() || self.core.probing.is_some() {
            return self.execute(first, core, &mut Plainly);
        }
        let set = Set { first, core };
        let sets = self.layout.sets();
        let (pages, batches) = (&mut self.pages, &mut self.batches);
        match self.tracks.go((set, sets), pages, batches, &mut self.core) {
            Way::Followed => Ok(()),
            Way::Execute => self.execute(first, core, &mut Plainly),
            Way::Record => {
                let mut recorder = self.tracks.recorder(self.batches.len());
                let before = self.core.begin_counting();
                let result = self.execute(first, core, &mut recorder);
                let counts = self.core.end_counting(before);
                let counted = (counts, result.is_err());
                let batches = &mut self.batches;
                self.tracks.keep(set, recorder, counted, batches);
                result
            }
        }
    }

    fn execute(
        &mut self,
        first: u64,
        core: Option<u32>,
        executor: &mut impl Execute,
    ) -> Result<(), Box<ShaderFault>> {
        self.move_to(core);
        let count = self
            .layout
            .workgroups
            .saturating_sub(first)
            .min(self.layout.together.into()) as u32;
        for batch in 0..self.batches.len() {
            self.start(batch, first, count);
        }
        if let (Some(begin), Some(batch)) = (self.core.begin, self.batches.first_mut()) {
            let begun = begin(&mut batch.rows, &mut self.core, first, count);
            let starting = begun.map_err(|trouble| ShaderFault {
                kind: trouble.kind,
                address: trouble.address,
                clause: self.program.entry,
                text: format!("message before the shader: {}", trouble.text),
            })?;
            if let Some(mask) = starting {
                batch.start(&self.program, mask);
            }
        }
        if let Some(probing) = &mut self.core.probing {
            probing.begin(first);
        }
        self.core.statistics.workgroups += u64::from(count);
        self.core.statistics.threads += u64::from(count) * u64::from(self.layout.size);
        loop {
            for (index, batch) in self.batches.iter_mut().enumerate() {
                if let Some(probing) = &mut self.core.probing {
                    probing.switch(index);
                }
                executor.switch(index);
                batch.run(&mut self.program, &mut self.core, executor)?;
            }
            let mut waiting = false;
            for batch in &mut self.batches {
                waiting |= batch.is_waiting();
                batch.release();
            }
            if !waiting {
                return Ok(());
            }
            if let Some(probing) = &mut self.core.probing {
                probing.pass_barrier();
            }
        }
    }

    /// Without a core, lanes get the first one's storage and the host thread's number.
    fn move_to(&mut self, core: Option<u32>) {
        if self.placed == core {
            return;
        }
        self.placed = core;
        let (at, id) = ((self.index, core.unwrap_or(0)), core.unwrap_or(self.index));
        for (number, (batch, places)) in self.batches.iter_mut().zip(&self.places).enumerate() {
            let (rows, grid) = (&mut batch.rows, self.core.grid);
            place(rows, grid, &self.layout, at, number, places);
            rows.get_mut(special::CORE_ID).0.fill(id);
        }
    }

    fn start(&mut self, index: usize, first: u64, count: u32) {
        let size = self.core.grid.workgroup_size;
        let batch = &mut self.batches[index];
        let ids = self.core.ids;
        let mut visible = self.visible & !preloaded(ids);
        while visible != 0 {
            batch
                .rows
                .get_mut(visible.trailing_zeros() as u16)
                .0
                .fill(0);
            visible &= visible - 1;
        }
        let reads = |register: u16| self.visible >> register & 1 == 1;
        let place = &self.places[index];
        if reads(ids.local_xy) {
            batch.rows.get_mut(ids.local_xy).0 = place.packed.0;
        }
        if reads(ids.local_z) {
            batch.rows.get_mut(ids.local_z).0 = place.local[2].0;
        }
        for axis in 0..3u16 {
            let (group, global) = (ids.workgroup + axis, ids.global + axis);
            if !reads(group) && !reads(global) {
                continue;
            }
            let axis = usize::from(axis);
            let counts = self.core.grid.workgroup_count;
            let numbers = (first..first + u64::from(count)).map(|at| coordinate(at, counts, axis));
            for (number, lanes) in numbers.zip(self.layout.groups(index)) {
                batch.rows.get_mut(group).0[lanes.clone()].fill(number);
                if reads(global) {
                    let base = number.wrapping_mul(size[axis]);
                    let ids = &mut batch.rows.get_mut(global).0[lanes.clone()];
                    for (to, local) in ids.iter_mut().zip(&place.local[axis].0[lanes]) {
                        *to = base.wrapping_add(*local);
                    }
                }
            }
        }
        // Only the last set lacks work groups.
        let mask = if count == self.layout.together {
            place.mask
        } else {
            lanes(place.mask)
                .filter(|&lane| place.group.0[lane] < count)
                .fold(0, |mask, lane| mask | 1 << lane)
        };
        batch.start(&self.program, mask);
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let rows = self.batches.drain(..).map(|batch| batch.rows).collect();
        let prepared = Prepared {
            purpose: Purpose::new(&self.core, &self.program, self.layout, self.index),
            rows,
            places: std::mem::take(&mut self.places),
            tracks: self.tracks.take(),
            placed: self.placed,
        };
        self.threads.give_rows(prepared, self.program.own);
    }
}

fn prepare(
    core: &Core<'_>,
    program: &Program,
    purpose: Purpose,
    others: Vec<Rows>,
    threads: &Threads,
) -> Prepared {
    let (grid, layout, worker) = (core.grid, purpose.layout, purpose.worker);
    let places: Vec<_> = (0..layout.batches())
        .map(|batch| Places::new(&layout, grid.workgroup_size, batch))
        .collect();
    let mut others = others.into_iter();
    let prepared = |(batch, places): (usize, &Places)| {
        let width = (layout.lanes() as usize - batch * LANES).min(LANES);
        let mut rows = match others.next() {
            Some(mut rows) => {
                rows.reset(special::CONSTANT, width);
                rows
            }
            None => Rows::new(special::CONSTANT, width),
        };
        program.complete(&mut rows, &core.uniforms);
        fill_specials(&mut rows, core.warp_lanes, &layout, worker, batch);
        place(&mut rows, grid, &layout, (worker, 0), batch, places);
        rows
    };
    Prepared {
        rows: places.iter().enumerate().map(prepared).collect(),
        places,
        tracks: Tracks::new(threads.room.share()),
        purpose,
        placed: None,
    }
}

pub(crate) fn totals(core: &Core<'_>, program: &Program) -> Statistics {
    let mut totals = core.statistics.naming(core.isa.messages());
    let visits = program.clauses.iter().zip(&core.visits);
    for (clause, &lanes) in visits.filter(|(_, lanes)| **lanes != 0) {
        totals.fma += clause.fma * lanes;
        totals.add += clause.add * lanes;
        for &message in &clause.messages {
            totals.count_message(message, lanes);
        }
    }
    totals
}

fn coordinate(number: u64, [columns, lines, _]: [u32; 3], axis: usize) -> u32 {
    match axis {
        // A single row needs no division.
        0 if number < u64::from(columns) => number as u32,
        1 | 2 if number < u64::from(columns) => 0,
        0 => (number % u64::from(columns)) as u32,
        1 => (number / u64::from(columns) % u64::from(lines)) as u32,
        _ => (number / (u64::from(columns) * u64::from(lines))) as u32,
    }
}

#[inline]
fn preloaded(ids: Ids) -> u64 {
    1 << ids.local_xy | 1 << ids.local_z | 7 << ids.workgroup | 7 << ids.global
}

fn fill_specials(rows: &mut Rows, warp: u32, layout: &Layout, worker: u32, batch: usize) {
    rows.get_mut(special::CORE_ID).0.fill(worker);
    let local = (batch * LANES) as u32 % layout.pitch;
    let (mut lane_id, mut warp_id) = (local % warp, local / warp);
    let (mut lane_ids, mut warp_ids) = ([0; LANES], [0; LANES]);
    for (lane, warp_of) in lane_ids.iter_mut().zip(&mut warp_ids) {
        (*lane, *warp_of) = (lane_id, warp_id);
        lane_id += 1;
        if lane_id == warp {
            (lane_id, warp_id) = (0, warp_id + 1);
        }
        if warp_id * warp + lane_id == layout.pitch {
            (lane_id, warp_id) = (0, 0);
        }
    }
    rows.get_mut(special::LANE_ID).0 = lane_ids;
    rows.get_mut(special::WARP_ID).0 = warp_ids;
}

/// A host thread has the same places in each core's storage, so no two share one.
fn place(
    rows: &mut Rows,
    grid: &Grid,
    layout: &Layout,
    (worker, core): (u32, u32),
    batch: usize,
    places: &Places,
) {
    let (tls, wls) = (&grid.thread_storage, &grid.workgroup_storage);
    let (worker, core) = (u64::from(worker), u64::from(core));
    if (tls.base, tls.bytes_per_thread, wls.base, wls.bytes) == (0, 0, 0, 0) {
        return;
    }
    let threads = core * u64::from(tls.threads) + worker * u64::from(layout.lanes());
    let instances = core * u64::from(wls.instances) + worker * u64::from(layout.together);
    for lane in lanes(u64::MAX) {
        let mut set = |row: u16, value: u32| rows.get_mut(row).0[lane] = value;
        let thread = threads + (batch * LANES + lane) as u64;
        let own = tls
            .base
            .wrapping_add(thread.wrapping_mul(tls.bytes_per_thread.into()));
        let instance = instances + u64::from(places.group.0[lane]);
        let shared = wls
            .base
            .wrapping_add(instance.wrapping_mul(wls.bytes.into()));
        set(special::THREAD_LOW, own as u32);
        set(special::THREAD_HIGH, (own >> 32) as u32);
        set(special::WORKGROUP_LOW, shared as u32);
        set(special::WORKGROUP_HIGH, (shared >> 32) as u32);
    }
}
