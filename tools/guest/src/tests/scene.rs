// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests share: a folder.

use std::env;

use tempfile::TempDir;

use crate::error::{Error, Result};

pub(super) fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(Error::io("create", env::temp_dir()))
}
