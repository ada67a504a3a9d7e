// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants` and `cargo xtask faults`.

use std::process::{Command, ExitCode};

use clap::Args;

use gpureplay_task::{build, ended};

use super::{results, root};
use crate::error::Result;

/// Recordings that are wrong in one point, made from each shipped one: all must be refused by the rule that they break.
#[derive(Args)]
pub(crate) struct Mutants {
    /// Only those that break this rule
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
}

impl Mutants {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        match &self.rule {
            Some(rule) => run_only("mutants", &["--rule", rule]),
            None => run("mutants", &[]),
        }
    }
}

/// Every kind of fault at every call that the digits recording makes to its device.
#[derive(Args)]
pub(crate) struct Faults {
    /// Only at every N-th call
    #[arg(long, value_name = "N", default_value_t = 1)]
    step: usize,
    /// Only this kind
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
}

impl Faults {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let step = self.step.to_string();
        match &self.kind {
            Some(kind) => run_only("faults", &["--step", &step, "--kind", kind]),
            None => run("faults", &["--step", &step]),
        }
    }
}

pub(super) fn run(trial: &str, arguments: &[&str]) -> Result<ExitCode> {
    let kept = results()?.join(format!("{trial}.json"));
    let mut command = command()?;
    command.arg("--save").arg(kept).arg(trial).args(arguments);
    ended(&mut command)
}

fn run_only(trial: &str, arguments: &[&str]) -> Result<ExitCode> {
    ended(command()?.arg(trial).args(arguments))
}

pub(super) fn command() -> Result<Command> {
    let built = build(&root(), &["--bin", "gpureplay-trials"])?;
    let mut command = Command::new(built.join("gpureplay-trials"));
    command.current_dir(root());
    Ok(command)
}
