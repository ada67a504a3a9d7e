// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random shaders leave the same memory with any vector units.
//!
//! For AVX-512 loops: `cargo test --release -p mali-shader --test execution vectors`.

use crate::support::*;
use fastrand::Rng;
use gpureplay_memory::Vectors;
use mali_isa::*;
use mali_shader::absence;

const REGISTERS: u8 = 48;

const THREAD_BYTES: u32 = 256;

const THREADS: u32 = 64 + 37;

fn word(random: &mut Rng) -> u32 {
    let bits = random.u64(..);
    let half = |bits: u64| {
        let exponent = [0, 0, 1, 14, 15, 16, 30, 31][(bits & 7) as usize];
        let mantissa = [0, 0, 1, 0x200, 0x201, 0x3ff, bits >> 8, bits >> 8];
        let mantissa = mantissa[(bits >> 3 & 7) as usize] & 0x3ff;
        (bits >> 6 & 1) << 15 | exponent << 10 | mantissa
    };
    let single = |bits: u64| {
        let exponent = [0, 0, 1, 126, 127, 128, 254, 255][(bits & 7) as usize];
        let mantissa = [0, 0, 1, 1 << 22, 1 << 12, 0x7f_ffff, bits >> 8, bits >> 8];
        let mantissa = mantissa[(bits >> 3 & 7) as usize] & 0x7f_ffff;
        (bits >> 6 & 1) << 31 | exponent << 23 | mantissa
    };
    match bits >> 60 {
        0..4 => (half(bits) | half(bits >> 20) << 16) as u32,
        4..8 => single(bits) as u32,
        8..10 => (bits & 0xff) as u32,
        10 => (bits as u32 & 0xff).wrapping_neg(),
        _ => bits as u32,
    }
}

fn operations() -> Vec<Op> {
    let computes = |op: &Op| {
        let info = op.info();
        let partners = [
            "SHADDXH.i32",
            "SHADDXL.i64",
            "SHIFT_DOUBLE.i32",
            "RSHIFT_DOUBLE.i32",
            "CUBEFACE1",
            "CUBEFACE2",
        ];
        let branches = info.name.starts_with("BRANCH") || info.name.starts_with("JUMP");
        info.result
            && info.message.is_none()
            && !info.wide
            && !branches
            && !partners.contains(&info.name)
            && absence(op.mnemonic()).is_none()
    };
    Op::ALL.iter().copied().filter(computes).collect()
}

/// Registers `staging` to `staging` + 3, from or to the thread's place by FAU `slot`.
fn transfer(name: &str, staging_register: u8, slot: u8, flow_control: FlowControl) -> Vec<u8> {
    use Source::{FauHigh, FauLow, Port1, Port2, Stage};
    let address = instruction(Unit::Fma, "LSHIFT_ADD.i32", &[Port1, FauLow, Port2]);
    let transfer = instruction(Unit::Add, name, &[Stage, FauHigh]);
    let header = ClauseHeader {
        flow_control,
        ..message(&transfer, staging_register)
    };
    // r60 is the thread's number, r59 the shift.
    let registers = block(0x80 | slot, [0, 60, 59], None);
    coded(header, registers, address, transfer)
}

fn shader(random: &mut Rng, operations: &[Op]) -> Vec<u8> {
    let mov = instruction(Unit::Fma, "MOV.i32", &[Source::FauLow]);
    let shift = block(0x80, [0, 1, 2], Some((Unit::Fma, 59)));
    let mut code = alone(HEADER, shift, mov);
    let quarters = REGISTERS / 4;
    for quarter in 0..quarters {
        code.extend(transfer(
            "LOAD.i128",
            quarter * 4,
            1 + quarter,
            FlowControl::Continue,
        ));
    }
    for _ in 0..40 {
        let op = operations[random.u64(..operations.len() as u64) as usize];
        let ins = any_instruction(random, op);
        let [fma, add] = by_unit(ins, idle(op));
        let header = ClauseHeader {
            flush_to_zero: FlushToZero::ALL[random.u64(..8).min(3) as usize],
            suppress_nan: random.u64(..8) == 0,
            ..HEADER
        };
        let mut reads = [0; 3].map(|_| random.u8(..REGISTERS));
        reads[0] %= 16;
        reads[1] = reads[1].max(reads[0]);
        let write = Some((op.unit(), random.u8(..REGISTERS)));
        if let Ok(bytes) = encode_clause(&clause(header, block(0x81, reads, write), fma, add)) {
            code.extend(bytes);
        }
    }
    for quarter in 0..quarters {
        let end = if quarter + 1 == quarters {
            FlowControl::End
        } else {
            FlowControl::Continue
        };
        code.extend(transfer(
            "STORE.i128",
            quarter * 4,
            1 + quarters + quarter,
            end,
        ));
    }
    code
}

#[test]
fn every_vector_unit_leaves_the_same_memory() {
    let operations = operations();
    assert!(operations.len() > 200, "{}", operations.len());
    let mut random = Rng::with_seed(3);
    for round in 0..600 {
        let code = shader(&mut random, &operations);
        let input: Vec<u8> = (0..THREADS * THREAD_BYTES / 4)
            .flat_map(|_| word(&mut random).to_le_bytes())
            .collect();
        let mut first = None;
        for most in Vectors::ALL {
            if Vectors::limit(most) != most {
                continue;
            }
            let space = Flat::new(64);
            let (from, to) = (space.put(&input), space.put(&vec![0; input.len()]));
            let mut uniforms = vec![THREAD_BYTES.trailing_zeros(), 0];
            for base in [from, to] {
                for quarter in 0..u64::from(REGISTERS / 4) {
                    uniforms.extend(halves(base + 16 * quarter));
                }
            }
            let statistics = run(&space, &code, &uniforms, THREADS).unwrap();
            let left = space.words(to, input.len() / 4);
            assert_ne!(left, vec![0; left.len()]);
            let (unit, other, counts) = first.get_or_insert((most, left.clone(), statistics));
            assert_eq!(statistics, *counts, "round {round}: {unit:?}, {most:?}");
            for (at, (one, other)) in left.iter().zip(other.iter()).enumerate() {
                assert_eq!(
                    one,
                    other,
                    "round {round}, thread {}, r{}: {most:?}, {unit:?}",
                    at / 64,
                    at % 64
                );
            }
        }
    }
}
