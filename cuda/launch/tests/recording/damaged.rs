// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manifests damaged at random: accepted ones keep all rules.
//!
//! All ten million: `cargo test --release -p gpureplay-cuda-launch --test recording -- --ignored`.

use fastrand::Rng;
use gpureplay_cuda_launch::recording::Launch;

const WORDS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e9",
    "\"\"",
    "[]",
    "true",
    "[[0, 8], [8, 8]]",
    "\u{fffd}",
];

fn damaged(random: &mut Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.usize(1..=4) {
        if lines.is_empty() {
            break;
        }
        let at = random.usize(..lines.len());
        match random.u8(..8) {
            0 => {
                lines.remove(at);
            }
            1 => lines.insert(at, lines[random.usize(..lines.len())].clone()),
            2 => lines.swap(at, 0),
            3 => lines[at] = format!("{}\u{0}", lines[at]),
            4 => {
                // Another line's number gives overlaps and wrong layouts.
                let other = lines[random.usize(..lines.len())].clone();
                if let (Some((key, _)), Some((_, value))) =
                    (lines[at].split_once('='), other.split_once('='))
                {
                    lines[at] = format!("{key}={value}");
                }
            }
            _ => {
                if let Some((key, _)) = lines[at].split_once('=') {
                    lines[at] = format!("{key}= {}", WORDS[random.usize(..WORDS.len())]);
                }
            }
        }
    }
    lines.join("\n")
}

fn read_damaged(count: u32) {
    let golden = include_str!("golden/launch.toml");
    assert!(Launch::parse(golden).is_ok());
    let mut random = Rng::with_seed(16);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..count {
        let Ok(launch) = Launch::parse(&damaged(&mut random, golden)) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        let mut end = 0;
        for region in &launch.regions {
            assert!(region.size > 0 && region.address >= end);
            end = region.address + region.size;
            assert!(end <= 1 << 47);
        }
        let mut start = 0;
        for [offset, size] in &launch.layout {
            assert!(*offset >= start);
            start = offset + size;
            assert!(offset + size <= launch.parameters.len());
        }
    }
    println!("{count} damaged manifests: {accepted} accepted, {refused} refused");
    assert!(accepted > count / 50 && refused > count / 50);
}

#[test]
fn a_damaged_manifest_is_refused_or_keeps_the_rules() {
    read_damaged(5_000);
}

#[test]
#[ignore = "long: minutes in a release build"]
fn ten_million_damaged_manifests_are_refused_or_keep_the_rules() {
    read_damaged(10_000_000);
}
