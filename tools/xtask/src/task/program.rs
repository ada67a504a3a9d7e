// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a task runs.

use std::process::{Command, ExitCode, ExitStatus, Output};

use super::{Error, Result};

/// Standard output.
///
/// # Errors
///
/// [`Error::Start`], or [`Error::Failed`] with its complaint.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    output_of(&program, command)
}

/// [`output`] whose errors name the task `what`.
pub fn output_of(what: &str, command: &mut Command) -> Result<String> {
    let output = started(command)?;
    let log = String::from_utf8_lossy(&output.stderr);
    ended_well(what, output.status, log.trim_end())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A program's end, and what it said.
pub fn started(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(Error::start(program))
}

/// Runs a program on this terminal; it must end well.
pub fn run(what: &str, command: &mut Command) -> Result<()> {
    ended_well(what, status(command)?, "")
}

fn status(command: &mut Command) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.status().map_err(Error::start(program))
}

fn ended_well(what: &str, status: ExitStatus, log: &str) -> Result<()> {
    match status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            what: what.into(),
            status,
            log: log.into(),
        }),
    }
}

/// Runs a program on this terminal.
///
/// # Errors
///
/// [`Error::Start`].
pub fn ended(command: &mut Command) -> Result<ExitCode> {
    let well = status(command)?.success();
    Ok(ExitCode::from(u8::from(!well)))
}
