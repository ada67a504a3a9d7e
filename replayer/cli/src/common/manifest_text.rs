// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new manifest's text, within the limit.

use crate::common::terminal;
use crate::manifest::Manifest;
use crate::{Result, text};

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
