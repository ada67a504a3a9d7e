// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of a manifest of a new recording, which names as many jobs as there is room for.

use crate::common::terminal;
use crate::manifest::Manifest;
use crate::{Result, text};

/// The text; names of jobs for which it has no room are left out, with a warning.
///
/// # Errors
/// The manifest says something that no manifest may say.
pub(crate) fn manifest_text(manifest: &Manifest) -> Result<String> {
    let mut fitting = manifest.clone();
    let left_out = fitting.fit()?;
    if left_out > 0 {
        terminal::note(format!(
            "warning: the manifest says of {} which launch they are, and has no room for {left_out} more",
            text::count(fitting.jobs.len() as u64, "job")
        ));
    }
    Ok(fitting.to_text()?)
}
