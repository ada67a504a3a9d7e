// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder in user space.

use std::{fs, path::Path, time::Duration};

use super::runner::Verdict;
use crate::{
    build::payload,
    error::Result,
    files,
    folder::Folder,
    foreign,
    record::{
        Recording,
        app::{self, App},
        both,
        by_user::NOBODY,
    },
    run::{
        driver::Driver,
        session::{self, End, Options},
    },
};

/// Threads take turns when they block; needs root.
const IN_TURN: &str = "taskset -c 0 chrt -f 1 setarch --addr-no-randomize";

pub(super) fn stock(folder: &Folder, gpu: &str, name: &str) -> Result<()> {
    stock_on(folder, name, gpu, false)
}

pub(super) fn non_coherent(folder: &Folder, name: &str) -> Result<()> {
    payload::board_modules(folder)?;
    stock_on(folder, name, "g52", true)
}

fn stock_on(folder: &Folder, name: &str, gpu: &str, non_coherent: bool) -> Result<()> {
    payload::user_recorder(folder)?;
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
    let outcome = recording.trace_by_user(false)?;
    outcome.clean()?;
    let output = work.path().join("recording");
    recording.compile(&output)?;
    check(&recording, &output)
}

fn check(recording: &Recording<'_>, output: &Path) -> Result<()> {
    let manifest = output.join("manifest.toml");
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    if !text.contains("in user space") {
        return Err(format!("{text}: does not say how it was recorded").into());
    }
    let program = payload::host_command(recording.folder);
    recording.compare_noted(&program, output)??;
    for name in &recording.app.outputs {
        recording.replay(output, name)?;
        if !app::identical(&recording.replayed(name), &recording.live(name))? {
            return Err(format!("{name}: a replay is not the live stack's answer").into());
        }
    }
    Ok(())
}

const CASES: &str = include_str!("user.sh");
const VERDICTS: [(&str, &str); 13] = [
    ("signals", ""),
    ("import", ""),
    ("freed", ""),
    ("purged", ""),
    (
        "unlisted",
        "a page changed that neither the app nor a listed job can change",
    ),
    ("fork", "another process of the app used the GPU"),
    ("files", ""),
    ("files-compiled", "other page tables"),
    ("fault", ""),
    ("fault-compiled", "job 0"),
    (
        "deceived",
        "a page changed that neither the app nor a listed job can change",
    ),
    ("idle", "gave the GPU no job"),
    ("twice", "another process of the app used the GPU"),
];
const FULL: [&str; 2] = ["full: refused", "full: the app ended"];

pub(super) fn cases(folder: &Folder) -> Result<Verdict> {
    payload::user_recorder(folder)?;
    let work = files::temporary()?;
    app::write_files(folder, "saxpy", work.path())?;
    let saxpy = App::find(folder, "saxpy")?.command("");
    let options = Options {
        share: Some(work.path().to_path_buf()),
        ..Options::default()
    };
    let outcome = session::script(
        folder,
        &options,
        &format!("{NOBODY}{}", CASES.replace("APP", &saxpy)),
    )?;
    if outcome.end != End::Exit(0) {
        let logs = outcome.logs.display();
        return Err(format!("{:?}, logs: {logs}", outcome.end).into());
    }
    let printed = outcome.said().into_owned();
    let lines: Vec<&str> = printed.lines().collect();
    let mut verdict = Verdict::default();
    for (name, complaint) in VERDICTS {
        let wanted = match complaint {
            "" => format!("{name}: well"),
            _ => format!("{name}: refused"),
        };
        let said = fs::read_to_string(work.path().join(format!("{name}.said")));
        let said = said.unwrap_or_default();
        let other = lines.contains(&format!("{name}: another answer").as_str());
        if lines.contains(&wanted.as_str()) && said.contains(complaint) && !other {
            verdict.passed += 1;
        } else {
            verdict.failed += 1;
            verdict.reason += &format!("{name}: {}; ", said.trim());
        }
    }
    match FULL.iter().all(|line| lines.contains(line)) {
        true => verdict.passed += 1,
        false => {
            verdict.failed += 1;
            verdict.reason += &printed;
        }
    }
    Ok(verdict)
}

const BOTH: &str = r#"set -e
APP > /dev/null
gpureplay record --recorder kernel --raw kernel.trace -- \
	env LD_PRELOAD=/opt/gpureplay/lib/libgpureplay_recorder.so GPUREPLAY_TRACE=/tmp/user.trace ALIKE APP
cp /tmp/user.trace .
"#;

pub(super) fn both(folder: &Folder, gpu: &str, name: &str) -> Result<Verdict> {
    let app = App::find(folder, name)?;
    let work = files::temporary()?;
    app::write_files(folder, name, work.path())?;
    let options = Options {
        gpu: gpu.into(),
        memory: app.memory,
        ..Options::sharing(Driver::Patched, work.path())
    };
    compared(folder, options, work.path(), &app.command(""))
}

pub(super) fn both_of_others(folder: &Folder, name: &str) -> Result<Verdict> {
    let work = files::temporary()?;
    let (tree, command) = foreign::alone(folder, name, work.path())?;
    let options = Options {
        extra: Some(tree),
        ..Options::sharing(Driver::Patched, work.path())
    };
    compared(folder, options, work.path(), &command)
}

pub(super) fn both_of_case(folder: &Folder, name: &str) -> Result<Verdict> {
    let work = files::temporary()?;
    let options = Options::sharing(Driver::Patched, work.path());
    compared(
        folder,
        options,
        work.path(),
        &format!("driver_cases {name}"),
    )
}

fn compared(folder: &Folder, options: Options, work: &Path, command: &str) -> Result<Verdict> {
    let others = options.extra.is_some();
    let mount = if others { foreign::MOUNT } else { "" };
    let text = BOTH.replace("APP", command).replace("ALIKE", IN_TURN);
    let text = format!("{mount}{text}");
    let options = Options {
        timeout: Duration::from_secs(1800),
        ..options
    };
    let outcome = session::script(folder, &options, &text)?;
    outcome.clean()?;
    let [kernel, user] = ["kernel.trace", "user.trace"].map(|name| work.join(name));
    let compared = both::compare(&kernel, &user)?;
    match compared.agrees(others) {
        true => Ok(Verdict {
            reason: compared.to_string(),
            ..Verdict::from(())
        }),
        false => Err(compared.to_string().into()),
    }
}
