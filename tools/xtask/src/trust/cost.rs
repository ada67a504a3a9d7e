// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask cost`: the standing attacker, built so that it counts steps, for as long as is said.

use std::process::{Command, ExitCode};

use clap::Args;

use super::costs::{self, Costs};
use super::sanitize::host;
use super::{results, root};
use crate::error::{Error, Result};

/// What the compiler is told, so that each block of machine code calls the counter. Programs other than the test have none; they are linked
/// all the same, and never run.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=2 \
                     -Cllvm-args=-sanitizer-coverage-trace-pc-guard -Clink-arg=-Wl,--unresolved-symbols=ignore-all";

/// Crates that decode pictures: too slow without optimisation.
const OPTIMISED: [&str; 4] = ["zune-jpeg", "png", "fdeflate", "miniz_oxide"];

/// Send expensive files through all commands, and count what they take
///
/// Files made to be expensive, shipped ones and those of the review, changed at random and bred from those that cost most, go through each command for as
/// long. Heap, allocations, steps of the program and bytes written must stay within the budgets of docs/SPECIFICATION.md; there is no clock in it.
/// What was tried and the largest shares are added to fuzz/costs.json, from which the table in docs/reliability.md is made. An input beyond a budget is
/// kept in fuzz/artifacts/cost.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask cost --minutes 30\n  cargo xtask cost --minutes 60 --command compile\n  \
                        nice -n 19 cargo xtask cost --minutes 600"
)]
pub(crate) struct Cost {
    /// Minutes altogether, without building
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// Only commands with this in their names
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// Do not add what was done
    #[arg(long)]
    no_add: bool,
}

impl Cost {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let mut passed = true;
        let mut left = self.minutes * 60;
        // In parts, so that little is lost when it is ended.
        while left > 0 {
            let seconds = left.min(300);
            left -= seconds;
            passed &= self.run(seconds)?;
        }
        Ok(ExitCode::from(u8::from(!passed)))
    }

    fn run(&self, seconds: u64) -> Result<bool> {
        let report = results()?.join("costs.json");
        let _ = std::fs::remove_file(&report);
        let target = host()?;
        let mut command = Command::new("cargo");
        command
            .current_dir(root())
            // Of another target than the host, so that what runs while building is built without the counter.
            .args(["test", "--quiet", "--package", "gpureplay"])
            .args(["--test", "cost", "--target", &target]);
        for package in OPTIMISED {
            command.arg(format!(
                "--config=profile.dev.package.{package}.opt-level=1"
            ));
        }
        command
            .args(["--", "--nocapture", "no_file_costs_more_than_its_budget"])
            .env("CARGO_TARGET_DIR", root().join("target/cost"))
            .env("RUSTFLAGS", FLAGS)
            .env("GPUREPLAY_COST_SECONDS", seconds.to_string())
            .env("GPUREPLAY_COST_SEED", costs::read()?.next_seed.to_string())
            .env("GPUREPLAY_COST_REPORT", &report)
            .env(
                "GPUREPLAY_COST_FINDINGS",
                root().join("fuzz/artifacts/cost"),
            );
        if let Some(name) = &self.command {
            command.env("GPUREPLAY_COST_COMMAND", name);
        }
        let status = command.status().map_err(|source| Error::Start {
            program: "cargo".into(),
            source,
        })?;
        let run: Costs = costs::read_from(&report)?;
        if run.commands.is_empty() {
            return Err(Error::Missing {
                what: "the result of the attack".into(),
                remedy: "see what it says above".into(),
            });
        }
        if !run.steps {
            return Err(Error::FellShort {
                what: "the counter of steps".into(),
                remedy: "the compiler did not put calls into the program; is it another version?"
                    .into(),
            });
        }
        if !status.success() {
            // A process that was ended says which input it had.
            let now = report.with_extension("json.now");
            let now = std::fs::read_to_string(now).unwrap_or_default();
            eprintln!("the last input: {}", now.replace('\n', " "));
        }
        if !self.no_add {
            costs::add(&run)?;
        }
        let inputs: u64 = run.commands.values().map(|cost| cost.inputs).sum();
        let findings: u64 = run.commands.values().map(|cost| cost.findings).sum();
        println!(
            "cost: {} commands, {inputs} inputs, {findings} findings",
            run.commands.len()
        );
        Ok(status.success())
    }
}
