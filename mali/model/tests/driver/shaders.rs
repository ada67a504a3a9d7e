// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders' faults and stops, and the next job.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use mali_facts::registers::{GpuCommand, JobCommand, JobStatus, gpu, job, job_slot};
use mali_isa::{
    Clause, ClauseHeader, Instruction, Op, RegisterBlock, Source, Tuple, Unit, encode_clause,
};
use mali_model::{Finished, Options};

use crate::machine::{BIFROST, CODE, CONFIG, DATA, Format, JOBS, Machine};

pub(crate) fn code(name: &str, sources: &[Source]) -> Vec<u8> {
    code_with(0, name, sources)
}

pub(crate) fn code_with(slot: u64, name: &str, sources: &[Source]) -> Vec<u8> {
    let mut add = Instruction::new(Op::find(Unit::Add, name).unwrap());
    add.sources[..sources.len()].copy_from_slice(sources);
    clause_of(slot, add)
}

pub(crate) fn clause_of(slot: u64, add: Instruction) -> Vec<u8> {
    let new = |unit, name| Instruction::new(Op::find(unit, name).unwrap());
    let header = ClauseHeader {
        message: add.op.info().message,
        ..ClauseHeader::PLAIN
    };
    // Slot 2 is read; ports 0 and 1 read r0 and r1.
    let registers = RegisterBlock(0x80 | slot | 2 << 14 | 1 << 25 | 12 << 31);
    let tuple = Tuple::new(registers, new(Unit::Fma, "NOP"), add);
    let clause = Clause {
        header,
        tuples: vec![tuple],
        constants: Vec::new(),
    };
    encode_clause(&clause).unwrap()
}

pub(crate) fn machine(gpu: &str, code: &[u8], value: u64) -> Machine {
    machine_with(gpu, code, value, Options::default())
}

pub(crate) fn machine_with(gpu: &str, code: &[u8], value: u64, options: Options) -> Machine {
    let machine = Machine::with(gpu, Format::Lpae, options);
    machine.memory.compute_job(JOBS, 64, 0);
    machine.memory.write(CODE, &[0; 64]);
    machine.memory.write(CODE, code);
    machine.memory.write64(JOBS + 0x180, value);
    machine
}

#[test]
fn shaders_that_cannot_go_on() {
    let jump = code("JUMP", &[Source::FauLow]);
    let texture = code("TEXS_2D.f32", &[Source::Port0, Source::Port1]);
    let image = code(
        "LEA_ATTR_TEX",
        &[Source::FauLow, Source::FauLow, Source::FauLow],
    );
    let blend = code("BLEND", &[Source::Port0, Source::Port1, Source::FauLow]);
    let unit = CODE + 0x100;
    let place = JobStatus::INSTR_INVALID_PC;
    let encoding = JobStatus::INSTR_INVALID_ENC;
    let data = JobStatus::DATA_INVALID_FAULT;
    let denied = JobStatus::PERMISSION_FAULT_3;
    let absent = JobStatus::TRANSLATION_FAULT_3;
    let cases = [
        ("jump off the grid", &jump, CODE + 8, place, CODE + 8),
        ("jump to zeros", &jump, unit, encoding, unit),
        ("a fragment's instruction", &blend, 0, encoding, CODE),
        ("texture that does not exist", &texture, 0, data, CODE),
        ("image that does not exist", &image, 0, data, CODE),
        ("jump to data", &jump, DATA, denied, DATA),
        (
            "jump to nothing",
            &jump,
            CODE + 0x1000,
            absent,
            CODE + 0x1000,
        ),
    ];
    for gpu in BIFROST {
        for (what, code, value, status, pointer) in cases {
            let name = format!("{gpu}: {what}");
            let mut machine = machine(gpu, code, value);
            machine.memory.write(unit, &[0; 32]);
            machine.run(1, JOBS);
            machine.expect_failure(&name, status, pointer);
            machine.expect_next(&name);
        }
    }
}

/// Stores 0 where 4.0 was, then loops.
fn endless(gpu: &str) -> (Machine, JoinHandle<Finished>) {
    let mut shader = code("STORE.i32", &[Source::FauLow, Source::FauHigh]);
    let again = CODE + shader.len() as u64;
    shader.extend(code_with(1, "JUMP", &[Source::FauLow]));
    let mut machine = machine(gpu, &shader, DATA + 16);
    machine.memory.write64(JOBS + 0x188, again);
    machine.submit(1, JOBS, CONFIG);
    let work = machine.gpu.take_work().unwrap();
    let runner = thread::spawn(move || work.execute());
    while machine.memory.read32(DATA + 16) != 0 {
        assert!(!runner.is_finished());
        thread::yield_now();
    }
    (machine, runner)
}

#[test]
fn stops_of_a_shader_that_does_not_end() {
    for (gpu, soft) in BIFROST
        .into_iter()
        .flat_map(|gpu| [(gpu, false), (gpu, true)])
    {
        let (mut machine, runner) = endless(gpu);
        if soft {
            // A soft stop acts after the running job, which never ends.
            machine.set_slot(1, job_slot::COMMAND, JobCommand::SoftStop as u32);
            thread::sleep(Duration::from_millis(5));
            assert!(!runner.is_finished(), "the job still runs");
            let status = machine.status(1);
            assert_eq!(status, JobStatus::ACTIVE);
        }
        machine.set_slot(1, job_slot::COMMAND, JobCommand::HardStop as u32);
        machine.gpu.finish(runner.join().unwrap());
        assert_eq!(machine.status(1), JobStatus::TERMINATED, "{gpu}");
        assert_eq!(machine.job_interrupts(), job::failed(1));
        assert_eq!(machine.tail(1), JOBS);
        machine.expect_next(&format!("{gpu} after a stop"));
    }
}

#[test]
fn a_reset_ends_a_shader_that_does_not_end() {
    use GpuCommand::{HardReset, SoftReset};
    for (gpu, command) in BIFROST
        .into_iter()
        .flat_map(|gpu| [(gpu, SoftReset), (gpu, HardReset)])
    {
        let (mut machine, runner) = endless(gpu);
        machine.gpu.write32(gpu::GPU_CMD, command as u32);
        machine.gpu.finish(runner.join().unwrap());
        let slot = machine.slot(1, job_slot::STATUS);
        assert_eq!((machine.job_interrupts(), slot), (0, 0));
        machine.power_on();
        machine.activate();
        machine.expect_next(&format!("{gpu} after a reset"));
    }
}
