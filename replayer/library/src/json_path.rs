// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths in JSON, lossy outside UTF-8.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Writes a path, for `serialize_with`.
///
/// # Errors
/// The serializer's.
pub fn one<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// [`one`] for an optional path.
///
/// # Errors
/// The serializer's.
pub fn optional<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let path = path.as_deref().map(Path::to_string_lossy);
    path.serialize(serializer)
}

/// [`one`] for paths by name.
///
/// # Errors
/// The serializer's.
pub fn named<S: Serializer>(
    paths: &BTreeMap<String, PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        paths
            .iter()
            .map(|(name, path)| (name, path.to_string_lossy())),
    )
}
