// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the guest itself.

use std::time::Duration;

use crate::{
    error::Result,
    folder::Folder,
    run::{
        driver::Driver,
        session::{self, End, Options},
    },
};

pub(super) fn exit_code(folder: &Folder) -> Result<()> {
    let options = Options {
        driver: Driver::None,
        environment: vec![("WORD".into(), "it's $HOME".into())],
        ..Options::default()
    };
    let outcome = session::script(
        folder,
        &options,
        "printf '%s\\n\\0\\377' \"$WORD\"; exit 37",
    )?;
    if outcome.end == End::Exit(37) && outcome.stdout == b"it's $HOME\n\0\xff" {
        Ok(())
    } else {
        Err(format!("{:?}, output {:?}", outcome.end, outcome.stdout).into())
    }
}

pub(super) fn panic(folder: &Folder) -> Result<()> {
    let options = Options {
        driver: Driver::None,
        ..Options::default()
    };
    let outcome = session::script(folder, &options, "echo c > /proc/sysrq-trigger; sleep 60")?;
    let seen = outcome
        .faults
        .iter()
        .any(|line| line.contains("Kernel panic"));
    if outcome.end == End::GuestDied && seen {
        Ok(())
    } else {
        Err(format!("{:?}, faults {:?}", outcome.end, outcome.faults).into())
    }
}

pub(super) fn hang(folder: &Folder) -> Result<()> {
    let options = Options {
        driver: Driver::None,
        timeout: Duration::from_secs(3),
        ..Options::default()
    };
    let outcome = session::script(folder, &options, "sleep 1000")?;
    if outcome.end == End::Timeout {
        Ok(())
    } else {
        Err(format!("{:?}", outcome.end).into())
    }
}

pub(super) fn clinfo(folder: &Folder) -> Result<()> {
    let outcome = session::script(folder, &Options::default(), "clinfo --list")?;
    outcome.clean()?;
    let output = outcome.said();
    match output.contains("Mali-G52") {
        true => Ok(()),
        false => Err(format!("clinfo says: {}", output.trim()).into()),
    }
}
