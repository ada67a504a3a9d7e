// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valhall shaders: Mesa's and hand-made.

mod lanes;
mod tables;
mod vectors;
mod wide;

use fastrand::Rng;
use gpureplay_shader::{Grid, ShaderFault};
use mali_facts::Architecture;
use mali_isa::valhall::assemble;
use mali_shader::{Dispatch, Subnormals};

use crate::support::{Flat, dispatch, halves, launch};

const SCALE_ADD: &[u8] = include_bytes!("../../../../isa/tests/golden/scale_add.bin");
const LOOP: &[u8] = include_bytes!("../../../../isa/tests/golden/loop_with_exits.bin");

/// Groups of 16 threads.
fn run(space: &Flat, code: &[u8], uniforms: &[u32], groups: u32) -> Result<(), ShaderFault> {
    run_with(space, code, uniforms, groups, Dispatch::default())
}

fn run_with(
    space: &Flat,
    code: &[u8],
    uniforms: &[u32],
    groups: u32,
    more: Dispatch,
) -> Result<(), ShaderFault> {
    let plain = dispatch(space, space.put(code), uniforms, 16);
    let dispatch = Dispatch {
        grid: Grid {
            workgroup_count: [groups, 1, 1],
            ..plain.grid
        },
        architecture: Architecture::V9,
        ..more
    };
    launch(&dispatch, space).map(drop)
}

fn code(texts: &[&str]) -> Vec<u8> {
    let words = texts.iter().map(|text| assemble(text).unwrap());
    words.flat_map(u64::to_le_bytes).collect()
}

/// Each thread's r0; inputs from u2 on; r5 to r7 are lost.
fn results(texts: &[&str], inputs: &[u32], groups: u32) -> Result<Vec<u32>, ShaderFault> {
    let space = Flat::new(64);
    let count = 16 * groups as usize;
    let to = space.put_words(&vec![0; count]);
    let mut uniforms = halves(to).to_vec();
    uniforms.extend(inputs);
    let mut texts = texts.to_vec();
    texts.extend([
        "LSHIFT_OR.i32 r5, r60, 0x3020100.b22, 0x0",
        "IADD.u32 r6, u0, r5",
        "MOV.i32 r7, u1",
        "STORE.i32.slot0.end @r0, r6, offset:0",
    ]);
    run(&space, &code(&texts), &uniforms, groups)?;
    Ok(space.words(to, count))
}

fn left(space: &Flat, words: &[u32], inputs: &[u32], texts: &[&str], more: Dispatch) -> Vec<u32> {
    let to = space.put_words(words);
    let uniforms = [&halves(to), inputs].concat();
    let texts = [&["MOV.i32 r6, u0", "MOV.i32 r7, u1"], texts].concat();
    run_with(space, &code(&texts), &uniforms, 1, more).unwrap();
    space.words(to, words.len())
}

fn left_alone(words: &[u32], inputs: &[u32], texts: &[&str]) -> Vec<u32> {
    left(&Flat::new(64), words, inputs, texts, Dispatch::default())
}

#[test]
fn scale_add_computes_what_its_source_says() {
    let space = Flat::new(64);
    let mut random = Rng::with_seed(57);
    let mut number = || (random.u16(..2001) as f32 - 1000.0) / 7.0;
    let x: Vec<f32> = (0..64).map(|_| number()).collect();
    let y: Vec<f32> = (0..64).map(|_| number()).collect();
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|it| it.to_bits()).collect() };
    let (at_x, at_y) = (space.put_words(&bits(&x)), space.put_words(&bits(&y)));
    let scale = 0.3f32;
    let [x0, x1] = halves(at_x);
    let [y0, y1] = halves(at_y);
    run(&space, SCALE_ADD, &[x0, x1, y0, y1, scale.to_bits()], 4).unwrap();
    let expected: Vec<f32> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| scale.mul_add(*x, *y))
        .collect();
    assert_eq!(space.words(at_y, 64), bits(&expected));
}

/// `loop_with_exits` of tools/guest/apps/kernels/basic.cl.
fn loop_with_exits(x: &[i32], i: usize) -> i32 {
    let mut sum = 0;
    for j in 0..x[i] & 63 {
        let value = x[j as usize];
        if (value ^ j) & 1 != 0 {
            sum += 3 * j;
            continue;
        }
        if sum > 900 {
            break;
        }
        sum ^= value & 255;
    }
    sum
}

#[test]
fn lanes_that_leave_a_loop_by_three_ways_come_together() {
    let space = Flat::new(64);
    let mut random = Rng::with_seed(9);
    let x: Vec<i32> = (0..128).map(|_| random.i32(..)).collect();
    let words: Vec<u32> = x.iter().map(|it| *it as u32).collect();
    let (at_x, at_y) = (space.put_words(&words), space.put_words(&[7; 128]));
    let [x0, x1] = halves(at_x);
    let [y0, y1] = halves(at_y);
    // Group size, x, y, two offsets.
    run(&space, LOOP, &[16, x0, x1, y0, y1, 0, 0], 8).unwrap();
    let expected: Vec<u32> = (0..128).map(|i| loop_with_exits(&x, i) as u32).collect();
    assert_eq!(space.words(at_y, 128), expected);
}

