// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sign`, and `--require-signature`: whose launches are replayed.
//!
//! The manifest of a launch names its image and each piece of memory by SHA-256, so a signature over the manifest covers all of
//! them. It is a detached signature as recordings of Mali GPUs have it, in `launches/K.sig`.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_recording::{Launch, Recording};
use gpureplay_host::{Existing, beneath};
use gpureplay_sign::{PublicKey, SecretKey, Signature, SignatureError, WriteError, sign};

use crate::failure::{Failure, Outcome, file};
use crate::report::say;
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  gpureplay keygen mine
  gpureplay cuda sign --key mine.pem rec
      signs all launches of rec
  gpureplay cuda run rec#0 --require-signature mine.pub.pem
      refuses whatever was changed since";

/// The largest key file and signature, in bytes.
const MAX_FILE: u64 = 1 << 16;

/// Signs launches: the manifest, and with it the image and all memory that it names.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sign {
    /// The recording, or one launch of it.
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
    /// Refuse a launch that is not signed with this key: a PEM file, or 64 hexadecimal digits. Each launch is signed by itself: who can
    /// write the recording can leave out signed launches or exchange their numbers.
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

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    File::open(path)
        .and_then(|opened| beneath::contents(opened, MAX_FILE))
        .map_err(file(path))
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
        let text = read(&self.key)?;
        let key = SecretKey::from_pem(&String::from_utf8_lossy(&text))
            .map_err(|error| wrong_key(&self.key.display().to_string(), &error))?;
        let recording = self.target.recording()?;
        let launches = self.target.launches(&recording)?;
        let existing = if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        };
        for (number, _) in &launches {
            let manifest = recording.manifest(*number)?;
            // A launch that breaks a rule is not signed.
            Launch::parse(&manifest)?;
            let signature = sign(
                &key,
                self.counter,
                manifest.as_bytes(),
                &std::collections::BTreeMap::new(),
            )
            .map_err(|error| wrong_key("the key", &error))?;
            let path = recording.signature_path(*number);
            let written = recording.write_signature(*number, &signature, existing);
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
        say!(
            "{} launches signed, counter {}",
            launches.len(),
            self.counter
        );
        Ok(ExitCode::SUCCESS)
    }
}

impl Trust {
    fn key(given: &str) -> Result<PublicKey, Failure> {
        match PublicKey::from_text(given) {
            Ok(key) => Ok(key),
            Err(error @ WriteError::WeakKey) => Err(wrong_key(given, &error)),
            Err(_) => {
                let text = read(Path::new(given))?;
                PublicKey::from_text(&String::from_utf8_lossy(&text))
                    .map_err(|error| wrong_key(given, &error))
            }
        }
    }

    /// Whether a signature is demanded.
    pub(crate) fn is_demanded(&self) -> bool {
        self.require_signature.is_some()
    }

    /// A launch that is trusted: what is checked is what is used, whatever becomes of the file meanwhile.
    pub(crate) fn launch(&self, recording: &Recording, number: u32) -> Result<Launch, Failure> {
        let Some(given) = &self.require_signature else {
            return Ok(recording.launch(number)?);
        };
        let key = Self::key(given)?;
        let manifest = recording.manifest(number)?;
        let path = recording.signature_path(number);
        let untrusted = |reason: String| Failure::Untrusted {
            path: path.clone(),
            reason,
        };
        let bytes =
            recording
                .signature(number, MAX_FILE)
                .map_err(|source| match source.kind() {
                    ErrorKind::NotFound => {
                        untrusted("there is none; `gpureplay cuda sign` makes it".into())
                    }
                    _ => file(&path)(source),
                })?;
        let signature = Signature::parse(&bytes).map_err(|error| untrusted(reason(error)))?;
        signature
            .verify(manifest.as_bytes(), &key, self.min_counter)
            .map_err(|error| untrusted(reason(error)))?;
        Ok(Launch::parse(&manifest)?)
    }
}

fn reason(error: SignatureError) -> String {
    match error {
        SignatureError::NotASignature => "is no signature".into(),
        SignatureError::Version(version) => format!("is of version {version}"),
        SignatureError::Shape | SignatureError::Name(_) => "is damaged".into(),
        SignatureError::RecordingLength(_) | SignatureError::Forged => {
            "does not fit the launch: one of them was changed after signing".into()
        }
        SignatureError::Key => "was made with another key than the required one".into(),
        SignatureError::WeakKey => "the required key is no usable Ed25519 key".into(),
        SignatureError::Rollback { counter, minimum } => {
            format!("its counter is {counter}, but at least {minimum} is required")
        }
    }
}
