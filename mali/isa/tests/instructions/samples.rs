// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sample shaders, against Mesa's text and bytes.
//!
//! Only order of modifiers, comments and float values may differ.

use mali_isa::{ClauseText, Op, Product, Shader, Unit, decode_clause, encode_clause};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support;

const GPUS: [&str; 5] = ["6000", "6221", "7093", "7211", "7212"];

const PRODUCTS: [Product; 5] = [
    Product::G71,
    Product::G72,
    Product::G31,
    Product::G76,
    Product::G52,
];

/// Operations, and what Mesa emits for products without them.
const REPLACED: [(&str, &str); 4] = [
    ("FRCP.f32", "FRCP_APPROX.f32"),
    ("FRSQ.f32", "FRSQ_APPROX.f32"),
    ("FEXP.f32", "FEXP_TABLE.u4"),
    ("FLOGD.f32", "FLOG_TABLE.f32"),
];

#[test]
fn samples_contain_only_what_their_product_has() {
    let Some(folder) = support::shared("reference/shader-samples") else {
        return;
    };
    for (gpu, product) in GPUS.into_iter().zip(PRODUCTS) {
        let mut seen: BTreeSet<Op> = BTreeSet::new();
        for path in support::binaries(folder.join(gpu)) {
            let shader = Shader::decode(&fs::read(&path).unwrap()).unwrap();
            for tuple in shader.clauses.iter().flat_map(|one| &one.clause.tuples) {
                seen.extend([tuple.fma.op, tuple.add.op]);
            }
        }
        let denied: Vec<_> = seen
            .iter()
            .map(|op| op.info())
            .filter(|info| !info.products.contains(product))
            .map(|info| info.name)
            .collect();
        assert!(denied.is_empty(), "{product}: {denied:?}");
        // The kernels are the same for all products.
        for (operation, other) in REPLACED {
            let emits = |name: &str| seen.iter().any(|op| op.info().name == name);
            let has = Op::find(Unit::Add, operation).unwrap();
            assert_eq!(
                (emits(operation), emits(other)),
                match has.info().products.contains(product) {
                    true => (true, false),
                    false => (false, true),
                },
                "{product} {operation}"
            );
        }
    }
}

/// Without comments; parts after the first dot are sorted.
fn spelled(line: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("/*") {
        text.push_str(before.trim_end());
        rest = after.split_once("*/").expect("an unfinished comment").1;
    }
    text.push_str(rest);
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, modifiers) = word.split_once('.').unwrap_or((word, ""));
            let mut modifiers: Vec<&str> = modifiers.split('.').filter(|m| !m.is_empty()).collect();
            modifiers.sort();
            format!("{first} {}", modifiers.join("."))
        })
        .collect()
}

fn clauses(text: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut found: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut label = String::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && *l != "{" && *l != "}")
    {
        if line.ends_with(':') {
            label = line.into();
            assert!(
                found.insert(label.clone(), Vec::new()).is_none(),
                "label {label} twice"
            );
        } else {
            found
                .get_mut(&label)
                .expect("a line before the first label")
                .push(spelled(line));
        }
    }
    found
}

#[test]
fn samples_agree_with_mesa() {
    let Some(folder) = crate::support::shared("reference/shader-samples") else {
        return;
    };
    let (mut shaders, mut count, mut wrong) = (0, 0, Vec::new());
    for gpu in GPUS {
        for file in support::binaries(folder.join(gpu)) {
            let name = file.display();
            let code = fs::read(&file).unwrap();
            let theirs = clauses(&fs::read_to_string(file.with_extension("asm")).unwrap());
            let mut ours = String::new();
            let mut offset = 0;
            // Mesa prints up to the zero word at the code's end.
            while code.len() >= offset + 16 && code[offset..offset + 4] != [0; 4] {
                let (clause, size) = decode_clause(&code[offset..])
                    .unwrap_or_else(|e| panic!("{name}+{offset:#x}: {e}"));
                let again = encode_clause(&clause).unwrap();
                assert_eq!(again, code[offset..offset + size], "{name}");
                count += clause.tuples.len() * 2;
                let text = ClauseText {
                    clause: &clause,
                    offset: offset as u32,
                };
                ours.push_str(&text.to_string());
                offset += size;
            }
            let ours = clauses(&ours);
            assert_eq!(ours.len(), theirs.len(), "{name}: number of clauses");
            for ((our_label, our_lines), (label, lines)) in ours.iter().zip(&theirs) {
                assert_eq!(our_label, label, "{name}");
                let (found, expected) = (our_lines.len(), lines.len());
                assert_eq!(found, expected, "{name}: lines of {label}");
                for (ours, theirs) in our_lines.iter().zip(lines) {
                    if ours != theirs {
                        wrong.push(format!("{name} {label} ours {ours:?} theirs {theirs:?}"));
                    }
                }
            }
            // Mesa also emits clauses after an unconditional jump.
            let walked = Shader::decode(&code).unwrap();
            let reached = walked.clauses.len();
            assert!(
                reached <= ours.len() && !walked.dynamic,
                "{name}: {reached} of {}, {}",
                ours.len(),
                walked.dynamic
            );
            assert_eq!(walked.size() as usize, offset, "{name}: size");
            shaders += 1;
        }
    }
    println!("{shaders} shaders, {count} instructions");
    assert!(
        wrong.is_empty(),
        "{} lines differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert_eq!((shaders, count), (344, 43_526));
}
