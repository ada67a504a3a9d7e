// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source tree: where it lies, and what git knows of it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::error::{Error, Result};

/// The top of the source tree.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// The lines that `git ARGUMENTS` prints at the top of the source tree.
pub(crate) fn git(arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("git");
    let text = output(command.arg("-C").arg(root()).args(arguments))?;
    Ok(text.lines().map(str::to_string).collect())
}

/// What a program prints; its failure is an error that holds what it complained about.
pub(crate) fn output(command: &mut Command) -> Result<String> {
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
