// SPDX-License-Identifier: MIT OR Apache-2.0
//! Example programs: live, recorded, replayed.

use std::time::Duration;

use super::runner::Verdict;
use crate::{
    build::payload,
    error::Result,
    files,
    folder::Folder,
    record::{
        Recording,
        app::{self, App, SETS},
        registers,
    },
    run::session::{self, Options},
};

pub(super) fn stock(folder: &Folder, name: &str) -> Result<()> {
    let app = App::find(folder, name)?;
    let work = files::temporary()?;
    app::write_files(folder, name, work.path())?;
    let options = Options {
        share: Some(work.path().to_path_buf()),
        ..Options::default()
    };
    let both = SETS.map(|set| app.command(set)).join(" && ");
    let outcome = session::script(folder, &options, &both)?;
    outcome.clean()?;
    for (set, output) in SETS
        .iter()
        .flat_map(|set| app.outputs.iter().map(move |output| (set, output)))
    {
        let found = work.path().join(format!("{output}{set}.npy"));
        let expected = app::file(work.path(), "expected", output, set);
        app::check(&found, &expected, app.tolerance)?;
    }
    Ok(())
}

pub(super) fn record(folder: &Folder, name: &str) -> Result<Verdict> {
    record_on(folder, name, "g52", false)
}

pub(super) fn record_on(
    folder: &Folder,
    name: &str,
    gpu: &str,
    non_coherent: bool,
) -> Result<Verdict> {
    let app = App::find(folder, name)?;
    let work = files::temporary()?;
    let recording = Recording {
        folder,
        name,
        app: &app,
        gpu,
        work: work.path(),
        timeout: Duration::from_secs(1800),
        non_coherent,
    };
    let outcome = recording.trace(false)?;
    outcome.clean()?;
    let mut verdict = Verdict::of(registers::same_writes(
        &work.path().join("trace"),
        &recording.register_log(),
    ));
    let output = work.path().join("recording");
    recording.compile(&output)?;
    if let Err(text) = recording.compare_noted(&payload::host_command(folder), &output)? {
        verdict.failed += 1;
        verdict.reason += &text;
    }
    for name in &app.outputs {
        match recording.replay(&output, name) {
            Ok(_) => verdict.passed += 1,
            Err(text) => {
                verdict.failed += 1;
                verdict.reason += &text;
            }
        }
    }
    Ok(verdict)
}
