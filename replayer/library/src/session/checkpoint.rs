// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU memory at a layer boundary, without zero pages.

use std::collections::BTreeMap;

use gpureplay_core::{DeviceError, ErrorKind, Gpu, NO_ACTION, ReplayError};
use gpureplay_format::{Access, Recording, RegionKind};

use crate::tensors::Layer;

const PAGE: usize = 4096;
const STEP: usize = 64 * PAGE;
/// Bytes read by all checkpoints, unless a single one needs more.
pub(super) const READ_PER_RUN: u64 = 2 << 30;

pub(super) struct Checkpoint {
    /// Next segment.
    pub(super) next: u32,
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

/// Memory that jobs may change, without thread storage; address and bytes.
fn writable(recording: &Recording<'_>) -> impl Iterator<Item = (u64, u64)> {
    recording.regions().iter().filter_map(|region| {
        let writable = Access(region.access).contains(Access::WRITE);
        let kept = writable && region.kind != RegionKind::Scratch.code();
        kept.then(|| (region.va.get(), region.bytes()))
    })
}

fn walk(
    gpu: &mut dyn Gpu,
    recording: &Recording<'_>,
    mut step: impl FnMut(&mut dyn Gpu, u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let mut buffer = vec![0; STEP];
    for (va, length) in writable(recording) {
        let mut done = 0;
        while done < length {
            let now = usize::try_from(length - done).map_or(STEP, |left| left.min(STEP));
            let part = buffer.get_mut(..now).unwrap_or_default();
            let at = va.wrapping_add(done);
            gpu.read_memory(at, part)?;
            step(gpu, at, part)?;
            done += now as u64;
        }
    }
    Ok(())
}

impl Checkpoint {
    /// Shares unchanged pages with `before`; `None` if the device gives no memory.
    pub(super) fn save(
        before: Option<Self>,
        gpu: &mut dyn Gpu,
        recording: &Recording<'_>,
        next: u32,
    ) -> Option<Self> {
        let mut pages = before.map(|before| before.pages).unwrap_or_default();
        let taken = walk(gpu, recording, |_, at, bytes| {
            for (va, page) in (at..).step_by(PAGE).zip(bytes.chunks_exact(PAGE)) {
                if page.iter().all(|byte| *byte == 0) {
                    pages.remove(&va);
                    continue;
                }
                pages
                    .entry(va)
                    .or_insert_with(|| Box::new([0; PAGE]))
                    .copy_from_slice(page);
            }
            Ok(())
        });
        taken.ok().map(|()| Self { next, pages })
    }

    pub(super) fn restore(
        &self,
        gpu: &mut dyn Gpu,
        recording: &Recording<'_>,
    ) -> Result<(), ReplayError> {
        let zeroes = [0; PAGE];
        let restored = walk(gpu, recording, |gpu, at, bytes| {
            for (va, page) in (at..).step_by(PAGE).zip(bytes.chunks_exact(PAGE)) {
                let kept = self.pages.get(&va).map_or(&zeroes, |kept| &**kept);
                if page != kept {
                    gpu.write_memory(va, kept)?;
                }
            }
            Ok(())
        });
        restored.map_err(|error| ReplayError {
            action: NO_ACTION,
            submits: 0,
            kind: ErrorKind::Device(error),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    /// One in so many layers that start jobs.
    every: u64,
    passed: u64,
}

impl Spacing {
    pub(super) fn new(recording: &Recording<'_>, layers: &[Layer]) -> Self {
        let bytes = writable(recording).fold(0u64, |sum, (_, length)| sum.saturating_add(length));
        let boundaries = layers.iter().filter(|layer| layer.chains > 0).count() as u64;
        Self::of(bytes, boundaries)
    }

    fn of(bytes: u64, boundaries: u64) -> Self {
        let affordable = READ_PER_RUN.checked_div(bytes).unwrap_or(u64::MAX).max(1);
        Self {
            every: boundaries.div_ceil(affordable).max(1),
            passed: 0,
        }
    }

    /// Layers without chains do not count: what the CPU does is done again.
    pub(super) fn is_due(&mut self, chains: u32) -> bool {
        self.passed += u64::from(chains > 0);
        let due = self.passed >= self.every;
        if due {
            self.passed = 0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bytes: u64, boundaries: u64) -> u64 {
        let mut spacing = Spacing::of(bytes, boundaries);
        (0..boundaries)
            .filter(|_| spacing.is_due(1))
            .count()
            .try_into()
            .unwrap_or(u64::MAX)
    }

    #[test]
    fn checkpoints_of_a_run_read_a_bounded_amount_of_memory() {
        assert_eq!(taken(READ_PER_RUN / 8, 8), 8);
        // One more than is affordable: every second.
        assert_eq!(taken(READ_PER_RUN / 8, 9), 4);
        assert_eq!(taken(0, 1 << 16), 1 << 16);
        for (bytes, boundaries) in [(1 << 20, 1 << 16), (3 << 28, 1000), (4096, 1 << 20)] {
            assert!(taken(bytes, boundaries) * bytes <= READ_PER_RUN);
        }
        assert_eq!(taken(u64::MAX, 5), 1);
    }

    #[test]
    fn layers_without_jobs_have_no_checkpoint() {
        let mut spacing = Spacing::of(1 << 30, 1);
        assert!((0..20).all(|_| !spacing.is_due(0)));
        assert!(spacing.is_due(1));
    }
}
