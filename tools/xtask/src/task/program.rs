// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that a task runs for what they print.

use std::process::Command;

use super::{Error, Result};

/// What a program prints on its standard output.
///
/// # Errors
///
/// [`Error::Start`] if it cannot be started; [`Error::Failed`] with what it complained about if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    if !output.status.success() {
        return Err(Error::Failed {
            what: program,
            status: output.status,
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
