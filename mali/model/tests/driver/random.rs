// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random registers, descriptors, tables and shaders: no panic, no hang, and recovery by reset.

use gpureplay_memory::{Bus, Ram};
use mali_facts::registers::{GpuCommand, JobStatus, all};
use mali_facts::{Text, walk::walk_chain};
use mali_model::{Architecture, Options, Profile};

use crate::machine::{CODE, DATA, Format, JOBS, Machine, Rights};

/// Splitmix64: failures repeat.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Meaningful more often.
    fn word(&mut self) -> u32 {
        match self.below(6) {
            0 => 0,
            1 => u32::MAX,
            2 => self.below(16) as u32,
            3 => 1 << self.below(32),
            4 => (JOBS + 64 * self.below(64)) as u32,
            _ => self.next() as u32,
        }
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
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

/// After a reset.
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
        let mut random = Random(seed);
        let mut machine = machine();
        for _ in 0..400 {
            let offset = offsets[random.below(offsets.len() as u64) as usize];
            match random.below(4) {
                0 => _ = machine.gpu.read32(offset),
                1 => machine.submit(random.below(4) as u32, JOBS, random.word()),
                _ => machine.gpu.write32(offset, random.word()),
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
        let mut random = Random(1000 + seed);
        let mut machine = machine();
        for _ in 0..=random.below(12) {
            let at = JOBS + 4 * random.below(0x190 / 4);
            machine.memory.write32(at, random.word());
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
        let mut random = Random(2000 + seed);
        let mut machine = machine();
        match random.below(2) {
            0 => machine.memory.write(CODE, &random.bytes(512)),
            _ => {
                for _ in 0..=random.below(4) {
                    let at = CODE + 4 * random.below(0x100 / 4);
                    let word = machine.memory.read32(at) ^ 1 << random.below(32);
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
            let mut random = Random(3000 + seed);
            let mut machine = Machine::with("g52", format, Options::default());
            machine.memory.compute_job(JOBS, 64, 0);
            // Tables come first.
            for _ in 0..=random.below(8) {
                let page = machine
                    .gpu
                    .bus()
                    .page(Ram::BASE + 4096 * random.below(4))
                    .unwrap();
                let at = 8 * random.below(40) as usize;
                page.store_u64(at, page.load_u64(at) ^ 1 << random.below(56));
            }
            assert_ne!(machine.run(1, JOBS), JobStatus::ACTIVE);
        }
    }
}