#[test]
fn operations_give_what_arithmetic_says() {
    let (a, b) = (0x8123_4567u32, 0x0000_0019u32);
    let cases = [
        ("IADD.u32 r0, r2, r3", a.wrapping_add(b)),
        ("IADD.s32 r0, r2.h1, r3", 0xffff_8123u32.wrapping_add(b)),
        ("IADD.u32 r0, r2.b3, r3", 0x81 + b),
        ("ISUB.s32 r0, r2, r3", a.wrapping_sub(b)),
        ("IMUL.i32 r0, r2, r3", a.wrapping_mul(b)),
        ("IADD_IMM.i32 r0, r2, #0xFFFFFFFF", a - 1),
        ("LSHIFT_OR.i32 r0, r2, r3.b00, 0x0", a << 25),
        ("RSHIFT_AND.i32 r0, r2, r3.b00, 0xFFFFFFFF", a >> 25),
        (
            "RSHIFT_OR.i32.signed r0, r2, r3.b00, 0x0",
            (a as i32 >> 25) as u32,
        ),
        ("LSHIFT_XOR.i32 r0, r2, r3.b11, r3.not", a ^ !b),
        ("LSHIFT_OR.i32.not_result r0, r2, 0x0.b00, r3", !(a | b)),
        ("ICMP_OR.u32.gt.i1 r0, r2, r3, 0x0", 1),
        ("ICMP_OR.s32.gt.i1 r0, r2, r3, 0x0", 0),
        ("ICMP_AND.s32.le.m1 r0, r2, r3, r3", b),
        ("ICMP_OR.u32.eq.f1 r0, r2, r2, r3", 0x3f80_0000 | b),
        ("CSEL.s32.lt r0, r2, r3, r3, r2", b),
        ("CSEL.u32.lt r0, r2, r3, r3, r2", a),
        ("CLZ.u32 r0, r3", 27),
        ("POPCOUNT.i32 r0, r3", 3),
        ("BITREV.i32 r0, r3", b.reverse_bits()),
        ("U16_TO_U32 r0, r2.h11", 0x8123),
        ("S16_TO_S32 r0, r2.h11", 0xffff_8123),
        ("S8_TO_S32 r0, r2.b3", 0xffff_ff81),
        ("U32_TO_F32 r0, r3", 25f32.to_bits()),
        ("S32_TO_F32 r0, r2", (a as i32 as f32).to_bits()),
        ("F32_TO_S32.rtz r0, 0x42480000", 50),
        (
            "FADD.f32 r0, 0x3F800000, 0x42480000.neg",
            (-49f32).to_bits(),
        ),
        (
            "FMA.f32.clamp_0_1 r0, 0x42480000, 0x42480000, 0x0",
            1f32.to_bits(),
        ),
        ("FMAX.f32 r0, r4, 0x3F800000", 1f32.to_bits()),
        ("FCMP_OR.f32.ne.m1 r0, r4, r4, 0x0", u32::MAX),
        ("MOV.i32 r0, r2", a),
        ("MKVEC.v2i16 r0, r2.h11, r3.h00", 0x19_8123),
        ("MKVEC.v2i8 r0, r2.b3, r3.b0, 0xFFFFFFFF", 0xffff_1981),
        ("HADD.u32 r0, r2, r3", (a >> 1) + (b >> 1) + 1),
        ("HADD.s32.rhadd r0, r3, 0x0", 13),
        ("S16_TO_F32 r0, r2.h11", (-32477f32).to_bits()),
        ("U8_TO_F32 r0, r2.b3", 129f32.to_bits()),
    ];
    for (text, expected) in cases {
        let texts = [
            "IADD.u32 r2, u2, 0x0",
            "IADD.u32 r3, u3, 0x0",
            "IADD_IMM.i32 r4, 0x0, #0x7FC00000",
            text,
        ];
        let found = results(&texts, &[a, b], 1).unwrap();
        assert_eq!(found, [expected; 16], "{text}");
    }
}

#[test]
fn loads_extend_or_replace_a_part() {
    let cases = [
        ("LOAD.i8.w0.slot0.wait0 @r0, r6, offset:3", 0xffff_ff81),
        ("LOAD.i8.w0.unsigned.slot0.wait0 @r0, r6, offset:3", 0x81),
        ("LOAD.i8.b1.slot0.wait0 @r0, r6, offset:0", 0xaaaa_67aa),
        ("LOAD.i16.h1.slot0.wait0 @r0, r6, offset:2", 0x8123_aaaa),
        ("LOAD.i16.w0.slot0.wait0 @r0, r6, offset:-4", 0xffff_9abc),
        ("LOAD.i32.slot0.wait0 @r0, r6, offset:-4", 0xdef0_9abc),
    ];
    for (text, expected) in cases {
        let texts = [
            "IADD_IMM.i32 r6, r6, #0x4",
            "IADD_IMM.i32 r0, 0x0, #0xAAAAAAAA",
            text,
            "STORE.i32.slot0.end @r0, r6, offset:4",
        ];
        let words = left_alone(&[0xdef0_9abc, 0x8123_4567, 0], &[], &texts);
        assert_eq!(words[2], expected, "{text}");
    }
}

