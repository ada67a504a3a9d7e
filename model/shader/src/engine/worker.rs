// SPDX-License-Identifier: MIT OR Apache-2.0
//! One host thread's share of a dispatch: it takes work groups, sets up their threads and runs them.

use super::batch::Batch;
use super::core::Core;
use super::memory::lanes;
use super::rows::{LANES, Rows};
use crate::program::{Program, special};
use crate::{Dispatch, ShaderFault};

/// How work groups are laid out in batches; the same for all host threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Threads of a work group.
    pub(crate) size: u32,
    /// Lanes from one work group to the next when several share a batch; a whole number of warps if lanes see one
    /// another.
    pub(crate) pitch: u32,
    /// Work groups that run together.
    pub(crate) together: u32,
    /// Work groups in all.
    pub(crate) workgroups: u64,
}

impl Layout {
    /// Lanes that a host thread has.
    pub(crate) fn lanes(&self) -> u32 {
        self.pitch * self.together
    }

    fn batches(&self) -> usize {
        (self.lanes() as usize).div_ceil(LANES).max(1)
    }
}

/// A thread's place in its work group.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    local: [u32; 3],
    /// Which of the work groups that run together.
    group: u32,
}

/// Runs work groups, one set after the other.
pub(crate) struct Worker<'s> {
    pub(crate) core: Core<'s>,
    program: Program,
    layout: Layout,
    batches: Vec<Batch>,
    places: Vec<Option<Place>>,
    /// Registers whose first value a thread can see.
    visible: u64,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(core: Core<'s>, program: Program, layout: Layout, index: u32) -> Worker<'s> {
        let [width, height, _] = core.dispatch.workgroup_size;
        let places = (0..layout.batches() * LANES).map(|lane| {
            let (group, local) = (lane as u32 / layout.pitch, lane as u32 % layout.pitch);
            (local < layout.size && group < layout.together).then(|| Place {
                local: [
                    local % width,
                    local / width % height,
                    local / width / height,
                ],
                group,
            })
        });
        let places: Vec<_> = places.collect();
        let batches = (0..layout.batches())
            .map(|batch| {
                let width = (layout.lanes() as usize - batch * LANES).min(LANES);
                let mut rows = Rows::new(special::CONSTANT, width);
                program.complete(&mut rows);
                fill_specials(&mut rows, core.dispatch, &layout, index, batch, &places);
                Batch::new(rows)
            })
            .collect();
        let visible = program.visible;
        Worker {
            core,
            program,
            layout,
            batches,
            places,
            visible,
        }
    }

    /// Runs the work groups from number `first` on that run together.
    pub(crate) fn run(&mut self, first: u64) -> Result<(), Box<ShaderFault>> {
        let count = self
            .layout
            .workgroups
            .saturating_sub(first)
            .min(self.layout.together.into()) as u32;
        for batch in 0..self.batches.len() {
            self.start(batch, first, count);
        }
        self.core.statistics.workgroups += u64::from(count);
        self.core.statistics.threads += u64::from(count) * u64::from(self.layout.size);
        loop {
            for batch in &mut self.batches {
                batch.run(&mut self.program, &mut self.core)?;
            }
            let mut waiting = false;
            for batch in &mut self.batches {
                waiting |= batch.is_waiting();
                batch.release();
            }
            if !waiting {
                return Ok(());
            }
        }
    }

    /// Gives the lanes of a batch their first register values.
    fn start(&mut self, index: usize, first: u64, count: u32) {
        let [columns, lines, _] = self.core.dispatch.workgroup_count;
        let size = self.core.dispatch.workgroup_size;
        let batch = &mut self.batches[index];
        let mut visible = self.visible & !PRELOADED;
        while visible != 0 {
            batch
                .rows
                .get_mut(visible.trailing_zeros() as u16)
                .0
                .fill(0);
            visible &= visible - 1;
        }
        let mut mask = 0;
        let mut group = [0; 3];
        let mut known = u32::MAX;
        for lane in 0..batch.rows.lanes() {
            let Some(place) = self.places[index * LANES + lane].filter(|place| place.group < count)
            else {
                continue;
            };
            mask |= 1 << lane;
            if place.group != known {
                known = place.group;
                let number = first + u64::from(known);
                let (columns, lines) = (u64::from(columns), u64::from(lines));
                group = [
                    (number % columns) as u32,
                    (number / columns % lines) as u32,
                    (number / columns / lines) as u32,
                ];
            }
            let mut set = |register: u16, value: u32| batch.rows.get_mut(register).0[lane] = value;
            set(55, place.local[0] | place.local[1] << 16);
            set(56, place.local[2]);
            for axis in 0..3 {
                set(57 + axis as u16, group[axis]);
                set(
                    60 + axis as u16,
                    group[axis]
                        .wrapping_mul(size[axis])
                        .wrapping_add(place.local[axis]),
                );
            }
        }
        batch.start(&self.program, mask);
    }
}

/// Registers 55 to 62 hold ids when a thread starts.
const PRELOADED: u64 = 0xff << 55;

/// Fills the rows that depend on the lane alone: ids and the bases of its storage.
fn fill_specials(
    rows: &mut Rows,
    dispatch: &Dispatch,
    layout: &Layout,
    worker: u32,
    batch: usize,
    places: &[Option<Place>],
) {
    let warp = dispatch.architecture.warp_lanes();
    for lane in lanes(u64::MAX) {
        let global = (batch * LANES + lane) as u32;
        let mut set = |row: u16, value: u32| rows.get_mut(row).0[lane] = value;
        set(special::LANE_ID, global % layout.pitch % warp);
        set(special::WARP_ID, global % layout.pitch / warp);
        set(special::CORE_ID, worker);
        let Some(place) = places[batch * LANES + lane] else {
            continue;
        };
        let (tls, wls) = (&dispatch.thread_storage, &dispatch.workgroup_storage);
        let thread = u64::from(worker) * u64::from(layout.lanes()) + u64::from(global);
        let own = tls
            .base
            .wrapping_add(thread.wrapping_mul(tls.bytes_per_thread.into()));
        let instance = u64::from(worker) * u64::from(layout.together) + u64::from(place.group);
        let shared = wls
            .base
            .wrapping_add(instance.wrapping_mul(wls.bytes.into()));
        set(special::THREAD_LOW, own as u32);
        set(special::THREAD_HIGH, (own >> 32) as u32);
        set(special::WORKGROUP_LOW, shared as u32);
        set(special::WORKGROUP_HIGH, (shared >> 32) as u32);
    }
}
