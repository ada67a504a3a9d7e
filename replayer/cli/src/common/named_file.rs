// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with names for tensors on the command line.

use std::path::PathBuf;
use std::str::FromStr;

/// `NAME=FILE` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// Name that the tensor gets.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
}

impl FromStr for NamedFile {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !path.is_empty() && is_name(name) => Ok(Self {
                name: name.to_owned(),
                path: path.into(),
            }),
            _ => Err("expected NAME=FILE, with a name of letters, digits, '.', '_', '-'".into()),
        }
    }
}

/// Whether a text can be the name of a tensor and of its file.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
