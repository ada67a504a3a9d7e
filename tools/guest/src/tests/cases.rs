// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenCL's hard cases on the real driver.

use gpureplay_task::cases::{self, SAMPLE, SCRIPT};
use mali_facts::StreamGpu;

use super::runner::Sample;
use crate::{
    build::payload,
    error::Result,
    files,
    folder::Folder,
    run::driver::Driver,
    run::session::{self, Options},
};

pub(super) fn some(folder: &Folder) -> Result<Sample> {
    run(folder, "g52", &SAMPLE, Driver::Patched)
}

pub(super) fn all(folder: &Folder, gpu: &str) -> Result<Sample> {
    run(
        folder,
        gpu,
        &cases::names().collect::<Vec<_>>(),
        Driver::Patched,
    )
}

pub(super) fn misused(folder: &Folder) -> Result<Sample> {
    payload::user_recorder(folder)?;
    run(
        folder,
        "g52",
        &cases::misused().collect::<Vec<_>>(),
        Driver::Stock,
    )
}

pub(super) fn on_panthor(folder: &Folder) -> Result<Sample> {
    payload::user_recorder(folder)?;
    let all = cases::names().chain(cases::misused());
    run(folder, "g610", &all.collect::<Vec<_>>(), Driver::Stock)
}

fn run(folder: &Folder, gpu: &str, names: &[&str], driver: Driver) -> Result<Sample> {
    let share = files::temporary()?;
    let work = share.path();
    cases::write_inputs(work)?;
    let options = Options {
        gpu: gpu.into(),
        timeout: std::time::Duration::from_secs(3600),
        ..Options::sharing(driver, work)
    };
    let outcome = session::script(
        folder,
        &options,
        &format!("set -- {}\n{SCRIPT}", names.join(" ")),
    )?;
    outcome.clean()?;
    let printed = outcome.said();
    let command = payload::host_command(folder);
    let streams = StreamGpu::by_name(gpu).is_some();
    let wrong = |name: &&str| {
        let judged = cases::judge(&command, work, (name, streams), &printed);
        Some(format!("{name}: {}", judged.err()?))
    };
    let wrong: Vec<String> = names.iter().filter_map(wrong).collect();
    Ok((names.len() - wrong.len(), wrong))
}
