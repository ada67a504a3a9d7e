// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations against `vectors.txt` from `vectors.py`.

use super::results;

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
        let texts = [
            "MOV.i32 r2, u2",
            "MOV.i32 r3, u3",
            "MOV.i32 r4, u4",
            "MOV.i32 r5, u5",
            "IADD_IMM.i32 r0, 0x0, #0xAAAAAAAA",
            text,
        ];
        match results(&texts, &inputs, 1) {
            Ok(found) if found == [expected; 16] => {}
            Ok(found) => wrong.push(format!("{text}: {:#x}, not {expected:#x}", found[0])),
            Err(fault) => wrong.push(format!("{text}: {fault}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
