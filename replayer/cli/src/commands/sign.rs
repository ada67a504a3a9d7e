// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay sign`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_sign::{SIGNATURE, SecretKey, sign};

use crate::common::arguments::whole_number;
use crate::common::destinations::{Destinations, Force};
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;
use gpureplay_library::{MOST_KEY, read_named, shown, write_error};

use crate::{Result, text};
use gpureplay_library::files::{FILE_NAME, Files};

const EXAMPLES: &str = "\
Examples:
  gpureplay keygen -o mine
  gpureplay sign --key mine.pem recordings/digits-g52
      writes recordings/digits-g52/recording.sig
  gpureplay run --require-signature mine.pub.pem recordings/digits-g52
      refuses what was changed since";

/// Sign a recording
///
/// Writes recording.sig beside the recording. A recording that breaks a rule is not signed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sign {
    /// Directory with a recording.gpr
    recording: PathBuf,
    /// The secret key: a PEM file of `gpureplay keygen` or OpenSSL
    #[arg(short, long, value_name = "FILE.pem")]
    key: PathBuf,
    /// A number that grows with every version; devices can refuse smaller ones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u64>)]
    counter: u64,
    #[command(flatten)]
    force: Force,
}

impl Sign {
    pub(crate) fn execute(&self) -> Result {
        let text = read_named(&self.key, MOST_KEY)?;
        let key = SecretKey::from_pem(&String::from_utf8_lossy(&text)).map_err(|error| {
            Failure::Input(format!("{}: {}", shown(&self.key), write_error(&error)))
        })?;
        if !self.recording.is_dir() {
            return Err(Failure::Recording(format!(
                "{}: no directory with a {FILE_NAME}; give a recording's directory",
                shown(&self.recording)
            )));
        }
        let path = self.recording.join(SIGNATURE);
        let mut destinations = Destinations::new(self.force.force);
        destinations.claim_here(&path)?;
        let files = Files::read(&self.recording)?;
        files.verify(&files.view()?)?;
        files.verify_variants()?;
        let beside = files.beside()?;
        let signature = sign(&key, self.counter, &files.bytes, &beside)
            .map_err(|error| Failure::Recording(write_error(&error)))?;
        destinations.write_here(&path, &signature)?;
        writeln!(
            terminal::report(false),
            "{}: recording and {} signed, counter {}",
            shown(&path),
            text::count(beside.len() as u64, "file"),
            self.counter
        )?;
        Ok(Outcome::Done)
    }
}
