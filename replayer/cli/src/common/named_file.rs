// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with names for tensors on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `NAME=FILE` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    /// Name that the tensor gets.
    pub(crate) name: String,
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

/// `--output` of a command that makes a recording: its directory, or `NAME=FILE`, which `--output` meant before `--writes` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputArgument {
    /// Where the recording goes.
    Directory(PathBuf),
    /// A file that the app writes.
    Written(NamedFile),
}

impl OutputArgument {
    /// The directory, if it is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Written(_) => None,
        }
    }

    /// The file, if it is one.
    pub(crate) fn written(&self) -> Option<&NamedFile> {
        match self {
            Self::Directory(_) => None,
            Self::Written(file) => Some(file),
        }
    }
}

impl From<PathBuf> for OutputArgument {
    fn from(path: PathBuf) -> Self {
        match path.to_str().and_then(|text| text.parse().ok()) {
            Some(file) => Self::Written(file),
            None => Self::Directory(path),
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
