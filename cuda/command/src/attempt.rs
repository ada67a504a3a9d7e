// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses are laid out at random in each process: where a recorded one is taken, another process is tried.

use std::os::unix::process::CommandExt;
use std::process::Command;

use gpureplay_cuda_replay::ReplayError;
use serde::{Serialize, de::DeserializeOwned};

use crate::failure::Failure;

/// Which process of a replay this is, from 0.
const ATTEMPT: &str = "GPUREPLAY_CUDA_ATTEMPT";
/// What an earlier process of a command found out, as JSON.
const HANDED_ON: &str = "GPUREPLAY_CUDA_HANDED_ON";
/// Processes that are tried.
const ATTEMPTS: u32 = 8;

/// Starts this program again if the error is a taken address, a few times; any other error is passed on.
pub(crate) fn again(error: ReplayError) -> Failure {
    if !matches!(error, ReplayError::Collision { .. }) {
        return error.into();
    }
    let attempt: u32 = std::env::var(ATTEMPT)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
        + 1;
    if attempt >= ATTEMPTS {
        return error.into();
    }
    eprintln!("gpureplay: {error}; trying another process ({attempt})");
    instead(&[(ATTEMPT, attempt.to_string())], None)
}

/// This program with the same arguments and one more, in place of this process.
fn instead(variables: &[(&str, String)], more: Option<&str>) -> Failure {
    let path = match std::env::current_exe() {
        Ok(path) => path,
        Err(source) => {
            return Failure::File {
                path: "/proc/self/exe".into(),
                source,
            };
        }
    };
    let mut command = Command::new(&path);
    command.args(std::env::args_os().skip(1)).args(more);
    for (name, value) in variables {
        command.env(name, value);
    }
    let source = command.exec();
    Failure::File { path, source }
}

/// What another process of this command has found out, before a kernel that failed ended what its context could do.
pub(crate) fn handed_on<T: DeserializeOwned>() -> Result<Option<T>, Failure> {
    let Some(text) = std::env::var_os(HANDED_ON) else {
        return Ok(None);
    };
    serde_json::from_str(&text.to_string_lossy())
        .map(Some)
        .map_err(|error| Failure::Usage(format!("{HANDED_ON}: {error}")))
}

/// Goes on in another process, with what was found out so far.
pub(crate) fn hand_on<T: Serialize>(found: &T, more: Option<&str>) -> Failure {
    match serde_json::to_string(found) {
        // Addresses are tried anew.
        Ok(text) => instead(&[(HANDED_ON, text), (ATTEMPT, "0".to_owned())], more),
        Err(error) => Failure::Usage(format!("{HANDED_ON}: {error}")),
    }
}
