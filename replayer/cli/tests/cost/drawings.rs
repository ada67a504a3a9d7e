// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model tests' drawing with changed descriptors. Deep verification refuses it; the model runs it.

use gpureplay_format::{Access, Builder, RegionKind, SegmentKind};
use mali_facts::Memory;

use crate::case::Random;
use crate::machine::{CODE, DATA, Format, JOBS, Machine};
use crate::picture::{self, FRAGMENT_JOB};
use crate::recordings::GPU;

pub(crate) struct Drawing {
    jobs: Vec<u8>,
    code: Vec<u8>,
    data: Vec<u8>,
}

const PAGE: usize = 4096;

impl Drawing {
    pub(crate) fn new() -> Self {
        let machine = Machine::with("g52", Format::Lpae, mali_model::Options::default());
        picture::write(&machine.memory, false);
        let read = |va, pages| {
            let mut bytes = vec![0; pages * PAGE];
            assert!(machine.memory.read(va, &mut bytes));
            bytes
        };
        Self {
            jobs: read(JOBS, 1),
            code: read(CODE, 1),
            data: read(DATA, 16),
        }
    }

    pub(crate) fn recording(&self, random: &mut Random) -> Vec<u8> {
        let mut jobs = self.jobs.clone();
        let changed = if random.once_in(16) {
            0
        } else {
            random.up_to(3)
        };
        for _ in 0..changed {
            let at = 4 * random.below(0x2c0) as usize;
            let old = u32::from_le_bytes([0, 1, 2, 3].map(|byte| jobs[at + byte]));
            let new = match random.below(4) {
                0 => old ^ 1 << random.below(32),
                1 => old.wrapping_add(random.below(64) as u32),
                2 => u32::MAX >> random.below(32),
                _ => (random.next() as u32) << random.below(32),
            };
            jobs[at..at + 4].copy_from_slice(&new.to_le_bytes());
        }
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(JOBS, 16, Access::READ_WRITE, RegionKind::Descriptors);
        builder.region(CODE, 1, Access::READ_EXECUTE, RegionKind::Code);
        let pages = 16 << random.below(8);
        builder.region(DATA, pages, Access::READ_WRITE, RegionKind::Data);
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(CODE, &self.code);
        builder.segment("run", SegmentKind::Run);
        for _ in 0..random.up_to(6) {
            builder.upload(JOBS, &jobs);
            builder.upload(DATA, &self.data);
            builder.submit(1, JOBS, 1000);
            builder.submit(0, JOBS + FRAGMENT_JOB, 1000);
        }
        builder.finish().unwrap_or_default()
    }
}
