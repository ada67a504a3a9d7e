// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest bench-startup`: stack against replay.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use serde_json::json;

use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::{Folder, copy_dir},
    record::{
        app::{self, App},
        network_dir,
    },
    run::driver::{Driver, TAKE_BY_NANO},
    run::session::{self, Options, Outcome},
};

const MORE_RUNS: u32 = 4;

/// Measures start-up in a guest: Arm Compute Library on rusticl and panfrost, then `gpureplay` on the nano driver and
/// on panfrost.
///
/// Each program runs alone, until its output is written. Times are the guest's, without jobs.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  cargo xtask guest bench-startup\n  \
                        cargo xtask guest bench-startup digits squeezenet-1.1 --write")]
pub(crate) struct BenchStartup {
    /// Programs of tools/guest/recordable.toml that have a recording.
    #[arg(default_values = ["digits", "lenet"])]
    names: Vec<String>,
    /// Warm runs of the full stack and runs of the replay; the fastest counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,
    /// The guest's clock counts instructions: a busy host changes no times.
    #[arg(long)]
    counted: bool,
    /// Keep the numbers in measurements/startup.json.
    #[arg(long)]
    write: bool,
    /// Use the programs in target/guest/opt as they are.
    #[arg(long)]
    no_build: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    seconds: f64,
    peak_kib: u64,
    files: u64,
    file_bytes: u64,
    /// Part of `seconds`.
    in_jobs: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    accesses: u64,
    interrupts: u64,
}

struct Row {
    name: String,
    cold: Measured,
    warm: Measured,
    replay: Measured,
    by_panfrost: Measured,
    recorded: Counted,
    replayed: Counted,
    panfrost: Counted,
    /// Per further inference.
    further: Counted,
    recording_bytes: u64,
}

impl BenchStartup {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let names = self.names.iter().map(|name| App::named(&folder, name));
        let names = names.collect::<Result<Vec<String>>>()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::None)?;
            payload::nano_driver(&folder)?;
        }
        let place = (&folder, self.counted);
        let idle_stock = counts(&boot(place, Driver::Stock, None, "true")?)?;
        let idle_nano = counts(&boot(place, Driver::None, None, TAKE_BY_NANO)?)?;
        let mut rows = Vec::new();
        for name in &names {
            rows.push(self.row(&folder, name, idle_stock, idle_nano)?);
        }
        let table = table(&folder, &rows);
        print!("{table}");
        if self.write {
            let mut tables = measured::kept("startup")?;
            tables.retain(|kept| kept.columns != table.columns);
            tables.push(table);
            measured::keep("startup", &tables)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn row(
        &self,
        folder: &Folder,
        name: &str,
        idle_stock: Counted,
        idle_nano: Counted,
    ) -> Result<Row> {
        let app = App::find(folder, name)?;
        let place = (folder, self.counted);
        let share = files::temporary()?;
        app::write_files(folder, name, share.path())?;
        let recording = format!("{name}-g52");
        let file = recording_of(folder, name, &recording)?;
        copy_dir(&file, &share.path().join(&recording))?;
        let bytes = fs::metadata(file.join("recording.gpr"))
            .map_err(Error::io("read", file.join("recording.gpr")))?
            .len();
        let stack = app.command("");
        let replay = format!("gpureplay run {recording} --device nano");
        let share = Some(share.path().to_path_buf());
        let recorded = counts(&boot(place, Driver::Stock, share.clone(), &stack)?)?;
        let on_nano = |command: &str| -> Result<Counted> {
            let script = format!("{TAKE_BY_NANO}{command}");
            counts(&boot(place, Driver::None, share.clone(), &script)?)
        };
        let replayed = on_nano(&replay)?;
        let replay_by_panfrost = format!("gpureplay run {recording} --device panfrost");
        let panfrost = counts(&boot(
            place,
            Driver::Stock,
            share.clone(),
            &replay_by_panfrost,
        )?)?;
        let bench =
            |runs| format!("gpureplay bench {recording} --device nano --warmup 0 --runs {runs}");
        let (few, many) = (on_nano(&bench(1))?, on_nano(&bench(1 + MORE_RUNS))?);
        let further = Counted {
            accesses: many.accesses.saturating_sub(few.accesses) / u64::from(MORE_RUNS),
            interrupts: many.interrupts.saturating_sub(few.interrupts) / u64::from(MORE_RUNS),
        };
        let runs = self.runs.max(1);
        let script = format!(
            "{PREPARE}{TAKE_BY_NANO}\
             for run in $(seq {runs}); do measure {replay} | tail -n 1; done\n\
             echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind\n\
             echo > /sys/bus/platform/devices/$gpu/driver_override\n\
             modprobe panfrost\n\
             until [ -e /dev/dri/renderD128 ]; do sleep 0.1; done\n\
             export XDG_CACHE_HOME=/tmp/empty; mkdir $XDG_CACHE_HOME\n\
             for run in $(seq {}); do measure {stack} | tail -n 1; done\n",
            runs + 1
        );
        let outcome = boot(place, Driver::None, share.clone(), &script)?;
        let mut measured = parse(&outcome.said(), runs + runs + 1)?;
        in_jobs(&outcome.logs, &mut measured, runs as usize)?;
        let script = format!(
            "{PREPARE}for run in $(seq {runs}); do measure {replay_by_panfrost} | tail -n 1; done\n"
        );
        let outcome = boot(place, Driver::Stock, share, &script)?;
        let mut through = parse(&outcome.said(), runs)?;
        let all: f64 = chains(&outcome.logs)?.iter().map(|(_, time)| time).sum();
        for program in &mut through {
            program.in_jobs = all / f64::from(runs);
        }
        let fastest = |list: &[Measured]| {
            list.iter()
                .copied()
                .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
                .unwrap_or_default()
        };
        let (replays, stacks) = measured.split_at(runs as usize);
        let less = |counted: Counted, idle: Counted| Counted {
            accesses: counted.accesses.saturating_sub(idle.accesses),
            interrupts: counted.interrupts.saturating_sub(idle.interrupts),
        };
        Ok(Row {
            name: recording,
            cold: stacks.first().copied().unwrap_or_default(),
            warm: fastest(stacks.get(1..).unwrap_or(&[])),
            replay: fastest(replays),
            by_panfrost: fastest(&through),
            recorded: less(recorded, idle_stock),
            replayed: less(replayed, idle_nano),
            panfrost: less(panfrost, idle_stock),
            further,
            recording_bytes: bytes,
        })
    }
}

