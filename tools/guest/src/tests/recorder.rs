// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder notices deception, and outlives its driver.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::BufReader,
    path::Path,
    time::Duration,
};

use gpureplay_task::cases;
use gpureplay_trace::{ErrorCode, Event, Phase, Reader};
use mali_facts::registers::gpu::{GPU_CMD, GpuCommand};

use crate::{
    build::payload,
    error::Result,
    files,
    folder::Folder,
    record::app::{self, App},
    run::board::Board,
    run::driver::Driver,
    run::session::{self, Checked, Options},
};

const SCRIPT: &str = r#"set -e
APP > /dev/null
gpureplay record --raw honest -- APP
if gpureplay record -o deceived -- env LD_PRELOAD=/opt/gpureplay/lib/libforgetful.so APP 2> said; then
	echo "the recording was made"; exit 9
fi
driver=/sys/bus/platform/drivers/panfrost
for device in $driver/*/driver_override; do device=${device%/driver_override}; device=${device##*/}; done
gpureplay record --raw unbound -- sh -c "APP && echo $device > $driver/unbind"
echo $device > $driver/bind
sleep 1
APP > /dev/null
"#;

/// A page changed though it cannot have (GPUREPLAY_ERROR_UNSEEN).
const UNSEEN: &str = "recording is not complete: error 11";

pub(super) fn notices(folder: &Folder) -> Result<()> {
    let share = files::temporary()?;
    let work = share.path();
    app::write_files(folder, "saxpy", work)?;
    let command = App::find(folder, "saxpy")?.command("");
    let options = Options::sharing(Driver::Patched, work);
    let outcome = session::script(folder, &options, &SCRIPT.replace("APP", &command))?;
    outcome.clean()?;
    let said = fs::read_to_string(work.join("said")).map_err(|error| error.to_string())?;
    if !said.contains(UNSEEN) {
        return Err(format!("a recording was refused for another reason: {said}").into());
    }
    is_complete(&work.join("honest"))?;
    Ok(is_complete(&work.join("unbound"))?)
}

/// Two threads: one writes jobs while the other's runs. 2: each dump looks at clean pages.
const DURING: &str = r#"set -e
echo 2 > /sys/module/gpureplay_recorder/parameters/dirty
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
	gpureplay record --raw $number.trace -- opencl_cases two-threads a.bin a.out
done
"#;

pub(super) fn leaves(folder: &Folder) -> Result<()> {
    let share = files::temporary()?;
    cases::write_inputs(share.path())?;
    let options = Options::sharing(Driver::Patched, share.path());
    session::script(folder, &options, DURING)?.clean()?;
    let mut apart = false;
    for number in 1..=12 {
        apart |= has_its_jobs(&share.path().join(format!("{number}.trace")))?;
    }
    match apart {
        true => Ok(()),
        false => Err("in no run did one thread write a job while the other had one".into()),
    }
}

/// The app wrote where each chain begins; no job did. False: the second job got the memory of the first, which had
/// ended.
fn has_its_jobs(trace: &Path) -> std::result::Result<bool, String> {
    let (mut last, mut chains, mut jobs) = (BTreeMap::new(), BTreeSet::new(), 0);
    let mut wrong = Vec::new();
    events(trace, |event| match event {
        Event::Page { va, phase, .. } => drop(last.insert(*va, *phase)),
        Event::Submit { chain_head, .. } => {
            jobs += 1;
            if chains.insert(*chain_head) && last.get(&(chain_head & !0xfff)) == Some(&Phase::After)
            {
                wrong.push(format!("{chain_head:#x}"));
            }
        }
        _ => {}
    })?;
    match (wrong.as_slice(), jobs) {
        ([], 2..) => Ok(chains.len() > 1),
        (wrong, jobs) => {
            let wrong = wrong.join(", ");
            Err(format!(
                "{}: {jobs} jobs, from another job: {wrong}",
                trace.display()
            ))
        }
    }
}

