// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest shell`: the guest on this terminal.

use std::process::ExitCode;

use clap::Args;

use crate::{
    build::payload,
    error::Result,
    folder::Folder,
    run::{BootOptions, report, session},
};

/// Opens a shell in the guest; `exit` or Ctrl-D powers it off.
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask guest shell\n  \
                        cargo xtask guest shell --driver patched --share .")]
pub(crate) struct Shell {
    #[command(flatten)]
    boot: BootOptions,
}

impl Shell {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let day = 24 * 3600;
        let options = self.boot.session(day, false)?;
        if !self.boot.no_build {
            payload::prepare(&folder, options.driver)?;
        }
        let outcome = session::run(&folder, &options, None)?;
        Ok(ExitCode::from(report(&outcome, true, day)))
    }
}
