// SPDX-License-Identifier: MIT OR Apache-2.0
//! A standing attacker: expensive files, changed at random. Heap, steps and output of commands must
//! stay within a budget per byte of the files.
//!
//! `cargo xtask cost` also counts steps, runs longer, and adds up results. Variables:
//! - `GPUREPLAY_COST_SECONDS`: duration.
//! - `GPUREPLAY_COST_SEED`: first seed; `GPUREPLAY_COST_STRIDE`: seed step.
//! - `GPUREPLAY_COST_BEFORE`: a file of earlier runs; commands with less time come first.
//! - `GPUREPLAY_COST_COMMAND`: only commands of these names, or with this in them.
//! - `GPUREPLAY_COST_REPORT`: a file for the result.
//! - `GPUREPLAY_COST_FINDINGS`: a directory for inputs beyond a budget.
//! - `GPUREPLAY_COST_MEASURE`: measure without a budget.
#![allow(clippy::unwrap_used)]

mod attacker;
mod case;
mod commands;
mod count;
mod drawings;
#[path = "../../../../mali/compile/tests/model/driver.rs"]
mod driver;
#[path = "../../../../mali/model/tests/driver/machine.rs"]
#[allow(dead_code)]
mod machine;
mod originals;
#[path = "../../../../mali/model/tests/driver/picture.rs"]
#[allow(dead_code)]
mod picture;
mod place;
mod recordings;
mod report;
mod states;
mod values;

use std::process::{Command, ExitCode, Stdio};

use attacker::Attacker;
use case::Case;
use commands::{COMMANDS, Given};
use gpureplay_trials::review;
use place::Place;

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(format!("GPUREPLAY_COST_{name}"))
        .ok()?
        .parse()
        .ok()
}

type Test = fn() -> Vec<String>;

/// Each in its own process, which is counted whole.
const TESTS: [(&str, Test); 3] = [
    (
        "no_file_costs_more_than_its_budget",
        no_file_costs_more_than_its_budget,
    ),
    (
        "the_files_of_the_review_are_refused_or_stay_within_their_budgets",
        the_files_of_the_review_are_refused_or_stay_within_their_budgets,
    ),
    (
        "a_session_has_three_copies_of_a_state",
        a_session_has_three_copies_of_a_state,
    ),
];

fn main() -> ExitCode {
    let words = std::env::args().skip(1);
    let filters: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|part| name.contains(part));
    let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| chosen(name)).collect();
    let passed = match chosen[..] {
        [(name, test)] => alone(name, *test),
        _ => all_pass(chosen.into_iter().map(|(name, _)| *name)),
    };
    ExitCode::from(u8::from(!passed))
}

fn all_pass<'n>(names: impl Iterator<Item = &'n str>) -> bool {
    let program = std::env::current_exe().unwrap();
    let start = |name| {
        let mut command = Command::new(&program);
        command.arg(name).stdout(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = names.map(start).collect();
    let mut passed = true;
    for process in running {
        let ended = process.wait_with_output().unwrap();
        print!("{}", String::from_utf8_lossy(&ended.stdout));
        passed &= ended.status.success();
    }
    passed
}

fn alone(name: &str, test: Test) -> bool {
    let broken = test();
    let passed = broken.is_empty();
    let (verdict, count) = if passed { ("ok", 1) } else { ("FAILED", 0) };
    println!("test {name} ... {verdict}");
    for line in broken {
        println!("{line}");
    }
    println!(
        "\ntest result: {verdict}. {count} passed; {} failed; 0 ignored; 0 measured; {} filtered out\n",
        1 - count,
        TESTS.len() - 1
    );
    passed
}

fn no_file_costs_more_than_its_budget() -> Vec<String> {
    let (seed, stride) = (variable("SEED"), variable("STRIDE"));
    let mut attacker = Attacker::new(Place::new(), seed.unwrap_or(0), stride.unwrap_or(1));
    let broken = attacker.attack(variable("SECONDS").unwrap_or(3));
    let (text, report) = attacker.finish();
    eprintln!("{text}");
    if let Some(path) = variable::<String>("REPORT") {
        std::fs::write(path, report).unwrap();
    }
    broken
}

fn a_session_has_three_copies_of_a_state() -> Vec<String> {
    let copies = states::copies();
    let other = (copies != 3).then(|| format!("{copies} copies"));
    other.into_iter().collect()
}

/// The review's files are smaller by this power of two: they are made anew in each run, without optimisation.
const SCALE: u32 = 6;

fn the_files_of_the_review_are_refused_or_stay_within_their_budgets() -> Vec<String> {
    let place = Place::new();
    let mut broken = Vec::new();
    for file in review::all(SCALE) {
        let case = Case::of("rec/recording.gpr", file.file);
        for command in COMMANDS
            .iter()
            .filter(|command| command.given == Given::Recording)
        {
            let (cost, outcome) = place.cost(command, &case);
            if variable::<u8>("MEASURE").is_some() {
                eprintln!(
                    "{}: {}: {} {cost:?}",
                    file.finding, command.name, outcome.code
                );
            }
            if let Some(beyond) = command.exceeded(&cost, case.bytes(), case.declared) {
                broken.push(format!("{}: {}: {beyond}", file.finding, command.name));
            }
            let Some(rule) = file.rule else { continue };
            let named = outcome.text.contains(rule);
            let checks = match review::DEEP.contains(&rule) {
                true => command.name == "verify --deep",
                false => !command.name.contains("--unverified"),
            };
            if checks && (outcome.code != 3 || !named) {
                broken.push(format!(
                    "{}: {}: {outcome:?}, not {rule}",
                    file.finding, command.name
                ));
            }
        }
    }
    broken
}
