// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a recording, as `gpureplay info --json` says them.

use std::{path::Path, process::Command};

use serde::Deserialize;

use crate::error::{Error, Result};

#[derive(Deserialize)]
struct Info {
    tensors: Vec<Tensor>,
}

#[derive(Deserialize)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    /// `input`, `output`, `weight` or `intermediate`.
    pub(crate) kind: String,
    /// Type of its elements, such as `f32`.
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) shape: Vec<u64>,
    /// Where its first element is in GPU memory.
    pub(crate) address: u64,
}

/// The tensors of a recording, in the order of its file.
///
/// # Errors
/// The command does not start, or does not know the recording.
pub(crate) fn tensors(program: &Path, recording: &Path) -> Result<Vec<Tensor>> {
    let mut info = Command::new(program);
    info.args(["info", "--json"]).arg(recording);
    let output = info
        .output()
        .map_err(Error::start(program.display().to_string()))?;
    let info: Info = serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        Error::Usage(format!(
            "gpureplay info {}: {error}: {}",
            recording.display(),
            said.trim()
        ))
    })?;
    Ok(info.tensors)
}