const AROUND: &str = include_str!("recorder.sh");
const SOFT_RESET: (u32, u32) = (GPU_CMD, GpuCommand::SoftReset as u32);
const TRIALS: [&str; 7] = [
    "probes",
    "unmapped",
    "retried",
    "open",
    "fence",
    "note",
    "nonblocking",
];
const UNMAPPED: [(&str, ErrorCode); 2] = [
    ("unmapped-table", ErrorCode::Walk),
    ("unmapped-page", ErrorCode::Page),
];

pub(super) fn holds(folder: &Folder) -> Result<()> {
    payload::probes(folder)?;
    payload::board_modules(folder)?;
    let share = files::temporary()?;
    let work = share.path();
    app::write_files(folder, "saxpy", work)?;
    let command = App::find(folder, "saxpy")?.command("");
    let options = Options {
        board: Board {
            disabled_first: true,
            ..Board::default()
        },
        timeout: Duration::from_secs(1200),
        ..Options::sharing(Driver::None, work)
    };
    let outcome = session::script(folder, &options, &AROUND.replace("APP", &command))?;
    outcome.clean()?;
    let said = outcome.said();
    let failed = TRIALS.iter().filter(|name| {
        let good = format!("{name}: well");
        !said.lines().any(|line| line == good)
    });
    match failed.copied().collect::<Vec<_>>()[..] {
        [] => {}
        ref names => return Err(format!("{}: {}", names.join(", "), said.trim()).into()),
    }
    for name in ["binary-1", "binary-2"] {
        is_reset(&work.join(name))?;
    }
    for (name, error) in UNMAPPED {
        has_error(&work.join(name), error)?;
    }
    Ok(is_complete(&work.join("hoarded"))?)
}

/// The driver learns of its reset by an interrupt.
fn is_reset(trace: &Path) -> Checked {
    let mut seen = (0, 0);
    events(trace, |event| match event {
        Event::RegWrite { offset, value } if (*offset, *value) == SOFT_RESET => seen.0 += 1,
        Event::IrqExit { .. } => seen.1 += 1,
        _ => {}
    })?;
    match seen {
        (1, 1..) => Ok(()),
        _ => Err(format!(
            "{}: {} resets, {} interrupts",
            trace.display(),
            seen.0,
            seen.1
        )),
    }
}

fn is_complete(trace: &Path) -> Checked {
    let mut jobs = 0;
    events(trace, |event| {
        jobs += u32::from(matches!(event, Event::Complete { .. }));
    })?;
    match jobs {
        0 => Err(format!("{}: no job", trace.display())),
        _ => Ok(()),
    }
}

fn has_error(trace: &Path, expected: ErrorCode) -> Checked {
    let mut first = None;
    all_events(trace, |event| {
        if let Event::Error { code, .. } = event {
            first.get_or_insert(*code);
        }
    })?;
    match first {
        Some(found) if found == expected => Ok(()),
        other => Err(format!("{}: error {other:?}", trace.display())),
    }
}

fn events(trace: &Path, mut each: impl FnMut(&Event)) -> Checked {
    let mut error = None;
    all_events(trace, |event| match event {
        Event::Error { .. } if error.is_none() => error = Some(format!("{event:?}")),
        event => each(event),
    })?;
    match error {
        Some(error) => Err(format!("{}: {error}", trace.display())),
        None => Ok(()),
    }
}

fn all_events(trace: &Path, mut each: impl FnMut(&Event)) -> Checked {
    let wrong = |text: String| format!("{}: {text}", trace.display());
    let file = fs::File::open(trace).map_err(|error| wrong(error.to_string()))?;
    let mut reader = Reader::new(BufReader::new(file));
    while let Some(record) = reader
        .next_record()
        .map_err(|error| wrong(error.to_string()))?
    {
        each(&record.event);
    }
    Ok(())
}
