// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a signature when no key is demanded.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use gpureplay_host::beneath;
use gpureplay_sign::{MAX_SIGNATURE, SIGNATURE, Signature, digest};

use crate::files::Files;
use crate::seal::Seal;
use crate::trust::signature_error;

/// Bytes of files that are compared; others are left out.
const MAX_COMPARED: u64 = 64 << 20;

impl Files {
    /// What the recording's signature says. It protects from mistakes only: a stranger may sign with any key.
    pub fn seal(&self) -> Option<Seal> {
        if let Some(held) = &self.held {
            return held.seal.clone();
        }
        let read = |name: &str, most| match beneath::read(&self.directory, Path::new(name), most) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(|error| error.to_string()),
        };
        match read(SIGNATURE, MAX_SIGNATURE) {
            Ok(None) => None,
            Ok(Some(signature)) => Some(of(&signature, &self.bytes, |name, length| {
                Ok(read(name, length)?.map(Cow::Owned))
            })),
            Err(reason) => Some(Seal::Broken(format!("{SIGNATURE}: {reason}"))),
        }
    }
}

pub(crate) fn of<'a>(
    signature: &[u8],
    recording: &[u8],
    file: impl Fn(&str, u64) -> Result<Option<Cow<'a, [u8]>>, String>,
) -> Seal {
    let wrong = |error| Seal::Broken(format!("{SIGNATURE}: {}", signature_error(&error)));
    let signature = match Signature::parse(signature) {
        Ok(signature) => signature,
        Err(error) => return wrong(error),
    };
    let signer = signature.signer();
    let files = match signature.verify(recording, &signer, 0) {
        Ok(trusted) => trusted.files,
        Err(error) => return wrong(error),
    };
    let mut room = MAX_COMPARED;
    for signed in files {
        let Some(rest) = room.checked_sub(signed.length) else {
            continue;
        };
        room = rest;
        let broken = match file(signed.name, signed.length) {
            Ok(Some(contents)) if digest(&contents) == signed.sha256 => continue,
            Ok(Some(_)) => "it is not the file that was signed".to_owned(),
            Ok(None) => "it is missing, or not the file that was signed".to_owned(),
            Err(reason) => reason,
        };
        return Seal::Broken(format!("{}: {broken}", signed.name));
    }
    Seal::Fits(signer)
}
