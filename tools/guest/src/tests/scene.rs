// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests share: a script in the guest, the verdict on how it ended, a folder.

use std::env;

use tempfile::TempDir;

use crate::{
    error::{Error, Result},
    folder::Folder,
    run::session::{self, End, Options, Outcome},
};

/// Runs a shell script in the guest.
pub(super) fn script(folder: &Folder, options: &Options, text: &str) -> Result<Outcome> {
    session::run(
        folder,
        options,
        Some(&["bash", "-c", text].map(String::from)),
    )
}

/// A run that must end with code 0 and a clean kernel log.
pub(super) fn clean(outcome: &Outcome) -> std::result::Result<(), String> {
    if outcome.end != End::Exit(0) {
        return Err(format!(
            "{:?}, logs: {}",
            outcome.end,
            outcome.logs.display()
        ));
    }
    match outcome.faults.first() {
        Some(fault) => Err(format!("{fault}, logs: {}", outcome.logs.display())),
        None => Ok(()),
    }
}

pub(super) fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(Error::io("create", env::temp_dir()))
}
