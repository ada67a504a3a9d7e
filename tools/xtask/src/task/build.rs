// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development builds for tasks.

use std::{
    env,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Result, run};

/// Builds with the features of `cargo test --workspace`: after it, little is compiled again. Returns the directory of
/// programs and libraries.
///
/// `targets` are cargo's words: `--lib`, `--bin NAME`, `--example NAME`.
///
/// # Errors
///
/// [`super::Error::Start`] or [`super::Error::Failed`].
pub fn build(top: &Path, targets: &[&str]) -> Result<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Cargo takes the features of tests only if an example or a test is built.
    cargo
        .current_dir(top)
        .args(["build", "--workspace", "--example", "table"])
        .args(targets);
    if !std::io::stderr().is_terminal() {
        cargo.arg("--quiet");
    }
    run(&format!("cargo build {}", targets.join(" ")), &mut cargo)?;
    Ok(target(top).join("debug"))
}

/// Cargo's target directory.
pub fn target(top: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| top.join("target"), PathBuf::from)
}
