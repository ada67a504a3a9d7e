// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's tensors and number of jobs, as `gpureplay info --json` says them.

use std::{path::Path, process::Command};

use serde::Deserialize;

use crate::error::{Error, Result};

#[derive(Deserialize)]
pub(crate) struct Info {
    pub(crate) tensors: Vec<Tensor>,
    /// Jobs of chains, or dispatches of command streams.
    pub(crate) jobs: usize,
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
    Ok(info(program, recording)?.tensors)
}

/// What the command says of a recording.
///
/// # Errors
/// As of [`tensors`].
pub(crate) fn info(program: &Path, recording: &Path) -> Result<Info> {
    let mut info = Command::new(program);
    info.args(["info", "--json"]).arg(recording);
    let output = info
        .output()
        .map_err(Error::start(program.display().to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        Error::Usage(format!(
            "gpureplay info {}: {error}: {}",
            recording.display(),
            said.trim()
        ))
    })
}
