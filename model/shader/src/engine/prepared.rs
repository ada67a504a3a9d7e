// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows alike for each dispatch of a shader.
//!
//! Filling them takes as long as a small grid.

use std::sync::{Arc, Weak};

use super::layout::Layout;
use super::places::Places;
use super::tracks::Tracks;
use crate::core::Core;
use crate::ir::Program;
use crate::rows::Rows;
use crate::{ThreadStorage, WorkgroupStorage};

#[derive(Clone, Debug)]
pub(crate) struct Purpose {
    /// Weak: rows keep no program, but its address is not used again.
    program: Weak<Program>,
    uniforms: Arc<[u32]>,
    pub(crate) layout: Layout,
    workgroup_size: [u32; 3],
    workgroup_count: [u32; 3],
    warp_lanes: u32,
    storage: (ThreadStorage, WorkgroupStorage),
    pub(crate) worker: u32,
}

impl Purpose {
    pub(crate) fn new(
        core: &Core<'_>,
        program: &Arc<Program>,
        layout: Layout,
        worker: u32,
    ) -> Purpose {
        let grid = core.grid;
        Purpose {
            program: Arc::downgrade(program),
            uniforms: core.uniforms.clone(),
            layout,
            workgroup_size: grid.workgroup_size,
            workgroup_count: grid.workgroup_count,
            warp_lanes: core.warp_lanes,
            storage: (grid.thread_storage, grid.workgroup_storage),
            worker,
        }
    }

    pub(crate) fn is(&self, other: &Purpose) -> bool {
        self.program.ptr_eq(&other.program)
            && self.uniforms == other.uniforms
            && self.layout == other.layout
            && self.workgroup_size == other.workgroup_size
            && self.workgroup_count == other.workgroup_count
            && self.warp_lanes == other.warp_lanes
            && self.storage == other.storage
            && self.worker == other.worker
    }
}

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) purpose: Purpose,
    pub(crate) rows: Vec<Rows>,
    pub(crate) places: Vec<Places>,
    pub(crate) tracks: Tracks,
    pub(crate) placed: Option<u32>,
}

impl Prepared {
    pub(crate) fn bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Rows::bytes).sum();
        rows + self.places.len() * size_of::<Places>() + 4 * self.purpose.uniforms.len()
    }
}
