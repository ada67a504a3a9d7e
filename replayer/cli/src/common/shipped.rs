// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings, replayed by this command as a process.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::machine_gpu;

/// Debian's package, a build in a clone.
const PLACES: [&str; 2] = ["../share/gpureplay/recordings", "../../recordings"];

pub(super) fn own() -> PathBuf {
    let first = env::args_os().next().map(PathBuf::from);
    started(env::current_exe().unwrap_or_default(), first)
}

/// The command's path: `gpureplay node` starts it through a loader.
fn started(executable: PathBuf, first: Option<PathBuf>) -> PathBuf {
    let name = executable.file_name().unwrap_or_default();
    let is_loader = name.as_encoded_bytes().starts_with(b"ld-");
    first.filter(|_| is_loader).unwrap_or(executable)
}

pub(super) fn found(name: &str) -> Result<PathBuf, String> {
    let own = own();
    let beside = own.parent().unwrap_or(Path::new(""));
    PLACES
        .iter()
        .find_map(|place| beside.join(place).join(name).canonicalize().ok())
        .ok_or_else(|| format!("not tried, the recording is in none of {PLACES:?}"))
}

/// Retargeted for this machine's GPU if needed; Valhall's never are.
pub(super) fn fitting(
    recording: &Path,
    device: &str,
    valhall: bool,
    folder: &Path,
) -> Result<PathBuf, String> {
    let gpu = machine_gpu::name(Path::new("/")).filter(|_| device != "model" && !valhall);
    let Some(gpu) = gpu else {
        return Ok(recording.to_owned());
    };
    let replayed = folder.join("retargeted");
    let mut retarget = Command::new(own());
    retarget.arg("retarget").arg(recording);
    retarget.args(["--gpu", &gpu, "-o"]).arg(&replayed);
    ended(&mut retarget).map_err(|said| format!("not retargeted to {gpu}: {said}"))?;
    Ok(replayed)
}

pub(super) fn ended(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim(),
            String::from_utf8_lossy(&output.stdout).trim()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_not_the_command() {
        let [command, loader] = ["/usr/bin/gpureplay", "/mesa/libc/ld-linux-x86-64.so.2"];
        for executable in [command, loader] {
            let found = started(executable.into(), Some(command.into()));
            assert_eq!(found, Path::new(command));
        }
        assert_eq!(started(command.into(), None), Path::new(command));
    }
}
