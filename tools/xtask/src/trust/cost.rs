// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask cost`: the standing attacker.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};

use clap::Args;

use super::costs::{self, Costs};
use super::sanitize::host;
use super::{kept, results, root};
use crate::{
    error::{Error, Result},
    files,
};

/// Each block of machine code calls the counter. Only the test has one; other programs never run.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=2 \
                     -Cllvm-args=-sanitizer-coverage-trace-pc-guard -Clink-arg=-Wl,--unresolved-symbols=ignore-all";

/// Picture decoders, too slow without optimization.
const OPTIMISED: [&str; 4] = ["zune-jpeg", "png", "fdeflate", "miniz_oxide"];

/// Send expensive files through all commands, and count what they take
///
/// Expensive, shipped and reviewed files are changed at random and bred from those that cost most. Heap, allocations,
/// steps and bytes written must stay within the budgets of docs/reference/specification.md. Counts are added to
/// fuzz/costs.json; inputs beyond a budget are kept in fuzz/artifacts/cost.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask cost --minutes 30\n  cargo xtask cost --minutes 60 --command compile\n  \
                        nice -n 19 cargo xtask cost --minutes 600 --jobs 4"
)]
pub(crate) struct Cost {
    /// Minutes on the clock, without building
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// How many processes attack at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// Only the command of this name, or those with it in their names; may be given several times
    #[arg(long, value_name = "NAME")]
    command: Vec<String>,
    /// Do not add what was done
    #[arg(long)]
    no_add: bool,
}

impl Cost {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        // Reports of an early end: processes save them every few seconds.
        for report in reports()? {
            self.add(&report)?;
        }
        if !wait(&mut self.build()?)? {
            return Err(Error::fell_short(
                "the program that attacks",
                "see what the compiler says above",
            ));
        }
        let seed = costs::read()?.next_seed;
        let mut jobs = Vec::new();
        for job in 0..self.jobs {
            let report = results()?.join(format!("costs.{job}.json"));
            jobs.push((self.attack(seed + job, &report)?, report));
        }
        let mut passed = true;
        for (mut job, report) in jobs {
            let fine = wait(&mut job)?;
            passed &= fine;
            if !fine {
                let now = report.with_extension("json.now");
                let now = std::fs::read_to_string(now).unwrap_or_default();
                eprintln!("the last input: {}", now.replace('\n', " "));
            }
            self.add(&report)?;
        }
        Ok(ExitCode::from(u8::from(!passed)))
    }

    fn cargo(&self) -> Result<Command> {
        let target = host()?;
        let mut command = Command::new("cargo");
        command
            .current_dir(root())
            // With a target given, even the host's own, build-time code has no counter.
            .args(["test", "--quiet", "--package", "gpureplay"])
            .args(["--test", "cost", "--target", &target]);
        for package in OPTIMISED {
            command.arg(format!(
                "--config=profile.dev.package.{package}.opt-level=1"
            ));
        }
        command
            .env("CARGO_TARGET_DIR", root().join("target/cost"))
            .env("RUSTFLAGS", FLAGS);
        Ok(command)
    }

    fn build(&self) -> Result<Child> {
        start(self.cargo()?.arg("--no-run"))
    }

    fn attack(&self, seed: u64, report: &Path) -> Result<Child> {
        let mut command = self.cargo()?;
        command
            .args(["--", "--nocapture", "no_file_costs_more_than_its_budget"])
            .env("GPUREPLAY_COST_SECONDS", (self.minutes * 60).to_string())
            .env("GPUREPLAY_COST_SEED", seed.to_string())
            .env("GPUREPLAY_COST_STRIDE", self.jobs.to_string())
            .env("GPUREPLAY_COST_BEFORE", costs::path())
            .env("GPUREPLAY_COST_REPORT", report)
            .env(
                "GPUREPLAY_COST_FINDINGS",
                root().join("fuzz/artifacts/cost"),
            );
        if !self.command.is_empty() {
            command.env("GPUREPLAY_COST_COMMAND", self.command.join(","));
        }
        start(&mut command)
    }

    fn add(&self, report: &Path) -> Result<()> {
        let run: Costs = kept(report)?;
        if run.commands.is_empty() {
            return Err(Error::missing(
                "the result of the attack",
                "see what it says above",
            ));
        }
        if !run.steps {
            return Err(Error::fell_short(
                "the counter of steps",
                "the compiler did not put calls into the program; is it another version?",
            ));
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
        std::fs::remove_file(report).map_err(Error::io("remove", report))
    }
}

fn reports() -> Result<Vec<PathBuf>> {
    let mut found = files::entries(results()?)?;
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("costs.") && name.ends_with(".json")
    });
    Ok(found)
}

fn start(command: &mut Command) -> Result<Child> {
    command.spawn().map_err(Error::start("cargo"))
}

fn wait(child: &mut Child) -> Result<bool> {
    let ended = child.wait().map_err(Error::start("cargo"))?;
    Ok(ended.success())
}
