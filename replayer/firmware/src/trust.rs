// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes only recordings that the owner of a key has signed, and none older than a counter (feature `signature`).
//!
//! Key and counter are linked in. A product keeps the counter in its rollback-protected storage instead, and raises it to
//! the counter of each recording that ran.

use gpureplay_sign::{Pack, PublicKey, SIGNATURE, Signature, SignatureError};

use crate::uart::{number, text};
use crate::{COUNTER, PUBLIC_KEY};

/// The recording in a pack, if its signature is right; says why not otherwise.
pub fn recording(pack: &'static [u8]) -> Option<&'static [u8]> {
    let Ok(pack) = Pack::parse(pack) else {
        text("REFUSED not a signed pack\n");
        return None;
    };
    let signature = pack.file(SIGNATURE).ok_or(SignatureError::NotASignature);
    let trusted = signature
        .and_then(Signature::parse)
        .and_then(|signature| {
            signature.verify(pack.recording(), &PublicKey::new(PUBLIC_KEY), COUNTER)
        });
    let error = match trusted {
        Ok(trusted) => {
            text("signed, counter ");
            number(trusted.counter);
            text("\n");
            return Some(trusted.recording);
        }
        Err(error) => error,
    };
    text("REFUSED signature: ");
    text(match error {
        SignatureError::NotASignature => "there is none",
        SignatureError::Key => "another key",
        SignatureError::Rollback { .. } => "older than what is allowed",
        SignatureError::Forged | SignatureError::RecordingLength(_) => "does not fit the recording",
        _ => "malformed",
    });
    text("\n");
    None
}
