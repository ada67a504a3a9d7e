// SPDX-License-Identifier: MIT OR Apache-2.0
//! A batch with memory, for test programs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use gpureplay_memory::{Bus, Page, Ram};

use super::bare::Bare;
use crate::core::Core;
use crate::engine::batch::{Batch, Plainly};
use crate::engine::tracks::{Resolved, Room, Set, Tracks, Way};
use crate::engine::worker::totals;
use crate::ir::{Program, special};
use crate::rows::{LANES, Rows};
use crate::{Access, AddressSpace, Control, Grid, MmuFault};

/// Memory at its own addresses, two pages around 4 GiB.
pub(crate) struct Flat(pub(crate) Ram, pub(crate) u64);

pub(crate) const EDGE: u64 = (1 << 32) - 4096;

pub(crate) const NOWHERE: u64 = 1 << 40;

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        let code = 0xc3;
        let at = match va {
            EDGE..=0x1_0000_0fff => self.1 + (va - EDGE),
            _ => va,
        };
        self.0.page(at).ok_or(MmuFault { va, access, code })
    }
}

pub(crate) struct Machine {
    pub(crate) grid: Grid,
    batches: [Batch; 1],
    tracks: Tracks,
    pub(crate) followed: u32,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        Machine {
            grid: Grid::default(),
            batches: [Batch::new(Rows::new(special::CONSTANT, LANES))],
            tracks: Tracks::new(Room::new()),
            followed: 0,
        }
    }

    pub(crate) fn outcome(
        &mut self,
        (program, uniforms): (&Program, &[u32]),
        space: &Flat,
        (mask, seed): (u64, u64),
        by_tracks: bool,
    ) -> String {
        let mut family = Bare;
        let (control, stop) = (Control::new(300), AtomicBool::new(false));
        let mut core = Core::new(&self.grid, &mut family, space, &control, &stop);
        let [batch] = &mut self.batches;
        let mut random = Rng::with_seed(seed);
        for row in 0..special::CONSTANT {
            for value in &mut batch.rows.get_mut(row).0 {
                *value = random.u32(..) >> random.u32(..32);
            }
        }
        batch.rows.get_mut(special::LANE_ID).0 = std::array::from_fn(|lane| lane as u32);
        let storage = &self.grid.thread_storage;
        for lane in 0..LANES {
            let own = storage.base + lane as u64 * u64::from(storage.bytes_per_thread);
            batch.rows.get_mut(special::THREAD_LOW).0[lane] = own as u32;
            batch.rows.get_mut(special::THREAD_HIGH).0[lane] = (own >> 32) as u32;
        }
        let mut program = Arc::new(program.clone());
        core.uniforms = uniforms.into();
        batch.start(&program, mask);
        let set = Set {
            first: 0,
            core: None,
        };
        let way = match by_tracks {
            true => {
                let pages = &mut Resolved::default();
                self.tracks
                    .go((set, 1), pages, &mut self.batches, &mut core)
            }
            false => Way::Execute,
        };
        let [batch] = &mut self.batches;
        let result = match way {
            Way::Followed => {
                self.followed += 1;
                Ok(())
            }
            Way::Execute => batch.run(&mut program, &mut core, &mut Plainly),
            Way::Record => {
                program.complete(&mut batch.rows, uniforms);
                let mut recorder = self.tracks.recorder(1);
                let before = core.begin_counting();
                let result = batch.run(&mut program, &mut core, &mut recorder);
                let counts = core.end_counting(before);
                let counted = (counts, result.is_err());
                self.tracks.keep(set, recorder, counted, &mut self.batches);
                result
            }
        };
        let statistics = totals(&core, &program);
        drop(core);
        // Joined clauses are taken at once, even if one faults.
        let left = result.is_ok().then(|| control.take(u64::MAX));
        format!(
            "{:?} {statistics:?} {left:?}",
            result.map_err(|fault| fault.to_string())
        )
    }
}
