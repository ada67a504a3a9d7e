// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU's counters around a chain.

use gpureplay_core::gpu::Gpu;
use mali_facts::registers::gpu::{
    CYCLE_COUNT_HI, CYCLE_COUNT_LO, GPU_CMD, GpuCommand, TIMESTAMP_HI, TIMESTAMP_LO,
};

/// How far they went, from before a chain's start command until its end is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Clock cycles (`CYCLE_COUNT`); stopped while the GPU is off.
    pub cycles: u64,
    /// System-counter ticks (`TIMESTAMP`); the board decides the rate.
    pub timestamp: u64,
}

/// Attempts at two equal high words, which change once in minutes.
const READS: u32 = 4;

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
    /// Lets them run, and reads them.
    pub fn start(gpu: &mut dyn Gpu) -> Self {
        gpu.write32(GPU_CMD, GpuCommand::CycleCountStart as u32);
        Self::read(gpu)
    }

    fn read(gpu: &mut dyn Gpu) -> Self {
        Self {
            cycles: counter(gpu, CYCLE_COUNT_LO, CYCLE_COUNT_HI),
            timestamp: counter(gpu, TIMESTAMP_LO, TIMESTAMP_HI),
        }
    }

    /// How far they went since; they stop.
    #[must_use]
    pub fn stop(self, gpu: &mut dyn Gpu) -> Self {
        let now = Self::read(gpu);
        gpu.write32(GPU_CMD, GpuCommand::CycleCountStop as u32);
        Self {
            cycles: now.cycles.wrapping_sub(self.cycles),
            timestamp: now.timestamp.wrapping_sub(self.timestamp),
        }
    }
}
