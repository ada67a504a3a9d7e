// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every 20-bit and 23-bit word has one meaning; decoding and encoding are inverse.

use mali_isa::{Instruction, Modifier, Op, Source, Unit, decode_all, decode_word, encode_word};
use std::collections::BTreeMap;

/// The highest indices are more specific encodings, which come first.
const SHARED: [[&str; 2]; 4] = [
    ["LD_VAR", "LD_VAR_IMM"],
    ["LD_VAR_SPECIAL", "LD_VAR_IMM"],
    ["LD_VAR_FLAT", "LD_VAR_FLAT_IMM"],
    ["LEA_TEX", "LEA_TEX_IMM"],
];

fn exhaust(unit: Unit, wide: bool) -> BTreeMap<Op, u32> {
    let mut words = BTreeMap::new();
    for word in 0..1u32 << unit.width() {
        let Some(instruction) = decode_word(unit, word, wide) else {
            continue;
        };
        *words.entry(instruction.op).or_insert(0) += 1;
        assert_eq!(
            encode_word(&instruction),
            Ok(word),
            "{word:#x} is {instruction}"
        );
        if decode_all(unit, word, wide).nth(1).is_some() {
            let names: Vec<_> = decode_all(unit, word, wide)
                .map(|i| i.op.info().name)
                .collect();
            assert!(
                SHARED.iter().any(|shared| names == *shared),
                "{word:#x} is {names:?}"
            );
        }
    }
    words
}

#[test]
fn every_word_has_one_meaning_and_encodes_back() {
    let mut seen = BTreeMap::new();
    for unit in [Unit::Fma, Unit::Add] {
        for wide in [false, true] {
            seen.extend(exhaust(unit, wide));
        }
    }
    let missing: Vec<_> = Op::ALL
        .iter()
        .filter(|op| !seen.contains_key(op))
        .map(|op| op.info().name)
        .collect();
    assert!(
        missing.is_empty(),
        "operations that no word decodes to: {missing:?}"
    );
}

fn product(lists: &[Vec<u8>], f: &mut impl FnMut(&[u8])) {
    fn step(lists: &[Vec<u8>], values: &mut Vec<u8>, f: &mut impl FnMut(&[u8])) {
        match lists.split_first() {
            None => f(values),
            Some((first, rest)) => {
                for value in first {
                    values.push(*value);
                    step(rest, values, f);
                    values.pop();
                }
            }
        }
    }
    step(lists, &mut Vec::new(), f);
}

#[test]
fn every_combination_of_modifiers_that_encodes_decodes_to_itself() {
    for op in Op::ALL {
        let info = op.info();
        let lists: Vec<Vec<u8>> = info
            .modifiers
            .iter()
            .map(|m| m.options.iter().flatten().copied().collect())
            .collect();
        let mut encodable = vec![std::collections::BTreeSet::new(); lists.len()];
        for (a, b) in [
            (Source::Port0, Source::Port1),
            (Source::Port1, Source::Port0),
            (Source::T0, Source::T0),
        ] {
            product(&lists, &mut |values| {
                let mut instruction = Instruction::new(op);
                instruction.modifiers[..values.len()].copy_from_slice(values);
                for (index, source) in [a, b].into_iter().enumerate() {
                    if info
                        .sources
                        .get(index)
                        .is_some_and(|s| s.allowed >> source.selector() & 1 == 1)
                    {
                        instruction.sources[index] = source;
                    }
                }
                if let Ok(word) = encode_word(&instruction) {
                    assert_eq!(
                        decode_word(info.unit, word, info.wide),
                        Some(instruction),
                        "{word:#x}"
                    );
                    for (set, value) in encodable.iter_mut().zip(values) {
                        set.insert(*value);
                    }
                }
            });
        }
        for ((list, set), modifier) in lists.iter().zip(&encodable).zip(info.modifiers) {
            let lost: Vec<_> = list
                .iter()
                .filter(|v| !set.contains(v))
                .map(|v| modifier.modifier.options()[usize::from(*v)])
                .collect();
            assert!(
                lost.is_empty(),
                "{}: {} cannot be {lost:?}",
                info.name,
                modifier.modifier.name()
            );
        }
    }
}

#[test]
fn modifiers_are_read_by_kind() {
    let op = Op::find(Unit::Add, "F32_TO_S32").unwrap();
    let mut instruction = Instruction::new(op);
    assert_eq!(instruction.round(), mali_isa::Round::None);
    assert!(instruction.set_modifier(Modifier::Round, mali_isa::Round::Rtz as u8));
    assert_eq!(instruction.round(), mali_isa::Round::Rtz);
    assert!(!instruction.set_modifier(Modifier::Clamp, 1));
    assert_eq!(encode_word(&instruction), Ok(0x3c9b0));
    assert_eq!(instruction.to_string(), "+F32_TO_S32.rtz Port0");
}

#[test]
fn impossible_instructions_are_refused() {
    let mut shift = Instruction::new(Op::find(Unit::Fma, "ARSHIFT.i32").unwrap());
    assert!(encode_word(&shift).is_ok());
    shift.sources[1] = Source::T0; // the zero that makes it ARSHIFT
    assert!(encode_word(&shift).is_err());
    let mut texture = Instruction::new(Op::find(Unit::Add, "TEXS_2D.f32").unwrap());
    texture.immediates[0] = 8;
    assert!(encode_word(&texture).is_err());
    // Reserved comparison of FCMP; the other half of a 64-bit tuple once seemed to use it.
    assert_eq!(decode_word(Unit::Add, 0x3d965, false), None);
    assert!(decode_word(Unit::Add, 0x3d965, true).is_some());
    assert_eq!(decode_word(Unit::Add, 1 << 20, false), None);
}
