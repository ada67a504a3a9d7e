// SPDX-License-Identifier: MIT OR Apache-2.0
//! panthor on the model of a Mali-G610.

use std::{fs, process::Command, time::Duration};

use tempfile::TempDir;

use crate::{
    build::{kernel, payload},
    devices::panfrost::{Panfrost, expect},
    error::{Error, Result},
    files,
    folder::Folder,
    run::{
        driver::Driver,
        kernel_log,
        session::{self, Options},
    },
};

const SCRIPT: &str = include_str!("panthor.sh");
const FAULTY: &str = concat!(
    include_str!("../devices/user.sh"),
    include_str!("faulty.sh")
);
/// A fill of an image draws, which the model refuses; what computes is right afterwards.
const FILLS: &str = r#"set -e
live() { saxpy --x x2.npy --y y2.npy --a 2.5 --out $1; }
live first.npy
image_fill 1d_buffer
if image_fill "1d r unorm_int8"; then exit 1; fi
if gpureplay record --raw fill.trace --keep -- image_fill "1d r unorm_int8"; then exit 1; fi
live after.npy
[ "$(sha256sum < after.npy)" = "$(sha256sum < first.npy)" ]
"#;
const DRAWS: &str = "is part of a draw, which is neither modelled nor replayed";
const FIRMWARE_LATE: &str = "update request timedout";
const PING: &str = "global requests 0x100";

pub(super) fn awake(folder: &Folder, kernel: &str, (seconds, pings): (u32, usize)) -> Result<()> {
    let guest = match kernel {
        "stock" => folder.clone(),
        which => kernel::other(folder, which)?,
    };
    let share = prepared(folder)?;
    let options = Options {
        gpu: "g610".into(),
        timeout: Duration::from_secs(900),
        environment: vec![("AWAKE".into(), seconds.to_string())],
        model_options: ["--log-level", "debug"].map(String::from).to_vec(),
        ..Options::sharing(Driver::Stock, share.path())
    };
    let outcome = session::script(&guest, &options, SCRIPT)?;
    let said = outcome.said();
    let log = fs::read_to_string(outcome.logs.join("model.log")).unwrap_or_default();
    let seen = log.lines().filter(|line| line.ends_with(PING)).count();
    // The initramfs loaded another kernel's modules.
    outcome.clean_but_for(|line| line.starts_with("modprobe:"))?;
    if !said.ends_with(
        "PANTHOR AGREES
",
    ) {
        return Err(format!("ended early: {said}").into());
    }
    match seen >= pings {
        true => Ok(()),
        false => Err(format!("{seen} pings in {seconds} s").into()),
    }
}

pub(super) fn fills(folder: &Folder) -> Result<()> {
    let share = prepared(folder)?;
    let options = Options {
        gpu: "g610".into(),
        timeout: Duration::from_secs(900),
        ..Options::sharing(Driver::Stock, share.path())
    };
    let outcome = session::script(folder, &options, FILLS)?;
    outcome.clean_but_for(kernel_log::is_of_job)?;
    let log = fs::read_to_string(outcome.logs.join("model.log")).unwrap_or_default();
    let mut compile = Command::new(payload::host_command(folder));
    compile.current_dir(share.path());
    compile.args(["compile", "fill.trace", "-o", "filled"]);
    let ended = compile.output().map_err(Error::start("gpureplay"))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    match (log.contains(DRAWS), said.contains(DRAWS)) {
        _ if ended.status.success() => Err("a recording that draws is not refused".into()),
        (true, true) => Ok(()),
        (false, _) => Err("the model's log names no draw".into()),
        (true, false) => Err(format!("not refused by name: {said}").into()),
    }
}

fn prepared(folder: &Folder) -> Result<TempDir> {
    payload::user_recorder(folder)?;
    let share = files::temporary()?;
    for name in ["x2.npy", "y2.npy"] {
        let inputs = folder.repository.join("recordings/saxpy-g52/inputs");
        files::copy(inputs.join(name), share.path().join(name))?;
    }
    Ok(share)
}

pub(super) fn replays(folder: &Folder, kernel: &str, kills: u32) -> Result<()> {
    let short = Panfrost {
        kills,
        apps: 2,
        ..Panfrost::short(kernel, "g610")
    };
    Ok(short.test(folder, false)??)
}

pub(super) fn faults(folder: &Folder, stride: u32) -> Result<()> {
    payload::replayer(folder)?;
    let share = files::temporary()?;
    expect(folder, share.path(), "g610", &["digits".into()])?;
    let options = Options {
        gpu: "g610".into(),
        timeout: Duration::from_secs(3600),
        environment: [("STRIDE", stride.to_string()), ("DEVICE", "panthor".into())]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
        ..Options::sharing(Driver::Stock, share.path())
    };
    let outcome = session::script(folder, &options, FAULTY)?;
    let said = outcome.said();
    print!("{said}");
    // A process that is not told of its end leaves work to the GPU. The firmware then has 100 ms, which the model may
    // miss on a busy host: the GPU is reset.
    let known = |line: &str| kernel_log::is_of_job(line) || line.contains(FIRMWARE_LATE);
    outcome.clean_but_for(known)?;
    match said.ends_with(
        "EVERY NEXT RUN WAS RIGHT
",
    ) {
        true => Ok(()),
        false => Err(format!("ended early: {said}").into()),
    }
}
