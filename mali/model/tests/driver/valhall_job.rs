// SPDX-License-Identifier: MIT OR Apache-2.0
//! A compute job of Valhall made by hand: payload, environment, program, and code that adds.

use mali_facts::job;
use mali_facts::valhall::{ComputePayload, ShaderEnvironment, ShaderProgram};
use mali_valhall::assemble;

use super::{CODE, PageMemory};

/// Bytes from a job to its environment.
pub(crate) const ENVIRONMENT: u64 = job::PAYLOAD + ComputePayload::SIZE as u64;

/// Adds the floats at u0 and u2 and stores the sums at u4, one per thread.
const ADD: [&str; 10] = [
    "LSHIFT_OR.i32 r0, r60, 0x3020100.b22, 0x0",
    "IADD.u32 r2, u0, r0",
    "MOV.i32 r3, u1",
    "IADD.u32 r4, u2, r0",
    "MOV.i32 r5, u3",
    "IADD.u32 r6, u4, r0",
    "MOV.i32 r7, u5",
    "LOAD.i32.unsigned.slot0 @r0, r2, offset:0",
    "LOAD.i32.unsigned.slot1.wait01 @r1, r4, offset:0",
    "FADD.f32 r0, r0, r1",
];

pub(crate) fn write_code(memory: &PageMemory, texts: &[&str]) {
    for (at, text) in (CODE..).step_by(8).zip(texts) {
        memory.write64(at, assemble(text).unwrap());
    }
}

/// What [`PageMemory::compute_job`] writes for Valhall, behind the header.
pub(crate) fn compute_job(memory: &PageMemory, address: u64, count: u32) {
    write_code(memory, &ADD);
    let store = "STORE.i32.slot2.end @r0, r6, offset:0";
    memory.write64(CODE + 8 * ADD.len() as u64, assemble(store).unwrap());
    let payload = ComputePayload { words: [0; 8] }
        .with("Work group size X", 15)
        .with("Work group count X", u64::from(count / 16))
        .with("Work group count Y", 1)
        .with("Work group count Z", 1);
    memory.write(address + job::PAYLOAD, &payload.to_bytes());
    let environment = ShaderEnvironment { words: [0; 16] }
        .with("FAU count", 3)
        .with("Shader", address + 0x100)
        .with("FAU", address + 0x180);
    memory.write(address + ENVIRONMENT, &environment.to_bytes());
    let program = ShaderProgram { words: [0; 8] }
        .with("Type", 8)
        .with("Stage", 1)
        .with("Preload", 1 << 12)
        .with("Binary", CODE);
    memory.write(address + 0x100, &program.to_bytes());
}