type OldValue = fn(u32) -> u32;

#[test]
fn atomic_operations_count_every_lane_once() {
    // 16 lanes work on a word, first 40: its last value, and each lane's old one.
    let cases: [(&str, u32, OldValue); 6] = [
        (
            "ATOM1_RETURN.i32.slot0.ainc.wait0 @r2, r6, offset:0x0",
            56,
            |lane| 40 + lane,
        ),
        (
            "ATOM1_RETURN.i32.slot0.adec.wait0 @r2, r6, offset:0x0",
            24,
            |lane| 40 - lane,
        ),
        (
            "ATOM_RETURN.i32.slot0.aadd.wait0 @r2, @r3, r6, offset:0x0",
            72,
            |lane| 40 + 2 * lane,
        ),
        (
            "ATOM_RETURN.i32.slot0.axchg.wait0 @r2, @r3, r6, offset:0x0",
            2,
            |lane| {
                if lane == 0 { 40 } else { 2 }
            },
        ),
        (
            "ATOM_RETURN.i32.slot0.compare.axchg.wait0 @r2, @r3:r4, r6, offset:0x0",
            2,
            |lane| {
                if lane == 0 { 40 } else { 2 }
            },
        ),
        ("ATOM.i32.slot0.aumax.wait0 @r4, r6, offset:0x0", 40, |_| 7),
    ];
    for (text, last, old) in cases {
        let texts = [
            "IADD_IMM.i32 r2, 0x0, #0x7",
            "IADD_IMM.i32 r3, 0x0, #0x2",
            "IADD_IMM.i32 r4, 0x0, #0x28",
            text,
            "LSHIFT_OR.i32 r1, r60, 0x3020100.b22, 0x0",
            "IADD.u32 r6, r6, r1",
            "STORE.i32.slot0.end @r2, r6, offset:4",
        ];
        let words = left_alone(&[40; 17], &[], &texts);
        assert_eq!(words[0], last, "{text}");
        let expected: Vec<u32> = (0..16).map(old).collect();
        assert_eq!(words[1..], expected, "{text}");
    }
}

#[test]
fn subnormal_numbers_are_kept_or_flushed() {
    use Subnormals::{Flushed, Kept, SinglesFlushed};
    let cases = [
        ("FADD.f32 r0, r2, 0x0", Kept, 1),
        ("FADD.f32 r0, r2, 0x0", SinglesFlushed, 0),
        ("FADD.f32 r0, r2.neg, 0x0.neg", SinglesFlushed, 0x8000_0000),
        ("FMA.f32 r0, r4, r5, 0x0.neg", Kept, 0x0020_0000),
        ("FMA.f32 r0, r4, r5, 0x0.neg", Flushed, 0),
        ("FADD.v2f16 r0, r3, 0x0", SinglesFlushed, 0x8001_0001),
        ("FADD.v2f16 r0, r3, r3", Flushed, 0x8000_0000),
    ];
    for (text, subnormals, expected) in cases {
        let texts = [
            "IADD_IMM.i32 r2, 0x0, #0x1",
            "IADD_IMM.i32 r3, 0x0, #0x80010001",
            "IADD_IMM.i32 r4, 0x0, #0x800000",
            "IADD_IMM.i32 r5, 0x0, #0x3E800000",
            text,
            "STORE.i32.slot0.end @r0, r6, offset:0",
        ];
        let more = Dispatch {
            subnormals,
            ..Dispatch::default()
        };
        let found = left(&Flat::new(64), &[0], &[], &texts, more);
        assert_eq!(found, [expected], "{text}, {subnormals:?}");
    }
}

#[test]
fn what_is_not_translated_is_a_fault_by_its_name() {
    let space = Flat::new(64);
    let fault = |texts: &[&str]| run(&space, &code(texts), &[], 1).unwrap_err().to_string();
    for (text, why) in [
        (
            "FSINCOS_OFFSET.u6.end r0, r1",
            "FSINCOS_OFFSET.u6 is not translated",
        ),
        ("IMUL.i32.saturate.end r0, r1, r2", "saturates"),
        ("FRCP.f16.end r0.h1, r3.h00", "writes an upper half"),
        (
            "ICMP_OR.u32.eq.u1.end r0, r1, r2, 0x0",
            "a truth that is not public",
        ),
        ("LOAD.i32.slot0.end @r0, r3, offset:0", "breaks a limit"),
        (
            "BRANCHZI.absolute r0, r2",
            "jumps to a place that it computes",
        ),
    ] {
        let said = fault(&[text, "NOP.end"]);
        assert!(said.contains(why), "{text}: {said}");
    }
    let zero = run(&space, &[0xff; 8], &[], 1).unwrap_err().to_string();
    assert!(zero.contains("is no instruction"), "{zero}");
    let endless = fault(&["NOP", "BRANCHZ.eq 0x0, offset:-2"]);
    assert!(!endless.is_empty());
}
