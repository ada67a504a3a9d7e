// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source tree.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::{Result, output};

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

pub(crate) fn git(arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("git");
    let text = output(command.arg("-C").arg(root()).args(arguments))?;
    Ok(text.lines().map(str::to_string).collect())
}
