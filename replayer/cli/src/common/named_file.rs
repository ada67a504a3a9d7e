// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with tensor names on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
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

/// A directory, or `NAME=FILE` as before `--writes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputArgument {
    Directory(PathBuf),
    Written(NamedFile),
}

impl OutputArgument {
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Written(_) => None,
        }
    }

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

pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
