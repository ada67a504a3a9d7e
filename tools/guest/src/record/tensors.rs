// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's tensors and jobs, from `gpureplay info --json`.

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
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) shape: Vec<u64>,
    /// Of the first element.
    pub(crate) address: u64,
}

pub(crate) fn tensors(program: &Path, recording: &Path) -> Result<Vec<Tensor>> {
    Ok(info(program, recording)?.tensors)
}

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
