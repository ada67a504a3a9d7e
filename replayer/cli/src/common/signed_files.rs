// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a signature or a pack covers, and what is wrong with signatures and keys, in words.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use gpureplay_sign::{MAX_FILES, SignatureError, WriteError, is_safe};

use gpureplay_library::shown;

use crate::Result;
use crate::common::failure::Failure;
use crate::manifest::{self, Manifest};

/// Largest file that is read into memory beside a recording.
const MAX_BYTES: u64 = 1 << 32;

/// Reads a file of bounded size.
pub(crate) fn read(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let text = |error: std::io::Error| format!("{}: {error}", shown(&path));
    let metadata = std::fs::metadata(path).map_err(text)?;
    let kind = metadata.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(format!("{}: is a device", shown(&path)));
    }
    if metadata.len() > MAX_BYTES {
        return Err(format!("{}: longer than {MAX_BYTES} bytes", shown(&path)));
    }
    std::fs::read(path).map_err(text)
}

/// The manifest of a directory and the files that it names: contents by name.
pub(crate) fn files_beside(
    directory: &Path,
    manifest: Option<&Manifest>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let Some(manifest) = manifest else {
        return Ok(files);
    };
    for path in std::iter::once(Path::new(manifest::FILE_NAME)).chain(manifest.files()) {
        let name = path.to_str().filter(|name| is_safe(name)).ok_or_else(|| {
            Failure::Recording(format!(
                "{}: the manifest names {}, which cannot be signed or packed: a path inside the directory of letters, digits, _ - + . and / is expected",
                shown(&directory),
                shown(&path)
            ))
        })?;
        let contents = read(&directory.join(path)).map_err(Failure::Input)?;
        files.insert(name.to_owned(), contents);
    }
    Ok(files)
}

/// What is wrong with a signature.
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
pub(crate) fn write_error(error: &WriteError) -> String {
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
