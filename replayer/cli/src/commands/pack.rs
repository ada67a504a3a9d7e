// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay pack`: a recording and all its files in one file.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_io::write_atomic;
use gpureplay_sign::{RECORDING, SIGNATURE, pack};

use super::{files_beside, read, write_error};
use crate::failure::{Failure, Outcome};
use crate::{Result, text};
use gpureplay_library::Files;

const EXAMPLES: &str = "\
Examples:
  gpureplay pack recordings/digits-g52 -o digits.gprpack
  gpureplay run digits.gprpack
      every command takes the pack instead of the directory";

/// Put a recording, its signature, its manifest and all files that the manifest names into one file
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pack {
    /// Directory with a recording.gpr
    recording: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Pack {
    pub(crate) fn execute(&self) -> Result {
        let files = Files::read(&self.recording)?;
        files.parse()?;
        let mut contents = files_beside(&files.directory, files.manifest.as_ref())?;
        let signature = files.directory.join(SIGNATURE);
        if signature.exists() {
            let signature = read(&signature).map_err(Failure::Input)?;
            contents.insert(SIGNATURE.into(), signature);
        }
        contents.insert(RECORDING.into(), files.bytes);
        let packed = pack(&contents).map_err(|error| Failure::Recording(write_error(&error)))?;
        write_atomic(&self.output, &packed)
            .map_err(|error| Failure::Output(format!("{}: {error}", self.output.display())))?;
        writeln!(
            std::io::stdout(),
            "{}: {}, {}{}",
            self.output.display(),
            text::count(contents.len() as u64, "file"),
            text::bytes(packed.len() as u64),
            if contents.contains_key(SIGNATURE) {
                ", signed"
            } else {
                ""
            }
        )?;
        Ok(Outcome::Done)
    }
}
