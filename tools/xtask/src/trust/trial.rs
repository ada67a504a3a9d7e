// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants` and `cargo xtask faults`.

use std::process::{Command, ExitCode};

use clap::Args;

use super::{results, root};
use crate::error::{Error, Result};

/// Recordings that are wrong in one point, made from each shipped one: all must be refused by the rule that they break.
#[derive(Args)]
pub(crate) struct Mutants {}

impl Mutants {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        run("mutants", &[])
    }
}

/// Every kind of fault at every call that the digits recording makes to its device.
#[derive(Args)]
pub(crate) struct Faults {
    /// Only at every N-th call
    #[arg(long, value_name = "N", default_value_t = 1)]
    step: usize,
}

impl Faults {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        run("faults", &["--step", &self.step.to_string()])
    }
}

/// Runs a trial in a process of its own; its result is kept for the report.
pub(super) fn run(trial: &str, arguments: &[&str]) -> Result<ExitCode> {
    let status = Command::new("cargo")
        .current_dir(root())
        .args([
            "run",
            "--quiet",
            "--package",
            "gpureplay-trials",
            "--",
            "--save",
        ])
        .arg(results()?.join(format!("{trial}.json")))
        .arg(trial)
        .args(arguments)
        .status()
        .map_err(|source| Error::Start {
            program: "cargo".into(),
            source,
        })?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
