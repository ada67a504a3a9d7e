// SPDX-License-Identifier: MIT OR Apache-2.0
//! Products: missing instructions, thread storage by cores.

use std::fmt::Arguments;
use std::sync::{Arc, Mutex};

use mali_facts::registers::JobStatus;
use mali_isa::{Instruction, Modifier, Op, Source, Unit};
use mali_model::{Level, Log, Options};

use crate::machine::{BIFROST, CODE, CONFIG, DATA, JOBS, Machine, Rights};
use crate::shaders::{clause_of, code_with, machine_with};

#[derive(Default)]
struct Lines(Mutex<String>);

impl Log for Lines {
    fn level(&self) -> Level {
        Level::Error
    }

    fn write(&self, _: Level, text: Arguments<'_>) {
        self.0.lock().unwrap().push_str(&text.to_string());
    }
}

fn shader(mut clause: Vec<u8>) -> Vec<u8> {
    clause.extend(code_with(1, "JUMP", &[Source::FauLow]));
    clause
}

fn status(machine: &mut Machine) -> JobStatus {
    machine.gpu.run();
    machine.status(1)
}

#[test]
fn an_instruction_that_a_product_lacks_is_a_fault_that_names_it() {
    let one: &[Source] = &[Source::Port0];
    let two: &[Source] = &[Source::Port0, Source::Port1];
    let cases: [(&str, &[Source], &[&str]); 9] = [
        ("FRCP.f32", one, &["g31", "g52", "g72", "g76"]),
        ("FRSQ.f32", one, &["g31", "g52", "g72", "g76"]),
        ("FLOGD.f32", one, &["g31", "g52", "g72", "g76"]),
        ("FEXP.f32", two, &["g31", "g52", "g72", "g76"]),
        ("CLPER.i32", two, &["g52", "g76"]),
        ("CLPER_OLD.i32", two, &["g31", "g71", "g72"]),
        // Known from G71 recordings, from the encoding's structure, and from Mesa, in this order.
        ("AND.i32", two, &["g71", "g72"]),
        ("LSHIFT_XOR.i32", &[Source::Port0; 3], &[]),
        ("FRCP_APPROX.f32", one, &BIFROST),
    ];
    for (name, sources, having) in cases {
        let code = shader(code_with(0, name, sources));
        for gpu in BIFROST {
            let lines = Arc::new(Lines::default());
            let options = Options {
                log: lines.clone(),
                ..Options::default()
            };
            let mut machine = machine_with(gpu, &code, 0, options);
            machine.memory.write64(JOBS + 0x188, 0);
            machine.submit(1, JOBS, CONFIG);
            let has = having.contains(&gpu);
            let expected = match has {
                true => JobStatus::DONE,
                false => JobStatus::INSTR_INVALID_ENC,
            };
            let got = status(&mut machine);
            assert_eq!(got, expected, "{gpu} {name}: got {got}");
            let said = lines.0.lock().unwrap().clone();
            let text = format!("+{name} is no instruction of Mali-{}", gpu.to_uppercase());
            assert_eq!(said.contains(&text), !has, "{gpu}: {said}");
            let place = format!("clause at {CODE:#x}");
            assert_eq!(said.contains(&place), !has, "{gpu}: {said}");
        }
    }
}

/// Threads store into their own `pages` pages.
fn storing(gpu: &str, seed: u64, pages: u64) -> Machine {
    const STORAGE: u64 = 0x500_0000;
    let mut store = Instruction::new(Op::find(Unit::Add, "STORE.i32").unwrap());
    store.sources[..2].copy_from_slice(&[Source::Port0, Source::Port1]);
    assert!(store.set_modifier(Modifier::Segment, mali_isa::Segment::Tl as u8));
    let options = Options {
        seed,
        ..Options::default()
    };
    let mut machine = machine_with(gpu, &shader(clause_of(0, store)), 0, options);
    machine.memory.map(STORAGE, pages, Rights::ReadWrite);
    machine.memory.compute_job(JOBS, 256, 0);
    machine.memory.write(CODE, &shader(clause_of(0, store)));
    machine.memory.write64(JOBS + 0x180, 0);
    machine.memory.write64(JOBS + 0x188, 0);
    let storage = DATA + 0x3000;
    machine.memory.write32(storage, 2);
    machine.memory.write64(storage + 8, STORAGE);
    machine.memory.write64(JOBS + 64 + 28 * 4, storage);
    machine
}

#[test]
fn storage_of_threads_is_for_all_cores() {
    for (gpu, threads, cores) in [
        ("g31", 768, 1),
        ("g52", 768, 2),
        ("g76", 768, 16),
        ("g71", 384, 8),
    ] {
        let of_core = threads * 64 / 4096;
        for seed in [0, 1, 99] {
            for of in 1..=cores {
                let mut machine = storing(gpu, seed, of * of_core);
                machine.submit(1, JOBS, CONFIG);
                let got = status(&mut machine);
                let expected = match of == cores {
                    true => JobStatus::DONE,
                    // Four sets of work groups, in turn for four cores.
                    false if seed == 0 && of >= 4 => JobStatus::DONE,
                    false => JobStatus::TRANSLATION_FAULT_3,
                };
                if seed == 0 || of == cores {
                    assert_eq!(got, expected, "{gpu} seed {seed}, for {of} cores: {got}");
                }
            }
        }
        let mut machine = storing(gpu, 0, of_core);
        machine.submit_on(1, JOBS, CONFIG, 1);
        assert_eq!(status(&mut machine), JobStatus::DONE, "{gpu}");
    }
}