/// Large recordings do not ship: `guest networks` makes them.
fn recording_of(folder: &Folder, name: &str, recording: &str) -> Result<PathBuf> {
    let shipped = folder.repository.join("recordings").join(recording);
    let made = network_dir(folder, name, "g52").join(recording);
    let found = [shipped, made]
        .into_iter()
        .find(|path| path.join("recording.gpr").is_file());
    found.ok_or_else(|| {
        Error::missing(
            format!("a recording of {name}"),
            format!("run `cargo xtask guest record {name}`"),
        )
    })
}

fn boot(
    (folder, counted): (&Folder, bool),
    driver: Driver,
    share: Option<PathBuf>,
    script: &str,
) -> Result<Outcome> {
    let options = Options {
        driver,
        counted,
        share,
        timeout: Duration::from_secs(3600),
        ..Options::default()
    };
    let outcome = session::script(folder, &options, script)?;
    if outcome.clean().is_ok() {
        return Ok(outcome);
    }
    outcome.print_logs();
    Err(Error::Usage(format!("`{script}`: {:?}", outcome.end)))
}

fn parse(said: &str, expected: u32) -> Result<Vec<Measured>> {
    let line = |line: &str| {
        let words: Vec<u64> = line
            .strip_prefix("measured ")?
            .split(' ')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()
            .ok()?;
        let &[nanoseconds, peak_kib, files, file_bytes] = words.as_slice() else {
            return None;
        };
        Some(Measured {
            seconds: nanoseconds as f64 / 1e9,
            peak_kib,
            files,
            file_bytes,
            in_jobs: 0.0,
        })
    };
    let all: Vec<Measured> = said.lines().filter_map(line).collect();
    if all.len() == expected as usize {
        Ok(all)
    } else {
        Err(Error::Usage(format!(
            "{} of {expected} measurements: {said}",
            all.len()
        )))
    }
}

const PREPARE: &str = "set -e\nmkdir /tmp/bench\ncp -r . /opt/gpureplay/bin /opt/gpureplay/lib /tmp/bench\ncd /tmp/bench\n\
     export PATH=$PWD/bin:$PATH LD_LIBRARY_PATH=$PWD/lib\n\
     cat /usr/lib/aarch64-linux-gnu/*.so* > /dev/null 2>&1 || true\n";

/// Seconds that a job may take before the guest stands still.
const GRACE: f64 = 0.020;

