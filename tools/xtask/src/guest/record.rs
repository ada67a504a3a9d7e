// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest record`: makes a recording of one of our example programs.

use std::process::ExitCode;

use clap::Args;

use crate::error::{Error, Result};

/// Records an example program on the patched driver.
#[derive(Args)]
pub(crate) struct Record {
    /// Name of the program in tools/guest/recordable.toml.
    name: String,
}

impl Record {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        Err(Error::Usage(format!("nothing can record {}", self.name)))
    }
}
