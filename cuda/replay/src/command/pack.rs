// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pack`: a whole run in one file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::command::failure::{Failure, Outcome, written};
use crate::command::report::{bytes, say};
use crate::command::target::Target;

/// Put a whole run into one file
///
/// The file has the manifest, its signature, images and memory. Weights in a file of their own stay there.
#[derive(Args)]
pub(crate) struct Pack {
    /// The whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
}

impl Pack {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        let number = self.target.whole(&recording, "pack")?;
        if self.output.exists() && !self.force {
            let text = format!("{}: exists; --force replaces it", self.output.display());
            return Err(Failure::Usage(text));
        }
        let packed = recording.packed(number)?;
        gpureplay_host::write_atomic(&self.output, &packed).map_err(written(&self.output))?;
        say!(
            "run {number}: {} in {}",
            bytes(packed.len() as u64),
            self.output.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}
