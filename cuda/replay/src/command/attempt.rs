// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses are random per process: a taken one means another process.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gpureplay_cuda_launch::recording::{Recording, Run};
use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;

use crate::command::failure::{Failure, file};
use crate::command::report::note;
use crate::weights::Given;
use crate::{Differences, Gpu, ReplayError, RunSession};

const ATTEMPT: &str = "GPUREPLAY_CUDA_ATTEMPT";
const HANDED_ON: &str = "GPUREPLAY_CUDA_HANDED_ON";
const ATTEMPTS: u32 = 8;

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
    note!("{error}; trying another process ({attempt})");
    instead(&[(ATTEMPT, attempt.to_string())], None)
}

pub(crate) fn opened(
    gpu: Gpu,
    recording: &Recording,
    run: Run,
    weights: Option<&Path>,
    time_limit: Duration,
) -> Result<RunSession, Failure> {
    let weights = Given::of(recording, &run, weights)?.map(Given::bytes);
    RunSession::open(gpu, recording, run, weights, time_limit).map_err(again)
}

pub(crate) fn differences_elsewhere() -> Result<Differences, Failure> {
    let path = this_program()?;
    let folder = private_folder("differences")?;
    let told = folder.path().join("words");
    let status = Command::new(&path)
        .args(std::env::args_os().skip(1))
        .arg("--differences")
        .arg(&told)
        .env_remove(ATTEMPT)
        .env_remove(HANDED_ON)
        .stdout(Stdio::null())
        .status();
    let bytes = std::fs::read(&told);
    let status = status.map_err(file(&path))?;
    if !status.success() {
        return Err(Failure::OtherProcess(status));
    }
    Differences::from_bytes(&bytes.map_err(file(&told))?).ok_or(Failure::OtherProcess(status))
}

pub(crate) fn private_folder(what: &str) -> Result<TempDir, Failure> {
    tempfile::Builder::new()
        .prefix(&format!("gpureplay-{what}-"))
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(file(&std::env::temp_dir()))
}

pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(file(Path::new("/proc/self/exe")))
}

fn instead(variables: &[(&str, String)], more: Option<&str>) -> Failure {
    let path = match this_program() {
        Ok(path) => path,
        Err(failure) => return failure,
    };
    let mut command = Command::new(&path);
    command.args(std::env::args_os().skip(1)).args(more);
    for (name, value) in variables {
        command.env(name, value);
    }
    file(&path)(command.exec())
}

/// Findings from a process whose context a failed kernel ended.
pub(crate) fn handed_on<T: DeserializeOwned>() -> Result<Option<T>, Failure> {
    let Some(text) = std::env::var_os(HANDED_ON) else {
        return Ok(None);
    };
    serde_json::from_str(&text.to_string_lossy())
        .map(Some)
        .map_err(|error| Failure::Usage(format!("{HANDED_ON}: {error}")))
}

pub(crate) fn hand_on<T: Serialize>(found: &T, more: Option<&str>) -> Failure {
    match serde_json::to_string(found) {
        Ok(text) => instead(&[(HANDED_ON, text), (ATTEMPT, "0".to_owned())], more),
        Err(error) => Failure::Usage(format!("{HANDED_ON}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::private_folder;

    #[test]
    fn temporary_folders_are_for_this_user_alone() {
        let folders = [0, 1].map(|_| private_folder("test").unwrap());
        assert_ne!(folders[0].path(), folders[1].path());
        for folder in &folders {
            let mode = folder.path().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        let paths = folders.map(|folder| folder.path().to_owned());
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
