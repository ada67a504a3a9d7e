// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job may name 65,535 textures of 4096 surfaces: the walk ends early.

use gpureplay_core::Limits;
use gpureplay_format::{Access, Builder, Recording, RegionKind, SegmentKind};
use mali_drive::verify;
use mali_facts::{JobType, PROFILES, Texture, job};
use mali_jobs::walk::{DeepRule, check};

const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
const CODE: u64 = 0x400_0000;
const STATE: u64 = JOBS + 0x8000;
const SURFACES: u64 = JOBS + 0x1_0000;
const TEXTURES: u64 = JOBS + 0x10_0000;
const CHAIN: u64 = 64;
const PAGES: u32 = 0x400;

fn rule(texels: u64) -> DeepRule {
    let mut bytes = vec![0u8; 4096 * PAGES as usize];
    let mut write = |at: u64, value: u64, length: usize| {
        let at = (at - JOBS) as usize;
        bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
    };
    for at in (0..CHAIN).map(|index| JOBS + 0x100 * index) {
        let next = if at + 0x100 < JOBS + 0x100 * CHAIN {
            at + 0x100
        } else {
            0
        };
        write(at + 16, 1 | (JobType::Compute as u64) << 1, 4);
        write(at + 24, next, 8);
        write(at + job::COMPUTE_DRAW + 8 * 4, TEXTURES, 8);
        write(at + job::COMPUTE_DRAW + 14 * 4, STATE, 8);
    }
    write(STATE, CODE, 8);
    write(STATE + 8, 0xffff << 16, 4);
    for surface in 0..0x1_0000 {
        write(SURFACES + 8 * surface, texels, 8);
    }
    for texture in 0..0xffff {
        let at = TEXTURES + texture * Texture::SIZE as u64;
        write(at + 16, SURFACES, 8);
        write(at + 24, 0xffff, 4);
    }
    let mut builder = Builder::new(PROFILES[0].gpu_id.0);
    builder.identity(0, 0xffff_0000, PROFILES[0].gpu_id.0);
    builder.region(JOBS, PAGES, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder.region(CODE, 1, Access::READ_EXECUTE, RegionKind::Code);
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(JOBS, &bytes);
    builder.segment("run", SegmentKind::Run);
    builder.rearm(JOBS);
    builder.submit(1, JOBS, 1_000_000);
    let file = builder.finish().unwrap();
    let recording = Recording::parse(&file).unwrap();
    let broken = check(&verify(&recording, &Limits::DEFAULT).unwrap()).map(|_| ());
    broken.unwrap_err().rule
}

#[test]
fn the_walk_ends_with_the_first_broken_rule() {
    assert_eq!(rule(DATA), DeepRule::MemoryLimit);
    assert_eq!(rule(DATA + 0x1000), DeepRule::BufferRegion);
}
