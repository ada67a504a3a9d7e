// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom a recording comes from: keys, signatures, packs.

mod keygen;
mod pack;
mod place;
mod sign;

pub(crate) use keygen::Keygen;
pub(crate) use pack::Pack;
pub(crate) use place::{Place, Trust};
pub(crate) use sign::Sign;

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use gpureplay_sign::{MAX_FILES, SignatureError, WriteError, is_safe};

use gpureplay_library::values::split;

use crate::Result;
use crate::failure::Failure;
use crate::manifest::{self, Manifest};

/// Largest file that is read into memory beside a recording.
const MAX_BYTES: u64 = 1 << 32;

/// Reads a file of bounded size.
fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let text = |error: std::io::Error| format!("{}: {error}", path.display());
    let metadata = std::fs::metadata(path).map_err(text)?;
    let kind = metadata.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(format!("{}: is a device", path.display()));
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("{}: longer than {MAX_BYTES} bytes", path.display()));
    }
    std::fs::read(path).map_err(text)
}

/// Names of the manifest and of all files that it names.
fn named_files(manifest: &Manifest) -> impl Iterator<Item = &Path> {
    let cases = manifest
        .cases
        .iter()
        .flat_map(|case| case.inputs.values().chain(case.expected.values()));
    let weights = manifest.external.values().map(|weight| &weight.file);
    // A name inside a file is no part of the path.
    weights.chain(cases).map(|path| split(path).0)
}

/// The manifest of a directory and the files that it names: contents by name.
fn files_beside(
    directory: &Path,
    manifest: Option<&Manifest>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let Some(manifest) = manifest else {
        return Ok(files);
    };
    for path in std::iter::once(Path::new(manifest::FILE_NAME)).chain(named_files(manifest)) {
        let name = path.to_str().filter(|name| is_safe(name)).ok_or_else(|| {
            Failure::Recording(format!(
                "{}: the manifest names {}, which cannot be signed or packed: a path inside the directory of letters, digits, _ - + . and / is expected",
                directory.display(),
                path.display()
            ))
        })?;
        let contents = read(&directory.join(path)).map_err(Failure::Input)?;
        files.insert(name.to_owned(), contents);
    }
    Ok(files)
}

/// What is wrong with a signature.
fn signature_error(error: &SignatureError) -> String {
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
fn write_error(error: &WriteError) -> String {
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
