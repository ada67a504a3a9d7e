// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepts only signed recordings (feature `signature`).
//!
//! Key and smallest counter are linked in. Flash keeps the counters of recordings that ran.

use gpureplay_sign::{Pack, PublicKey, SIGNATURE, Signature, SignatureError};

use crate::counter::{self, Counter};
use crate::uart::{number, text};
use crate::{COUNTER, PUBLIC_KEY};

pub struct Trusted {
    pub recording: &'static [u8],
    counter: u64,
    stored: Counter,
}

impl Trusted {
    /// Refuses older ones from now on; reports failures.
    pub fn remember(&self) -> bool {
        let stored = self.stored.raise(self.counter);
        if !stored {
            text("FAILED the flash does not store the counter\n");
        }
        stored
    }
}

/// Recording of a rightly signed pack; otherwise reports why.
pub fn recording(pack: &'static [u8]) -> Option<Trusted> {
    let Some(stored) = counter::read() else {
        text("REFUSED no place for the counter\n");
        return None;
    };
    let Ok(pack) = Pack::parse(pack) else {
        text("REFUSED not a signed pack\n");
        return None;
    };
    let signature = pack.file(SIGNATURE).ok_or(SignatureError::NotASignature);
    let trusted = signature.and_then(Signature::parse).and_then(|signature| {
        let oldest = COUNTER.max(stored.value);
        signature.verify(pack.recording(), &PublicKey::new(PUBLIC_KEY), oldest)
    });
    let error = match trusted {
        Ok(trusted) => {
            text("signed, counter ");
            number(trusted.counter);
            text("\n");
            return Some(Trusted {
                recording: trusted.recording,
                counter: trusted.counter,
                stored,
            });
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
