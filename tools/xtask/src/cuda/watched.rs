// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process's host memory and libraries.

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use crate::error::{Error, Result};

#[derive(Default)]
pub(super) struct Ran {
    pub(super) right: bool,
    pub(super) said: String,
    /// Most host memory, in MB.
    pub(super) memory: u64,
    pub(super) libraries: BTreeSet<String>,
}

pub(super) fn watched(command: &mut Command) -> Result<Ran> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::Start {
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut ran = Ran::default();
    let of = |name: &str, id: u32| fs::read_to_string(format!("/proc/{id}/{name}"));
    while child.try_wait().map_err(failed)?.is_none() {
        for line in of("status", child.id()).unwrap_or_default().lines() {
            if let Some(size) = line.strip_prefix("VmHWM:") {
                let kb = size.trim().trim_end_matches(" kB").parse().unwrap_or(0u64);
                ran.memory = ran.memory.max(kb / 1000);
            }
        }
        let maps = of("maps", child.id()).unwrap_or_default();
        let paths = maps.lines().filter_map(|line| line.split('/').next_back());
        ran.libraries
            .extend(paths.filter(|path| path.contains(".so")).map(str::to_owned));
        std::thread::sleep(Duration::from_millis(3));
    }
    let output = child.wait_with_output().map_err(failed)?;
    ran.right = output.status.success();
    ran.said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(ran)
}
