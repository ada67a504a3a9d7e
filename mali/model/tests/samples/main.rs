// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sample kernels from Mesa, against host references.
#![allow(clippy::unwrap_used)]

mod basic;
mod bench;
mod dump;
mod fp16;
mod images;
mod machine;
mod math;
mod nn;
#[path = "../../../isa/tests/instructions/support/mod.rs"]
mod support;

use bench::Bench;
use dump::Dump;

type Check = Box<dyn Fn(&mut Bench) -> Result<(), String>>;

type Case = (&'static str, fn(&mut Bench) -> Result<(), String>);

const ROUNDS: u64 = 4;

/// Shaders without a dump use `memory_of`'s, of the same generation. G71 and G76 have no OpenGL ES samples (five
/// kernels), G31 and G72 no indirect dispatch.
fn kernels(product: u16, memory_of: u16, expected: usize) {
    let Some(samples) = support::shared("reference/shader-samples") else {
        return;
    };
    let mut errors = Vec::new();
    let mut count = 0;
    let cases = [
        basic::CASES,
        math::CASES,
        nn::CASES,
        fp16::CASES,
        images::CASES,
    ];
    let cases = cases.into_iter().flatten();
    let cases = cases.map(|&(name, check)| (name, Box::new(check) as Check));
    let functions = math::FUNCTIONS.iter().map(|&(name, domain, within, of)| {
        let check: Check = Box::new(move |b| math::one(b, domain, within, of));
        (name, check)
    });
    for (name, check) in cases.chain(functions) {
        let binary = samples.join(format!("{product:04x}/{name}.0.bin"));
        let path = samples.join(format!("{memory_of:04x}/{name}.trace.txt.xz"));
        if !binary.exists() || !path.exists() {
            continue;
        }
        let dump = Dump::read(&path);
        let shader = std::fs::read(&binary).unwrap();
        count += 1;
        for round in 0..ROUNDS {
            let mut bench = Bench::new(product, &dump, 1 + round as usize % 2, round + 1);
            if product != memory_of {
                bench.replace_shader(&shader);
            }
            if let Err(error) = check(&mut bench) {
                errors.push(format!("{name} round {round}: {error}"));
                break;
            }
        }
    }
    println!("{count} kernels on {product:04x}");
    assert!(
        errors.is_empty(),
        "{} of {count} fail:\n{}",
        errors.len(),
        errors.join("\n")
    );
    assert_eq!(count, expected);
}

#[test]
fn g52() {
    kernels(0x7212, 0x7212, 71);
}

#[test]
fn g31() {
    kernels(0x7093, 0x7212, 70);
}

#[test]
fn g76() {
    kernels(0x7211, 0x7212, 66);
}

#[test]
fn g72() {
    kernels(0x6221, 0x6221, 70);
}

#[test]
fn g71() {
    kernels(0x6000, 0x6000, 66);
}
