// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit and atomic operations.

use super::left_alone;
use crate::support::halves;

const A: u64 = 0x8123_4567_89ab_cdef;
const B: u64 = 0x0fed_cba9_9876_5432;

#[test]
fn pairs_of_registers_are_numbers_of_64_bits() {
    let cases = [
        ("IADD.u64 r0, r2, r4", A.wrapping_add(B)),
        ("ISUB.u64 r0, r4, r2", B.wrapping_sub(A)),
        (
            "IADD.s64 r0, r4, r2.w0",
            B.wrapping_add(A as u32 as i32 as u64),
        ),
        ("IADD.u64 r0, r4, r2.w0", B.wrapping_add(A & 0xffff_ffff)),
        (
            "IADD.s64 r0, r4, r2.h1",
            B.wrapping_add(0xffff_ffff_ffff_89ab),
        ),
        (
            "SHADDX.u64 r0, r2, r4.w0, shift:0x3",
            A.wrapping_add((B & 0xffff_ffff) << 3),
        ),
        (
            "SHADDX.s64 r0, r2, r4.w0, shift:0x2",
            A.wrapping_add((B as u32 as i32 as u64) << 2),
        ),
        ("LSHIFT_OR.i64 r0, r2, r8.b00, 0x0", A << 37),
        ("RSHIFT_OR.i64 r0, r2, r8.b00, r4", A >> 37 | B),
        (
            "RSHIFT_OR.i64.signed r0, r2, r8.b11, 0x0",
            (A as i64 >> 4) as u64,
        ),
        (
            "RSHIFT_AND.i64.not_result r0, r2, r8.b11, r4.not",
            !(A >> 4 & !B),
        ),
        ("LSHIFT_XOR.i64 r0, r2, r8.b11, r4", A << 4 ^ B),
    ];
    for (text, expected) in cases {
        let texts = [
            "MOV.i32 r2, u2",
            "MOV.i32 r3, u3",
            "MOV.i32 r4, u4",
            "MOV.i32 r5, u5",
            "IADD_IMM.i32 r8, 0x0, #0x425",
            text,
            "STORE.i64.slot0.end @r0:r1, r6, offset:0",
        ];
        let inputs = [halves(A), halves(B)].concat();
        let found = left_alone(&[0; 2], &inputs, &texts);
        assert_eq!(found, halves(expected), "{text}");
    }
}

#[test]
fn loads_extend_to_64_bits() {
    for (text, expected) in [
        (
            "LOAD.i8.d0.slot0.wait0 @r0:r1, r6, offset:3",
            0xffff_ffff_ffff_ff81,
        ),
        (
            "LOAD.i16.d0.unsigned.slot0.wait0 @r0:r1, r6, offset:2",
            0x8123,
        ),
        (
            "LOAD.i32.d0.slot0.wait0 @r0:r1, r6, offset:0",
            0xffff_ffff_8123_4567u64,
        ),
    ] {
        let texts = [text, "STORE.i64.slot0.end @r0:r1, r6, offset:4"];
        let words = left_alone(&[0x8123_4567, 0, 0], &[], &texts);
        assert_eq!(words[1..], halves(expected), "{text}");
    }
}

#[test]
fn atomic_operations_on_64_bits_carry() {
    const START: u64 = 0xffff_fff9;
    let cases = [
        (
            "ATOM_RETURN.i64.slot0.aadd.wait0 @r2:r3, @r4:r5, r6, offset:0x0",
            START + 16,
        ),
        (
            "ATOM1_RETURN.i64.slot0.ainc.wait0 @r2:r3, r6, offset:0x0",
            START + 16,
        ),
        (
            "ATOM.i64.slot0.aumax.wait0 @r8:r9, r6, offset:0x0",
            5 << 32 | 1,
        ),
        (
            "ATOM_RETURN.i64.slot0.compare.axchg.wait0 @r2:r3, @r8:r9:r10:r11, r6, offset:0x0",
            5 << 32 | 1,
        ),
    ];
    for (text, expected) in cases {
        let texts = [
            "IADD_IMM.i32 r4, 0x0, #0x1",
            "IADD_IMM.i32 r5, 0x0, #0x0",
            "IADD_IMM.i32 r8, 0x0, #0x1",
            "IADD_IMM.i32 r9, 0x0, #0x5",
            "IADD_IMM.i32 r10, 0x0, #0xFFFFFFF9",
            "IADD_IMM.i32 r11, 0x0, #0x0",
            text,
            "NOP.end",
        ];
        let found = left_alone(&halves(START), &[], &texts);
        assert_eq!(found, halves(expected), "{text}");
    }
}
