// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay pack`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_sign::{RECORDING, SIGNATURE, pack};

use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use crate::{Result, text};
use gpureplay_library::{Files, shown, write_error};

const EXAMPLES: &str = "\
Examples:
  gpureplay pack recordings/digits-g52 -o digits.gprpack
  gpureplay run digits.gprpack
      commands that read a recording take the pack instead of its directory; `sign` writes into a directory";

/// Put a recording into one file
///
/// A recording that breaks a rule is not packed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pack {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

impl Pack {
    pub(crate) fn execute(&self) -> Result {
        let files = Files::read(&self.recording)?;
        files.verify(&files.view()?)?;
        files.verify_variants()?;
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads_recording(&files);
        destinations.claim(&self.output)?;
        let mut contents = files.beside()?;
        if let Some(signature) = files.signature()? {
            contents.insert(SIGNATURE.into(), signature);
        }
        contents.insert(RECORDING.into(), files.bytes);
        let packed = pack(&contents).map_err(|error| Failure::Recording(write_error(&error)))?;
        destinations.write(&self.output, &packed)?;
        writeln!(
            terminal::report(destinations.takes_standard_output()),
            "{}: {}, {}{}",
            shown(&self.output),
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
