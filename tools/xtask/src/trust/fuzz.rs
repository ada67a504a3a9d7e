// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask fuzz`: runs each fuzz target for a while, from seeds that a command makes, and keeps totals.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{read, root, write};
use crate::error::{Error, Result};

/// Targets of `fuzz/`, with the longest input each takes.
pub(super) const TARGETS: &[(&str, u32)] = &[
    ("arguments", 4096),
    ("execute", 4096),
    ("import", 65536),
    ("job_chain", 16384),
    ("manifest", 16384),
    ("npy", 4096),
    ("pack", 16384),
    ("page_table", 4096),
    ("recording", 262_144),
    ("registers", 4096),
    ("replay", 512),
    ("shader", 4096),
    ("trace", 65536),
    ("vfio_user", 4096),
];
/// Name of the totals.
pub(super) const TOTALS: &str = "fuzz.json";

/// Fuzz every parser and the replay of changed recordings, for a minute each
///
/// Needs no nightly toolchain. cargo-fuzz is installed if it is missing. Corpora are kept in fuzz/corpus; a finding lies in
/// fuzz/artifacts and becomes a test of the crate it concerns.
#[derive(Args)]
pub(crate) struct Fuzz {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Only this target; may be given again
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
}

/// What has been done with a target, over all runs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Total {
    pub(super) executions: u64,
    pub(super) seconds: f64,
    pub(super) findings: u64,
}

impl Fuzz {
    /// All targets.
    pub(super) fn for_all(seconds: u64) -> Self {
        Self {
            seconds,
            targets: Vec::new(),
        }
    }

    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let chosen: Vec<&(&str, u32)> = TARGETS
            .iter()
            .filter(|(name, _)| self.targets.is_empty() || self.targets.iter().any(|it| it == name))
            .collect();
        if chosen.is_empty() {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Usage(format!(
                "the targets are: {}",
                names.join(", ")
            )));
        }
        install()?;
        seeds()?;
        let mut totals: BTreeMap<String, Total> = read(TOTALS)?.unwrap_or_default();
        let mut sum = Total::default();
        for &&(target, longest) in &chosen {
            let total = self.run(target, longest)?;
            println!(
                "  {target:10} {:10} executions {:6.0} s {:3} findings",
                total.executions, total.seconds, total.findings
            );
            let entry = totals.entry(target.to_owned()).or_default();
            for to in [&mut sum, entry] {
                to.executions += total.executions;
                to.seconds += total.seconds;
                to.findings += total.findings;
            }
            write(TOTALS, &totals)?;
        }
        println!(
            "fuzz: {} targets, {} executions in {:.0} s, {} findings",
            chosen.len(),
            sum.executions,
            sum.seconds,
            sum.findings
        );
        Ok(if sum.findings == 0 && sum.executions > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn run(&self, target: &str, longest: u32) -> Result<Total> {
        let started = Instant::now();
        let output = fuzz_command()
            .args(["run", target, "--"])
            .arg(format!("-max_total_time={}", self.seconds))
            .arg(format!("-max_len={longest}"))
            .args(["-print_final_stats=1", "-rss_limit_mb=2048", "-timeout=25"])
            .output()
            .map_err(start)?;
        let log = String::from_utf8_lossy(&output.stderr);
        let executions = log
            .lines()
            .filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .find_map(|number| number.trim().parse().ok());
        let findings = u64::from(!output.status.success());
        if findings > 0 {
            let start = log.len().saturating_sub(4000);
            eprintln!("{}", log.get(start..).unwrap_or(&log));
        }
        Ok(Total {
            executions: executions.unwrap_or(0),
            seconds: started.elapsed().as_secs_f64(),
            findings,
        })
    }
}

/// `cargo fuzz` with the stable toolchain.
fn fuzz_command() -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .arg("fuzz");
    command
}

fn start(source: std::io::Error) -> Error {
    Error::Start {
        program: "cargo fuzz".into(),
        source,
    }
}

/// Installs cargo-fuzz if it is missing.
fn install() -> Result<()> {
    let found = fuzz_command().arg("--version").output().map_err(start)?;
    if found.status.success() {
        return Ok(());
    }
    let status = Command::new("cargo")
        .args(["install", "--quiet", "--locked", "cargo-fuzz"])
        .status()
        .map_err(start)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed {
        what: "cargo install cargo-fuzz".into(),
        status,
        log: String::new(),
    })
}

/// Writes the seeds of all targets.
fn seeds() -> Result<()> {
    let corpus = root().join("fuzz/corpus");
    fs::create_dir_all(&corpus).map_err(Error::io("create", &corpus))?;
    let status = Command::new("cargo")
        .current_dir(root())
        .args([
            "run",
            "--quiet",
            "--package",
            "gpureplay-trials",
            "--",
            "seeds",
        ])
        .arg(&corpus)
        .status()
        .map_err(start)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed {
        what: "making seeds".into(),
        status,
        log: String::new(),
    })
}
