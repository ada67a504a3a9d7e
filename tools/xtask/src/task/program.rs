// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a task runs, for what they print or for how they end.

use std::process::{Command, ExitCode};

use super::{Error, Result};

/// What a program prints on its standard output.
///
/// # Errors
///
/// [`Error::Start`] if it cannot be started; [`Error::Failed`] with what it complained about if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::start(&program))?;
    if !output.status.success() {
        return Err(Error::Failed {
            what: program,
            status: output.status,
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program on this terminal: a success if it ends with 0, else a failure.
///
/// # Errors
///
/// [`Error::Start`] if it cannot be started.
pub fn ended(command: &mut Command) -> Result<ExitCode> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(Error::start(program))?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
