// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a task runs.

use std::process::{Command, ExitCode};

use super::{Error, Result};

/// Standard output.
///
/// # Errors
///
/// [`Error::Start`], or [`Error::Failed`] with its complaint.
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

/// Runs a program on this terminal.
///
/// # Errors
///
/// [`Error::Start`].
pub fn ended(command: &mut Command) -> Result<ExitCode> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(Error::start(program))?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
