// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signatures of launches and whole runs.

use std::io::ErrorKind;

use gpureplay_cuda_launch::recording::{Part, Recording};
use gpureplay_sign::{PublicKey, Signature, SignatureError};

use crate::failure::{Failure, file};

/// In bytes.
pub(crate) const MAX_FILE: u64 = 1 << 16;

pub(crate) fn signed(
    recording: &Recording,
    (part, number): (Part, u32),
    key: &PublicKey,
    min_counter: u64,
) -> Result<String, Failure> {
    let manifest = recording.manifest(part, number)?;
    let path = recording.signature_path(part, number);
    let untrusted = |reason: String| Failure::Untrusted {
        path: path.clone(),
        reason,
    };
    let bytes = recording
        .signature(part, number, MAX_FILE)
        .map_err(|source| match source.kind() {
            ErrorKind::NotFound => {
                untrusted("there is none; `gpureplay cuda sign` makes it".into())
            }
            _ => file(&path)(source),
        })?;
    let signature = Signature::parse(&bytes).map_err(|error| untrusted(reason(error)))?;
    signature
        .verify(manifest.as_bytes(), key, min_counter)
        .map_err(|error| untrusted(reason(error)))?;
    Ok(manifest)
}

fn reason(error: SignatureError) -> String {
    match error {
        SignatureError::NotASignature => "is no signature".into(),
        SignatureError::Version(version) => format!("is of version {version}"),
        SignatureError::Shape | SignatureError::Name(_) => "is damaged".into(),
        SignatureError::RecordingLength(_) | SignatureError::Forged => {
            "does not fit what it signs: one of them was changed after signing".into()
        }
        SignatureError::Key => "was made with another key than the required one".into(),
        SignatureError::WeakKey => "the required key is no usable Ed25519 key".into(),
        SignatureError::Rollback { counter, minimum } => {
            format!("its counter is {counter}, but at least {minimum} is required")
        }
    }
}
