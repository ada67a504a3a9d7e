// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaders that no compiler makes: no panic, no endless run.

use crate::support::*;
use fastrand::Rng;
use gpureplay_shader::FaultKind;
use mali_isa::*;
use mali_shader::absence;

fn partner(op: Op) -> Instruction {
    let name = match op.info().name {
        "SHADDXH.i32" => "SHADDXL.i64",
        "SHIFT_DOUBLE.i32" => "RSHIFT_DOUBLE.i32",
        "CUBEFACE2" => "CUBEFACE1",
        "ATOM_CX" => "ATOM_C_RETURN.i32",
        _ => return idle(op),
    };
    instruction(Unit::Fma, name, &[Source::Port0, Source::Port1])
}

fn encodable(op: Op) -> Instruction {
    let mut random = Rng::with_seed(op as u64);
    let mut ins = Instruction::new(op);
    while encode_word(&ins).is_err() {
        modify(&mut random, &mut ins);
        let swap = random.u64(..2) as u32;
        for (slot, (number, source)) in ins
            .sources
            .iter_mut()
            .zip(op.info().sources.iter().enumerate())
            .take(2)
        {
            let selector = number as u32 ^ swap;
            if source.allowed >> selector & 1 == 1 {
                *slot = Source::from_selector(selector);
            }
        }
    }
    ins
}

fn run_alone(space: &Flat, ins: Instruction) -> Result<(), gpureplay_shader::ShaderFault> {
    let [fma, add] = by_unit(ins, partner(ins.op));
    let write = ins.op.info().result.then_some((ins.op.unit(), 4));
    let registers = block(0x80, [1, 2, 3], write);
    let code = coded(last(message(&ins, 8)), registers, fma, add);
    run(space, &code, &[], 5).map(|_| ())
}

#[test]
fn every_operation_of_compute_shaders_executes() {
    let space = Flat::new(1 << 14);
    for op in Op::ALL {
        let name = op.info().name;
        if op.info().wide {
            continue;
        }
        let result = run_alone(&space, encodable(op));
        let refused = matches!(&result, Err(fault) if fault.kind == FaultKind::InvalidEncoding);
        assert_eq!(
            refused,
            absence(op.mnemonic()).is_some(),
            "{}{name}: {result:?}",
            op.unit().mark()
        );
    }
}

#[test]
fn a_fault_names_the_instruction() {
    let space = Flat::new(64);
    let fault = run_alone(&space, instruction(Unit::Add, "BLEND", &[])).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidEncoding);
    assert!(fault.to_string().contains("+BLEND"), "{fault}");
}

#[test]
fn random_instructions_end_without_panic() {
    let mut random = Rng::with_seed(1);
    for _ in 0..300 {
        let space = Flat::new(256);
        let mut code = Vec::new();
        for _ in 0..1 + random.u64(..12) {
            let op = Op::ALL[random.u64(..Op::ALL.len() as u64) as usize];
            let ins = any_instruction(&mut random, op);
            let [fma, add] = by_unit(ins, partner(op));
            let header = ClauseHeader {
                flush_to_zero: FlushToZero::ALL[random.u64(..4) as usize],
                suppress_nan: random.u64(..4) == 0,
                flow_control: FlowControl::ALL[random.u64(..16).min(7) as usize],
                staging_register: random.u64(..64) as u8,
                message: op.info().message,
                ..HEADER
            };
            let reads = [
                random.u64(..20) as u8,
                20 + random.u64(..44) as u8,
                random.u64(..64) as u8,
            ];
            let write = op
                .info()
                .result
                .then_some((op.unit(), random.u64(..64) as u8));
            let fau = [0, 1, 2, 3, 0x80, 0x81, 0x85][random.u64(..7) as usize];
            if let Ok(bytes) = encode_clause(&clause(header, block(fau, reads, write), fma, add)) {
                code.extend(bytes);
            }
        }
        let uniforms: Vec<u32> = (0..6).map(|_| random.u32(..)).collect();
        let _ = run(&space, &code, &uniforms, 1 + random.u64(..100) as u32);
    }
}

#[test]
fn random_bytes_end_without_panic() {
    let mut random = Rng::with_seed(2);
    for _ in 0..2000 {
        let space = Flat::new(16);
        let code: Vec<u8> = (0..16 * (1 + random.u64(..20)))
            .map(|_| random.u8(..))
            .collect();
        let _ = run(&space, &code, &[1, 2, 3, 4], 70);
    }
}

#[test]
fn an_endless_shader_ends() {
    let space = Flat::new(16);
    let target = space.put(&[0]) + 4096;
    let jump = instruction(Unit::Add, "JUMP", &[Source::FauLow]);
    let code = alone(HEADER, block(0x80, [1, 2, 3], None), jump);
    let fault = run(&space, &code, &[target as u32, 0], 64).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Budget, "{fault}");
}
