// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask guest` and `cargo xtask size`: run `gpureplay-guest`.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use clap::Args;

use crate::{
    error::{Error, Result},
    repository::root,
};

/// Arguments for the crate `gpureplay-guest`, which has help of its own.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Guest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Guest {
    /// Replaces this process: signals and exit code are its own.
    pub(crate) fn execute(self, before: Option<&str>) -> Result<ExitCode> {
        let manifest = root().join("Cargo.toml");
        let source = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["run", "--quiet", "--package", "gpureplay-guest"])
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--")
            .args(before)
            .args(self.arguments)
            .exec();
        Err(Error::start("cargo")(source))
    }
}
