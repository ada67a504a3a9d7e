// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay cuda …`, by groups of subcommands.
#![forbid(unsafe_code)]
// Output goes through the escaping writer, which never panics.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod analyse;
mod app;
mod attempt;
mod check;
mod doctor;
mod durations;
mod extract;
mod inspect;
mod jobs;
mod judge;
mod pack;
mod replace;
mod report;
mod run;
mod setting;
mod sign;
mod state;
mod strict;
mod sums;
mod trim;
mod tune;
mod weights;
mod whole;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::{failure, target};

pub use doctor::ways;

/// Record, replay and tune CUDA kernels
#[derive(Args)]
pub struct Cuda {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(app::Record),
    Durations(durations::Durations),
    Replace(replace::Replace),
    List(inspect::List),
    Info(inspect::Info),
    Verify(inspect::Verify),
    Diff(inspect::Diff),
    Sign(sign::Sign),
    Pack(pack::Pack),
    Doctor(doctor::Doctor),
    Run(run::Run),
    Check(check::Check),
    Jobs(jobs::Jobs),
    Bench(jobs::Bench),
    Tune(tune::Tune),
    Extract(extract::Extract),
    Judge(judge::Judge),
    Analyse(analyse::Analyse),
}

/// Schemas of `--json`, for docs/reference/schemas.
#[cfg(feature = "schema")]
#[must_use]
pub fn schemas(
    settings: &schemars::generate::SchemaSettings,
) -> Vec<(&'static str, schemars::Schema)> {
    let generator = || settings.clone().into_generator();
    vec![
        (
            "cuda-run",
            generator().into_root_schema_for::<run::RunReport<'_>>(),
        ),
        (
            "cuda-whole-run",
            generator().into_root_schema_for::<whole::WholeReport>(),
        ),
        (
            "cuda-tune",
            generator().into_root_schema_for::<tune::TuneReport<'_>>(),
        ),
        (
            "cuda-tune-together",
            generator().into_root_schema_for::<tune::TogetherReport>(),
        ),
        (
            "cuda-launch",
            generator().into_root_schema_for::<extract::LaunchReport<'_>>(),
        ),
        (
            "cuda-analyse",
            generator().into_root_schema_for::<analyse::AnalyseReport<'_>>(),
        ),
        (
            "cuda-judge",
            generator().into_root_schema_for::<judge::JudgeReport>(),
        ),
        (
            "cuda-durations",
            generator().into_root_schema_for::<Vec<durations::RowReport<'_>>>(),
        ),
    ]
}

impl Cuda {
    /// Runs the command.
    ///
    /// Exit codes: 0 done, 1 wrong, 2 usage, 3 damaged recording, 4 missing or unfit file, 5 device, 6 no result
    /// written; a recorded app's own.
    #[must_use]
    pub fn execute(&self) -> ExitCode {
        let outcome = match &self.command {
            Command::Record(command) => command.execute(),
            Command::Durations(command) => command.execute(),
            Command::Replace(command) => command.execute(),
            Command::List(command) => command.execute(),
            Command::Info(command) => command.execute(),
            Command::Verify(command) => command.execute(),
            Command::Diff(command) => command.execute(),
            Command::Sign(command) => command.execute(),
            Command::Pack(command) => command.execute(),
            Command::Doctor(command) => command.execute(),
            Command::Run(command) => command.execute(),
            Command::Check(command) => command.execute(),
            Command::Jobs(command) => command.execute(),
            Command::Bench(command) => command.execute(),
            Command::Tune(command) => command.execute(),
            Command::Extract(command) => command.execute(),
            Command::Judge(command) => command.execute(),
            Command::Analyse(command) => command.execute(),
        };
        outcome.unwrap_or_else(|failure| {
            if failure.is_closed_pipe() {
                return ExitCode::SUCCESS;
            }
            report::note!("{failure}");
            ExitCode::from(failure.exit_code())
        })
    }
}
