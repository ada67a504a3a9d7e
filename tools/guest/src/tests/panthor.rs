// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's driver of GPUs with command streams, on the model of a Mali-G610: it probes, stays awake, sleeps, and several apps compute.

use std::{fs, time::Duration};

use super::scene::temporary;
use crate::{
    devices::panfrost::Panfrost,
    error::{Error, Result},
    folder::Folder,
    run::{
        driver::Driver,
        session::{self, Checked, Options},
    },
};

/// What the guest runs.
const SCRIPT: &str = include_str!("panthor.sh");
/// How the model says that the driver looked whether the firmware still answers.
const PING: &str = "global requests 0x100";

/// Probes, stays awake for some time, in which the driver looks whether firmware answers; sleeps and wakes; runs apps at once.
pub(super) fn awake(folder: &Folder, seconds: u32, pings: usize) -> Result<Checked> {
    let share = temporary()?;
    for name in ["x2.npy", "y2.npy"] {
        let from = folder
            .repository
            .join("recordings/saxpy-g52/inputs")
            .join(name);
        fs::copy(&from, share.path().join(name)).map_err(Error::io("copy", from))?;
    }
    let options = Options {
        gpu: "g610".into(),
        timeout: Duration::from_secs(900),
        environment: vec![("AWAKE".into(), seconds.to_string())],
        model_options: ["--log-level", "debug"].map(String::from).to_vec(),
        ..Options::sharing(Driver::Stock, share.path())
    };
    let outcome = session::script(folder, &options, SCRIPT)?;
    let said = outcome.said();
    let log = fs::read_to_string(outcome.logs.join("model.log")).unwrap_or_default();
    let seen = log.lines().filter(|line| line.ends_with(PING)).count();
    Ok(match outcome.clean() {
        Ok(()) if !said.ends_with("PANTHOR AGREES\n") => Err(format!("ended early: {said}")),
        Ok(()) if seen < pings => Err(format!("{seen} pings in {seconds} s")),
        checked => checked,
    })
}

/// Replays on panthor by an ordinary user, processes that are killed, and streams that no verifier saw.
pub(super) fn replays(folder: &Folder, kills: u32) -> Result<Checked> {
    let short = Panfrost {
        kernel: "stock".into(),
        gpu: "g610".into(),
        runs: 1,
        recording: Vec::new(),
        kills,
        wrong: 1,
        apps: 2,
        repaired: false,
        non_coherent: false,
        seed: 1,
        write: false,
        no_build: false,
    };
    short.test(folder, false)
}
