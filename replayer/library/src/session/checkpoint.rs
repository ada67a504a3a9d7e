// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the GPU's memory holds at a boundary of layers, for another attempt from there.

use gpureplay_core::{ErrorKind, Gpu, NO_ACTION, ReplayError};
use gpureplay_format::{Access, Recording, RegionKind};

/// The state of an inference at a boundary.
pub(super) struct Checkpoint {
    /// Index of the segment that comes next.
    pub(super) next: u32,
    /// Address and contents of all memory that jobs may change, thread storage left out.
    memory: Vec<(u64, Vec<u8>)>,
}

impl Checkpoint {
    /// Reads all memory that jobs may change; `None` when the device does not give it.
    pub(super) fn save(gpu: &mut dyn Gpu, recording: &Recording<'_>, next: u32) -> Option<Self> {
        let mut memory = Vec::new();
        for region in recording.regions() {
            let writable = Access(region.access).contains(Access::WRITE);
            if !writable || region.kind == RegionKind::Scratch.code() {
                continue;
            }
            let mut bytes = vec![0; usize::try_from(region.bytes()).ok()?];
            gpu.read_memory(region.va.get(), &mut bytes).ok()?;
            memory.push((region.va.get(), bytes));
        }
        Some(Self { next, memory })
    }

    /// Writes it back.
    pub(super) fn restore(&self, gpu: &mut dyn Gpu) -> Result<(), ReplayError> {
        for (va, bytes) in &self.memory {
            gpu.write_memory(*va, bytes).map_err(|error| ReplayError {
                action: NO_ACTION,
                submits: 0,
                kind: ErrorKind::Device(error),
            })?;
        }
        Ok(())
    }
}
