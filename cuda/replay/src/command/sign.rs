// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sign`, and `--require-signature`.
//!
//! A manifest names all else by SHA-256, so its detached signature (`launches/K.sig`, `runs/K.sig`) covers it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_launch::recording::{Launch, Part, Recording, Run};
use gpureplay_host::Existing;
use gpureplay_sign::{PublicKey, SecretKey, WriteError, sign};

use crate::command::failure::{Failure, Outcome, read};
use crate::command::report::say;
use crate::command::target::Target;
use crate::signature::{MAX_FILE, signed};

const EXAMPLES: &str = "\
Examples:
  gpureplay keygen -o mine
  gpureplay cuda sign --key mine.pem rec
      signs all launches and whole runs of rec
  gpureplay cuda run rec#0 --require-signature mine.pub.pem
      refuses what was changed since";

/// Sign launches and whole runs
///
/// Signs the manifest, and with it the images and all memory that it names.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sign {
    /// The recording, or one launch or whole run of it.
    #[arg(value_name = "DIR")]
    target: Target,
    /// The secret key: a PEM file of `gpureplay keygen` or OpenSSL.
    #[arg(long, short, value_name = "FILE.pem")]
    key: PathBuf,
    /// A number that grows with every version; who replays can refuse smaller ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    counter: u64,
    /// Replace signatures that are there.
    #[arg(long)]
    force: bool,
}

/// Whose recordings are accepted.
#[derive(Args)]
pub(crate) struct Trust {
    /// Refuse a launch or whole run that is not signed with this key: a PEM file, or 64 hexadecimal digits. Each is signed by itself:
    /// who can write the recording can leave out signed ones or exchange their numbers.
    #[arg(long, value_name = "KEY")]
    require_signature: Option<String>,
    /// Refuse a signature with a smaller counter.
    #[arg(
        long,
        alias = "minimum-counter",
        value_name = "N",
        default_value_t = 0,
        requires = "require_signature"
    )]
    min_counter: u64,
}

fn wrong_key(given: &str, error: &WriteError) -> Failure {
    let reason = match error {
        WriteError::WeakKey => "the key is one that anybody can sign for",
        _ => "no Ed25519 key; expected a PEM file as `gpureplay keygen` and OpenSSL write it",
    };
    Failure::Usage(format!("{}: {reason}", gpureplay_host::escaped(given)))
}

impl Sign {
    pub(crate) fn execute(&self) -> Outcome {
        let text = read(&self.key, MAX_FILE)?;
        let key = SecretKey::from_pem(&String::from_utf8_lossy(&text))
            .map_err(|error| wrong_key(&self.key.display().to_string(), &error))?;
        let recording = self.target.recording()?;
        let parts = self.target.parts(&recording)?;
        let existing = if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        };
        for (part, number) in &parts {
            let manifest = recording.manifest(*part, *number)?;
            // Never sign what breaks a rule.
            match part {
                Part::Launch => drop(Launch::parse(&manifest)?),
                Part::Run => drop(Run::parse(&manifest)?),
            }
            let signature = sign(
                &key,
                self.counter,
                manifest.as_bytes(),
                &std::collections::BTreeMap::new(),
            )
            .map_err(|error| wrong_key("the key", &error))?;
            let path = recording.signature_path(*part, *number);
            let written = recording.write_signature(*part, *number, &signature, existing);
            written.map_err(|source| {
                if source.kind() == ErrorKind::AlreadyExists {
                    Failure::Usage(format!("{}: exists; --force replaces it", path.display()))
                } else {
                    Failure::Write {
                        path: path.clone(),
                        source,
                    }
                }
            })?;
        }
        let runs = parts.iter().filter(|(part, _)| *part == Part::Run).count();
        let launches = parts.len() - runs;
        let signed = match runs {
            0 => format!("{launches} launches"),
            _ => format!("{runs} whole runs, {launches} launches"),
        };
        say!("{signed} signed, counter {}", self.counter);
        Ok(ExitCode::SUCCESS)
    }
}

impl Trust {
    fn key(given: &str) -> Result<PublicKey, Failure> {
        match PublicKey::from_text(given) {
            Ok(key) => Ok(key),
            Err(error @ WriteError::WeakKey) => Err(wrong_key(given, &error)),
            Err(_) => {
                let text = read(Path::new(given), MAX_FILE)?;
                PublicKey::from_text(&String::from_utf8_lossy(&text))
                    .map_err(|error| wrong_key(given, &error))
            }
        }
    }

    pub(crate) fn is_demanded(&self) -> bool {
        self.require_signature.is_some()
    }

    pub(crate) fn launch(&self, recording: &Recording, number: u32) -> Result<Launch, Failure> {
        match self.manifest(recording, Part::Launch, number)? {
            Some(manifest) => Ok(Launch::parse(&manifest)?),
            None => Ok(recording.launch(number)?),
        }
    }

    pub(crate) fn run(&self, recording: &Recording, number: u32) -> Result<Run, Failure> {
        match self.manifest(recording, Part::Run, number)? {
            Some(manifest) => Ok(Run::parse(&manifest)?),
            None => Ok(recording.run(number)?),
        }
    }

    /// Uses what was checked, even if the file changes meanwhile.
    fn manifest(
        &self,
        recording: &Recording,
        part: Part,
        number: u32,
    ) -> Result<Option<String>, Failure> {
        let Some(given) = &self.require_signature else {
            return Ok(None);
        };
        let key = Self::key(given)?;
        signed(recording, (part, number), &key, self.min_counter).map(Some)
    }
}
