// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random words against the decoder of the reference data.

use std::process::Command;

use mali_isa::valhall::{Instruction, Op};

use crate::streams::printed;
use crate::support::shared;
use crate::words::random;

#[test]
fn random_words_agree_with_the_reference_decoder() {
    compare(80);
}

#[test]
#[ignore = "takes ten seconds; the test above is a sample of it"]
fn many_random_words_agree_with_the_reference_decoder() {
    compare(1191);
}

fn compare(rounds: usize) {
    let Some(script) = shared("reference/valhall/decode.py") else {
        return;
    };
    let mut source = fastrand::Rng::with_seed(0x57);
    let ops = std::iter::repeat_n(Op::ALL, rounds).flatten();
    let words: Vec<u64> = ops.map(|op| random(&mut source, *op)).collect();
    let mut python = Command::new("python3");
    python.arg(script).arg("--words");
    let Some(theirs) = printed(python, &words) else {
        return;
    };
    assert_eq!(theirs.lines().count(), words.len());
    for (word, theirs) in words.iter().zip(theirs.lines()) {
        let ours = Instruction::decode(*word).unwrap().to_string();
        assert_eq!(respelled(&ours), theirs.trim_end(), "{word:#018x}");
    }
}

/// The reference prints two modifiers of gradients under one name, and omits two others.
fn respelled(text: &str) -> String {
    text.replace(".lod_bias_disable", ".lod_mode")
        .replace(".lod_clamp_disable", ".lod_mode")
        .replace(".force_delta_enable", "")
        .replace(".derivative_enable", "")
}
