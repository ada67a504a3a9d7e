// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every operation on words, halves and bytes against values from another source: `vectors.txt`.

use super::{code, halves, put, run};
use crate::support::Flat;

#[test]
fn operations_give_what_another_source_says() {
    let mut wrong = Vec::new();
    let lines = include_str!("vectors.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut fields = line.split("; ");
        let text = fields.next().unwrap();
        let number = |digits| u32::from_str_radix(digits, 16).unwrap();
        let inputs: Vec<u32> = fields.next().unwrap().split(' ').map(number).collect();
        let expected = number(fields.next().unwrap());
        let space = Flat::new(64);
        let to = put(&space, &[0; 16]);
        let [low, high] = halves(to);
        let code = code(&[
            "MOV.i32 r2, u2",
            "MOV.i32 r3, u3",
            "MOV.i32 r4, u4",
            "MOV.i32 r5, u5",
            "IADD_IMM.i32 r0, 0x0, #0xAAAAAAAA",
            text,
            "LSHIFT_OR.i32 r1, r60, 0x3020100.b22, 0x0",
            "IADD.u32 r6, u0, r1",
            "MOV.i32 r7, u1",
            "STORE.i32.slot0.end @r0, r6, offset:0",
        ]);
        let mut uniforms = vec![low, high];
        uniforms.extend(inputs);
        match run(&space, &code, &uniforms, 1) {
            Ok(()) if space.words(to, 16) == [expected; 16] => {}
            Ok(()) => wrong.push(format!(
                "{text}: {:#x?}, not {expected:#x}",
                space.words(to, 1)
            )),
            Err(fault) => wrong.push(format!("{text}: {fault}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
