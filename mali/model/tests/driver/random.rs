// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random input: no panic, no hang, and recovery.

use gpureplay_memory::{Bus, Ram};
use mali_facts::registers::{GpuCommand, JobStatus, all};
use mali_facts::{Text, walk::walk_chain};
use mali_model::{Architecture, Options, Profile};

use fastrand::Rng;

use crate::machine::{CODE, DATA, Format, JOBS, Machine, Rights};

fn plausible_word(random: &mut Rng) -> u32 {
    match random.u8(..6) {
        0 => 0,
        1 => u32::MAX,
        2 => random.u32(..16),
        3 => 1 << random.u32(..32),
        4 => JOBS as u32 + 64 * random.u32(..64),
        _ => random.u32(..),
    }
}

fn machine() -> Machine {
    let options = Options {
        clause_budget: 20_000,
        ..Options::default()
    };
    let machine = Machine::with("g52", Format::Lpae, options);
    machine.memory.compute_job(JOBS, 64, 0);
    machine
}

fn expect_recovery(machine: &mut Machine) {
    machine.command(GpuCommand::SoftReset);
    machine.memory.map(JOBS, 16, Rights::ReadWrite);
    machine.memory.map(CODE, 1, Rights::Execute);
    machine.memory.map(DATA, 16, Rights::ReadWrite);
    machine.power_on();
    machine.activate();
    machine.expect_next("after a reset");
}

#[test]
fn register_traffic() {
    let offsets: Vec<u32> = all().map(|register| register.offset()).collect();
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let mut machine = machine();
        for _ in 0..400 {
            let offset = offsets[random.u64(..offsets.len() as u64) as usize];
            match random.u64(..4) {
                0 => _ = machine.gpu.read32(offset),
                1 => machine.submit(random.u64(..4) as u32, JOBS, plausible_word(&mut random)),
                _ => machine.gpu.write32(offset, plausible_word(&mut random)),
            }
        }
        machine.gpu.run();
        expect_recovery(&mut machine);
    }
}

#[test]
fn descriptors() {
    let profile = Profile::by_name("g52").unwrap();
    for seed in 0..300 {
        let mut random = Rng::with_seed(1000 + seed);
        let mut machine = machine();
        for _ in 0..=random.u64(..12) {
            let at = JOBS + 4 * random.u64(..0x190 / 4);
            machine.memory.write32(at, plausible_word(&mut random));
        }
        let mut text = String::new();
        let mut writer = Text::new(&mut text, Architecture::V7);
        walk_chain(&machine.memory, profile, JOBS, &mut writer);
        writer.finish().unwrap();
        assert_ne!(machine.run(1, JOBS), JobStatus::ACTIVE);
        expect_recovery(&mut machine);
    }
}

#[test]
fn shaders() {
    for seed in 0..300 {
        let mut random = Rng::with_seed(2000 + seed);
        let mut machine = machine();
        match random.u64(..2) {
            0 => machine.memory.write(CODE, &[0; 512].map(|_| random.u8(..))),
            _ => {
                for _ in 0..=random.u64(..4) {
                    let at = CODE + 4 * random.u64(..0x100 / 4);
                    let word = machine.memory.read32(at) ^ 1 << random.u64(..32);
                    machine.memory.write32(at, word);
                }
            }
        }
        assert_ne!(machine.run(1, JOBS), JobStatus::ACTIVE);
        expect_recovery(&mut machine);
    }
}

#[test]
fn page_tables() {
    for format in [Format::Lpae, Format::AArch64] {
        for seed in 0..100 {
            let mut random = Rng::with_seed(3000 + seed);
            let mut machine = Machine::with("g52", format, Options::default());
            machine.memory.compute_job(JOBS, 64, 0);
            // Memory starts with the page tables.
            for _ in 0..=random.u64(..8) {
                let page = machine
                    .gpu
                    .bus()
                    .page(Ram::BASE + 4096 * random.u64(..4))
                    .unwrap();
                let at = 8 * random.u64(..40) as usize;
                page.store_u64(at, page.load_u64(at) ^ 1 << random.u64(..56));
            }
            assert_ne!(machine.run(1, JOBS), JobStatus::ACTIVE);
        }
    }
}
