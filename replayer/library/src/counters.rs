// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's own counters around a chain: clock cycles, and ticks of the system's counter. They cost register accesses, so they are off
//! unless they are asked for.

use gpureplay_core::Gpu;
use mali_facts::registers::gpu::{
    CYCLE_COUNT_HI, CYCLE_COUNT_LO, GPU_CMD, GpuCommand, TIMESTAMP_HI, TIMESTAMP_LO,
};

/// How far the GPU's counters went while a chain ran: from before its start command until after its end was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Cycles of the GPU's clock, which stands still while the GPU is off (`CYCLE_COUNT`).
    pub cycles: u64,
    /// Ticks of the system's counter (`TIMESTAMP`), whose rate the board decides.
    pub timestamp: u64,
}

/// Reads of a high word until it stays; it changes once in minutes.
const READS: u32 = 4;

/// A counter of two words that runs while it is read.
fn counter(gpu: &mut dyn Gpu, low: u32, high: u32) -> u64 {
    let mut upper = gpu.read32(high);
    let mut lower = 0;
    for _ in 0..READS {
        lower = gpu.read32(low);
        match gpu.read32(high) {
            same if same == upper => break,
            other => upper = other,
        }
    }
    u64::from(upper) << 32 | u64::from(lower)
}

impl Counters {
    /// Lets the cycle counter run, and reads both.
    pub(crate) fn start(gpu: &mut dyn Gpu) -> Self {
        gpu.write32(GPU_CMD, GpuCommand::CycleCountStart as u32);
        Self::read(gpu)
    }

    fn read(gpu: &mut dyn Gpu) -> Self {
        Self {
            cycles: counter(gpu, CYCLE_COUNT_LO, CYCLE_COUNT_HI),
            timestamp: counter(gpu, TIMESTAMP_LO, TIMESTAMP_HI),
        }
    }

    /// How far they went since, and lets the cycle counter stop.
    pub(crate) fn stop(self, gpu: &mut dyn Gpu) -> Self {
        let now = Self::read(gpu);
        gpu.write32(GPU_CMD, GpuCommand::CycleCountStop as u32);
        Self {
            cycles: now.cycles.wrapping_sub(self.cycles),
            timestamp: now.timestamp.wrapping_sub(self.timestamp),
        }
    }
}
