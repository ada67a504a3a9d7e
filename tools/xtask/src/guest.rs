// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask guest` and `cargo xtask size`: run `gpureplay-guest`.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::build;

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
        let built = build(&root(), &["--bin", "gpureplay-guest"])?;
        let source = Command::new(built.join("gpureplay-guest"))
            .args(before)
            .args(self.arguments)
            .exec();
        Err(Error::start("gpureplay-guest")(source))
    }
}
