// SPDX-License-Identifier: MIT OR Apache-2.0
//! Randomly changed recordings end in time with a stated code.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::stage::{Stage, ended};

/// Per kind of file.
const TRIALS: usize = 60;
const LONGEST: Duration = Duration::from_secs(60);
/// From the manual.
const CODES: [i32; 6] = [0, 1, 2, 3, 4, 5];
/// They move writes, and the stand-in has no GPU's page tables.
const POINTERS: [&str; 5] = ["parameters", "address", "grid", "block", "size"];

fn damaged(random: &mut Rng, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(..lines.len());
        let other = lines[random.usize(..lines.len())].clone();
        if POINTERS.iter().any(|word| lines[at].contains(word)) {
            continue;
        }
        match random.u8(..4) {
            0 => _ = lines.remove(at),
            1 => lines.insert(at, other),
            2 if !lines[at].is_empty() => {
                let place = random.usize(..lines[at].len());
                let byte = char::from(random.u8(b' '..127));
                if lines[at].is_char_boundary(place) {
                    lines[at].insert(place, byte);
                }
            }
            _ => {
                if let (Some((key, _)), Some((_, value))) =
                    (lines[at].split_once('='), other.split_once('='))
                {
                    lines[at] = format!("{key}={value}");
                }
            }
        }
    }
    lines.join("\n")
}

fn trial(stage: &Stage, file: &str, words: &str, seed: u64) -> usize {
    let path = stage.path(file);
    let good = fs::read_to_string(&path).unwrap();
    let mut random = Rng::with_seed(seed);
    let mut refused = 0;
    for number in 0..TRIALS {
        let bad = damaged(&mut random, &good);
        fs::write(&path, &bad).unwrap();
        let begun = Instant::now();
        let mut command = stage.command(words);
        let said = ended(command.stdin(Stdio::null()));
        let is_known = said.code.is_some_and(|code| CODES.contains(&code));
        assert!(
            is_known && !said.err.contains("panicked"),
            "{file}, {number}: {said:?}\n{bad}"
        );
        assert!(begun.elapsed() < LONGEST, "{file}, {number}\n{bad}");
        refused += usize::from(said.code == Some(3));
    }
    fs::write(&path, good).unwrap();
    refused
}

#[test]
fn changed_runs_and_launches_end_with_an_exit_code() {
    let stage = Stage::new();
    stage.record("--run", "turns plain").gave(0);
    let refused = trial(&stage, "rec/runs/0.toml", "run rec", 1);
    assert!(refused > TRIALS / 4, "{refused} refused");
    stage.run("run rec").gave(0);

    let stage = Stage::new();
    stage.record("", "scale").gave(0);
    let refused = trial(&stage, "rec/launches/0.toml", "run rec#0", 2);
    assert!(refused > TRIALS / 4, "{refused} refused");
    stage.run("run rec#0").gave(0);
}
