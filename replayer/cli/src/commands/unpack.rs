// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay unpack`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_library::{Files, shown};
use gpureplay_sign::{RECORDING, SIGNATURE};

use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::new_directory::NewDirectory;
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay pack recordings/digits-g52 -o digits.gprpack
  gpureplay unpack digits.gprpack -o digits
      the same files that were packed, byte for byte";

/// Restore a packed recording
///
/// A pack that is damaged, or whose recording breaks a rule, is not unpacked. Signatures stay what they are.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Unpack {
    /// A pack, as `gpureplay pack` makes it
    pack: PathBuf,
    /// The directory
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

impl Unpack {
    pub(crate) fn execute(&self) -> Result {
        let files = Files::read(&self.pack)?;
        files.verify(&files.view()?)?;
        files.verify_variants()?;
        // Only packs have a private copy.
        if files.file() == files.path {
            return Err(Failure::Usage(format!(
                "{}: is not a pack, it has its files beside it already",
                shown(&self.pack)
            )));
        }
        let mut contents = files.beside()?;
        if let Some(signature) = files.signature()? {
            contents.insert(SIGNATURE.into(), signature);
        }
        contents.insert(RECORDING.into(), files.bytes);
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads(&self.pack);
        let place = NewDirectory::new(self.output.clone(), self.force)?;
        place.write(&contents, &destinations)?;
        let bytes: u64 = contents.values().map(|one| one.len() as u64).sum();
        writeln!(
            terminal::report(false),
            "{}: {}, {}",
            shown(&self.output),
            text::count(contents.len() as u64, "file"),
            text::bytes(bytes)
        )?;
        Ok(Outcome::Done)
    }
}
