// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valhall compute jobs made by hand.

use mali_facts::registers::JobStatus;
use mali_facts::valhall::{LocalStorage, ShaderEnvironment};

use crate::machine::{CODE, DATA, ENVIRONMENT, JOBS, Machine};

#[test]
fn a_job_adds_what_its_uniforms_name() {
    let mut machine = Machine::of("g57");
    machine.memory.compute_job(JOBS, 256, 0);
    assert_eq!(machine.run(1, JOBS), JobStatus::DONE);
    machine.memory.expect_sums(256);
}

#[test]
fn threads_and_groups_have_storage_of_their_own() {
    let mut machine = Machine::of("g57");
    machine.memory.compute_job(JOBS, 64, 0);
    let storage = LocalStorage { words: [0; 8] }
        .with("TLS size", 1)
        // Without the low eight bits.
        .with("TLS base pointer", (DATA + 0x8000) >> 8)
        .with("TLS address mode", 1)
        .with("WLS instances", 2)
        .with("WLS size base", 0)
        .with("WLS size scale", 7)
        .with("WLS base pointer", DATA + 0x4000);
    machine.memory.write(JOBS + 0x140, &storage.to_bytes());
    machine
        .memory
        .write64(JOBS + ENVIRONMENT + 48, JOBS + 0x140);
    // Threads keep number, group and thread apart, and the group's sum; a barrier follows.
    machine.memory.write_code(&[
        "MOV.i32 r2, thread_local_pointer.w0",
        "MOV.i32 r3, thread_local_pointer.w1",
        "STORE.i32.slot0 @r60, r2, offset:4",
        "MOV.i32 r4, workgroup_local_pointer.w0",
        "MOV.i32 r5, workgroup_local_pointer.w1",
        "ATOM.i32.slot0.aadd.wait0 @r60, r4, offset:0x0",
        "BARRIER.slot7.wait",
        "LOAD.i32.unsigned.slot0 @r0, r2, offset:4",
        "LOAD.i32.unsigned.slot1.wait01 @r1, r4, offset:0",
        "LSHIFT_OR.i32 r8, r1, 0x3020100.b33, r0",
        "LSHIFT_OR.i32 r9, r60, 0x3020100.b22, 0x0",
        "IADD.u32 r6, u4, r9",
        "MOV.i32 r7, u5",
        "STORE.i32.slot2.end @r8, r6, offset:0",
    ]);
    let status = machine.run(1, JOBS);
    assert_eq!(status, JobStatus::DONE, "{status}");
    for thread in 0..64u32 {
        let group = thread / 16;
        let sum: u32 = (16 * group..16 * group + 16).sum();
        let found = machine.memory.read32(DATA + 0x2000 + 4 * u64::from(thread));
        assert_eq!(found, sum << 3 | thread, "thread {thread}");
    }
}

#[test]
fn a_shader_without_code_has_no_program_and_does_nothing() {
    let mut machine = Machine::of("g57");
    machine.memory.compute_job(JOBS, 64, 0);
    let program = ShaderEnvironment::LAYOUT.offset_of("Shader").unwrap();
    machine.memory.write64(JOBS + ENVIRONMENT + program, 0);
    let before = machine.memory.read32(DATA + 0x2000);
    assert_eq!(machine.run(1, JOBS), JobStatus::DONE);
    assert_eq!(machine.memory.read32(DATA + 0x2000), before);
}

#[test]
fn descriptors_that_make_no_sense_are_faults() {
    let encoding = JobStatus::INSTR_INVALID_ENC;
    let data = JobStatus::DATA_INVALID_FAULT;
    let denied = JobStatus::PERMISSION_FAULT_3;
    let absent = JobStatus::TRANSLATION_FAULT_3;
    let environment = JOBS + ENVIRONMENT;
    let cases: [(&str, u64, u64, JobStatus); 7] = [
        ("a program of no type", JOBS + 0x100, 0, data),
        ("fragments", JOBS + 0x100, 0x28, data),
        ("1000 threads in a group", JOBS + 32, 999, data),
        (
            "a program that is not mapped",
            environment + 40,
            DATA + 0x10_0000,
            absent,
        ),
        (
            "code that is not mapped",
            JOBS + 0x108,
            CODE + 0x1000,
            absent,
        ),
        ("code in data", JOBS + 0x108, DATA, denied),
        ("code that is none", CODE, u64::MAX, encoding),
    ];
    for (name, at, value, expected) in cases {
        let mut machine = Machine::of("g57");
        machine.memory.compute_job(JOBS, 64, 0);
        machine.memory.write64(at, value);
        assert_eq!(machine.run(1, JOBS), expected, "{name}");
        machine.expect_next(name);
    }
}
