// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files; errors name them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::error::{Error, Result};

/// A file's bytes.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    fs::read(path).map_err(Error::io("read", path))
}

/// A file's text.
pub fn text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(Error::io("read", path))
}

/// Writes a file.
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    fs::write(path, contents).map_err(Error::io("write", path))
}

/// Writes a file; leaves an equal one alone.
pub fn write_if_changed(path: impl AsRef<Path>, contents: &str) -> Result<()> {
    match fs::read(&path).is_ok_and(|old| old == contents.as_bytes()) {
        true => Ok(()),
        false => write(path, contents),
    }
}

/// Copies a file.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let from = from.as_ref();
    let copied = fs::copy(from, to).map_err(Error::io("copy", from));
    copied.map(drop)
}

/// With those above it.
pub fn create_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).map_err(Error::io("create", path))
}

/// A directory's entries, sorted.
pub fn entries(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    let paths =
        fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = paths.map_err(Error::io("read", folder))?;
    paths.sort();
    Ok(paths)
}

/// Removed when dropped.
pub fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))
}

/// Reads a TOML file.
pub fn from_toml<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T> {
    let path = path.as_ref();
    toml::from_str(&text(path)?)
        .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))
}

/// Reads a JSON file.
pub fn from_json<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T> {
    let path = path.as_ref();
    serde_json::from_slice(&read(path)?)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}
