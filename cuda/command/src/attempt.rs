// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses are laid out at random in each process: where a recorded one is taken, another process is tried.

use std::os::unix::process::CommandExt;
use std::process::Command;

use gpureplay_cuda_replay::ReplayError;

use crate::failure::Failure;

/// Which process of a replay this is, from 0.
const ATTEMPT: &str = "GPUREPLAY_CUDA_ATTEMPT";
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
    let Ok(program) = std::env::current_exe() else {
        return error.into();
    };
    let failed = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .env(ATTEMPT, attempt.to_string())
        .exec();
    Failure::File {
        path: program,
        source: failed,
    }
}
