// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose recordings are accepted.

use std::path::Path;

use gpureplay_sign::{MAX_FILES, PublicKey, SignatureError, WriteError};

use crate::error::{Error, Result};
use crate::package::open::read_named;

/// Bytes; a PEM file of an Ed25519 key has 119, and may have comments.
pub const MOST_KEY: u64 = 1 << 16;

/// Accepts all unless a key is given.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Only recordings signed with this key, and only files that the signature covers.
    pub key: Option<PublicKey>,
    /// Smallest accepted signature counter.
    pub minimum_counter: u64,
}

impl Trust {
    /// 64 hexadecimal digits, a PEM text, or the path of a PEM file.
    ///
    /// # Errors
    /// No such file, or no usable key.
    pub fn with_key(given: &str) -> Result<Self> {
        let wrong = |error: &WriteError| Error::file(Path::new(given), write_error(error));
        let key = match PublicKey::from_text(given) {
            Ok(key) => key,
            // Digits of an unusable key are no file name.
            Err(error @ WriteError::WeakKey) => return Err(wrong(&error)),
            Err(_) => {
                let path = Path::new(given);
                let text = read_named(path, MOST_KEY)?;
                PublicKey::from_text(&String::from_utf8_lossy(&text))
                    .map_err(|error| wrong(&error))?
            }
        };
        Ok(Self {
            key: Some(key),
            minimum_counter: 0,
        })
    }
}

pub(crate) fn signature_error(error: &SignatureError) -> String {
    match *error {
        SignatureError::NotASignature => "not a signature (it does not start with GPURESIG)".into(),
        SignatureError::Version(version) => {
            format!("a signature of version {version}, this program reads version 1")
        }
        SignatureError::Shape => "damaged: its length does not fit its counts".into(),
        SignatureError::Name(index) => {
            format!("damaged: the name of file {index} is not allowed or out of order")
        }
        SignatureError::RecordingLength(length) => {
            format!("it is for a recording of {length} bytes; the recording was changed")
        }
        SignatureError::Key => "it was made with another key than the required one".into(),
        SignatureError::WeakKey => "the required key is no usable Ed25519 key".into(),
        SignatureError::Forged => {
            "it does not fit the recording: one of them was changed after signing".into()
        }
        SignatureError::Rollback { counter, minimum } => format!(
            "its counter is {counter}, but at least {minimum} is required: the recording is older than allowed"
        ),
    }
}

/// Why a signature, a pack or a key cannot be made.
pub fn write_error(error: &WriteError) -> String {
    match error {
        WriteError::Name(name) => format!("a file must not be called {name}"),
        WriteError::TooManyFiles => format!("more than {MAX_FILES} files"),
        WriteError::NoRecording => "there is no recording".into(),
        WriteError::WeakKey => "the key is one that anybody can sign for".into(),
        WriteError::NotAKey => {
            "no Ed25519 key; expected a PEM file as `gpureplay keygen` and OpenSSL write it".into()
        }
    }
}
