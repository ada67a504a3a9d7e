// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mali-G57: live Mesa, and replays.

use std::{process::Command, time::Duration};

use crate::{
    build::{payload, step::logged},
    devices::expect,
    error::Result,
    files,
    folder::Folder,
    run::{
        driver::Driver,
        session::{self, Options},
    },
};

const SCRIPT: &str = include_str!("valhall.sh");
/// Recorded on the model's node.
const SAXPY: &str = "mali/measure/tests/data/saxpy-g57.gpr";
const RUNS: u32 = 3;

pub(super) fn devices(folder: &Folder) -> Result<()> {
    payload::nano_driver(folder)?;
    let share = files::temporary()?;
    expect(folder, "digits-g57", share.path())?;
    let top = &folder.repository;
    let copy = |from: &str, to: &str| files::copy(top.join(from), share.path().join(to));
    copy(SAXPY, "saxpy.gpr")?;
    let mut replay = Command::new(payload::host_command(folder));
    replay.current_dir(share.path()).args(["run", "saxpy.gpr"]);
    for name in ["x", "y"] {
        let file = format!("{name}2.npy");
        copy(&format!("recordings/saxpy-g52/inputs/{file}"), &file)?;
        replay.arg("--input").arg(format!("{name}={file}"));
    }
    replay.args(["--output", "out=by-model.npy"]);
    let log = folder.local.join("log/model-saxpy-g57.log");
    logged(&mut replay, "replay on the model", &log)?;
    let options = Options {
        gpu: "g57".into(),
        timeout: Duration::from_secs(900),
        environment: vec![("RUNS".into(), RUNS.to_string())],
        ..Options::sharing(Driver::Stock, share.path())
    };
    let outcome = session::script(folder, &options, SCRIPT)?;
    let said = outcome.said();
    outcome.clean()?;
    match said.ends_with(
        "A G57 AGREES
",
    ) {
        true => Ok(()),
        false => Err(format!("ended early: {}", said.trim()).into()),
    }
}
