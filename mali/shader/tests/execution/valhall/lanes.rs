// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lanes of a warp, and early reads.

use super::{code, results, run};
use crate::support::{Flat, halves};

/// r0 of 32 threads in two warps; r1 is the thread's number.
fn lanes(text: &str) -> Vec<u32> {
    let texts = [
        "MOV.i32 r1, r60",
        "IADD_IMM.i32 r2, r60, #0x64",
        "IADD_IMM.i32 r3, 0x0, #0x3",
        "LSHIFT_AND.i32 r4, r1, 0x0.b00, r3",
        text,
    ];
    results(&texts, &[], 2).unwrap()
}

#[test]
fn lanes_find_each_other_in_their_warp() {
    // The value of lane n is 100 + n; r3 is 3.
    type Of = fn(u32) -> u32;
    let cases: [(&str, Of); 4] = [
        ("CLPER.i32 r0, r2, r3.b00", |lane| 100 + (lane & 16) + 3),
        ("CLPER.i32.xor r0, r2, r3.b00", |lane| 100 + (lane ^ 3)),
        ("CLPER.i32.subgroup4 r0, r2, r3.b00", |lane| {
            100 + (lane & !3) + 3
        }),
        ("CLPER.i32.shift.umax r0, r2, r3.b00", |lane| {
            match lane & 15 {
                13.. => u32::MAX,
                _ => 100 + lane + 3,
            }
        }),
    ];
    for (text, of) in cases {
        let expected: Vec<u32> = (0..32).map(of).collect();
        assert_eq!(lanes(text), expected, "{text}");
    }
}

#[test]
fn ballots_have_a_bit_for_each_lane() {
    assert_eq!(lanes("WMASK r0, r4"), [0xeeee; 32]);
    assert_eq!(lanes("WMASK.subgroup4 r0, r4"), [0xe; 32]);
}

#[test]
fn results_are_not_there_before_a_wait() {
    let space = Flat::new(64);
    let [low, high] = halves(space.put_words(&[1, 2]));
    let early = code(&[
        "MOV.i32 r6, u0",
        "MOV.i32 r7, u1",
        "LOAD.i32.unsigned.slot1 @r0, r6, offset:0",
        "IADD.u32 r0, r0, r6",
        "NOP.end",
    ]);
    let said = run(&space, &early, &[low, high], 1);
    if cfg!(debug_assertions) {
        let said = said.unwrap_err().to_string();
        assert!(
            said.contains("touches r0 before it has waited for slot 1"),
            "{said}"
        );
    } else {
        said.unwrap();
    }
}
