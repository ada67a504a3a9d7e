// SPDX-License-Identifier: MIT OR Apache-2.0
//! A standing attacker: files made to be expensive, changed at random, go through the commands in this process. What each command
//! allocates, does, prints and writes is counted, and must stay within a budget for each byte of the files.
//!
//! `cargo xtask cost` builds it so that steps are counted too, runs it for longer, and adds up what was done. Variables: `GPUREPLAY_COST_SECONDS`
//! how long, `GPUREPLAY_COST_SEED` where to begin, `GPUREPLAY_COST_COMMAND` only commands with this in their names,
//! `GPUREPLAY_COST_REPORT` a file for the result, `GPUREPLAY_COST_FINDINGS` a directory for inputs beyond a budget,
//! `GPUREPLAY_COST_MEASURE` to say what commands take without a budget.
#![allow(clippy::unwrap_used)]

mod attacker;
mod case;
mod commands;
mod count;
mod drawings;
#[path = "../../../compile/tests/model/driver.rs"]
mod driver;
#[path = "../../../../model/gpu/tests/driver/machine.rs"]
#[allow(dead_code)]
mod machine;
mod originals;
#[path = "../../../../model/gpu/tests/driver/picture.rs"]
#[allow(dead_code)]
mod picture;
mod place;
mod recordings;
mod report;
mod values;

use std::sync::{Mutex, PoisonError};

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

/// One at a time, as what is counted is the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn no_file_costs_more_than_its_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut attacker = Attacker::new(Place::new(), variable("SEED").unwrap_or(0));
    let broken = attacker.attack(variable("SECONDS").unwrap_or(10));
    let (text, report) = attacker.finish();
    eprintln!("{text}");
    if let Some(path) = variable::<String>("REPORT") {
        std::fs::write(path, report).unwrap();
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_files_of_the_review_are_refused_or_stay_within_their_budgets() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broken = reviewed(&Place::new());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// How much smaller the files of the review are than in it, as a power of two: they are made anew in each run, without optimisation.
const SCALE: u32 = 4;

/// What the files of the review cost beyond their budgets, or which are not refused by their rules.
fn reviewed(place: &Place) -> Vec<String> {
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