/// Per chain: resets before it, and its seconds without the guest's standstill.
fn chains(logs: &Path) -> Result<Vec<(u32, f64)>> {
    let text = files::text(logs.join("model.log"))?;
    let mut chains = Vec::new();
    let mut started = None;
    let mut group = 0;
    for line in text.lines() {
        let time = line
            .split_whitespace()
            .next()
            .and_then(|time| time.parse::<f64>().ok());
        let Some(time) = time else { continue };
        if line.contains(" runs chain ") {
            started = Some(time);
        } else if line.contains(" ended ") {
            if let Some(start) = started.take() {
                chains.push((group, (time - start).min(GRACE)));
            }
        } else if line.ends_with(" reset") {
            group += 1;
        }
    }
    Ok(chains)
}

fn in_jobs(logs: &Path, measured: &mut [Measured], replays: usize) -> Result<()> {
    // Resets separate programs; when panfrost or nano starts, it resets without a chain.
    let mut sums: Vec<(u32, f64)> = Vec::new();
    for (group, seconds) in chains(logs)? {
        match sums.last_mut() {
            Some((last, sum)) if *last == group => *sum += seconds,
            _ => sums.push((group, seconds)),
        }
    }
    for (program, (_, seconds)) in measured.iter_mut().zip(&sums).take(replays) {
        program.in_jobs = *seconds;
    }
    // Panfrost resets only when idle, so starts of the stack, which have equal chain counts, share the rest evenly.
    let rest: f64 = sums.iter().skip(replays).map(|(_, seconds)| seconds).sum();
    let stacks = measured.len().saturating_sub(replays).max(1) as f64;
    for program in measured.iter_mut().skip(replays) {
        program.in_jobs = rest / stacks;
    }
    Ok(())
}

fn counts(outcome: &Outcome) -> Result<Counted> {
    let path = outcome.logs.join("model.log");
    let text = files::text(&path)?;
    let line = text.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("the guest has ended: ")?;
        let numbers: Vec<u64> = rest
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        match numbers.as_slice() {
            &[reads, writes, interrupts] => Some(Counted {
                accesses: reads + writes,
                interrupts,
            }),
            _ => None,
        }
    });
    line.ok_or_else(|| Error::Usage(format!("{}: no counts at its end", path.display())))
}

fn table(folder: &Folder, rows: &[Row]) -> Table {
    let size = |path: &str| fs::metadata(folder.payload().join(path)).map_or(0, |file| file.len());
    let (command, module) = (size("bin/gpureplay"), size("nano/gpureplay_nano.ko"));
    let mut table = Table::new(
        format!(
            "Installed for a replay: `gpureplay` (static, {command} B), `gpureplay_nano.ko` ({module} B with debug information), the recording. \
             Accesses and interrupts: of the recorded run, of a replay, of each further inference."
        ),
        "Recording | Way | Seconds | Of them in jobs | Peak memory, KiB | Files mapped | Their bytes | Recording, B | Register accesses | Interrupts",
    );
    for row in rows {
        let Counted {
            accesses,
            interrupts,
        } = row.further;
        let further = format!("{}, further {accesses}", row.replayed.accesses);
        let more = format!("{}, further {interrupts}", row.replayed.interrupts);
        let (known, bytes) = (&row.recorded, row.recording_bytes);
        let (accesses, interrupts) = (json!(known.accesses), json!(known.interrupts));
        for (way, m, bytes, accesses, interrupts) in [
            (
                "full stack, cold",
                &row.cold,
                json!(null),
                &accesses,
                &interrupts,
            ),
            (
                "full stack, warm",
                &row.warm,
                json!(null),
                &accesses,
                &interrupts,
            ),
            (
                "replay, nano driver",
                &row.replay,
                json!(bytes),
                &json!(further),
                &json!(more),
            ),
            (
                "replay, panfrost",
                &row.by_panfrost,
                json!(bytes),
                &json!(row.panfrost.accesses),
                &json!(row.panfrost.interrupts),
            ),
        ] {
            let Measured {
                seconds,
                in_jobs,
                peak_kib,
                files,
                file_bytes,
            } = m;
            table.row(json!([
                row.name, way, seconds, in_jobs, peak_kib, files, file_bytes, bytes, accesses,
                interrupts
            ]));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_read() {
        let all = parse("digit 3\nmeasured 1500000 900 2 4096\n", 1).unwrap();
        assert!((all[0].seconds - 0.0015).abs() < 1e-9);
        assert_eq!(
            (all[0].peak_kib, all[0].files, all[0].file_bytes),
            (900, 2, 4096)
        );
        assert!(parse("measured x\n", 1).is_err());
    }
}
