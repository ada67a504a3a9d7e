// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays every launch in its own process.

use std::{collections::BTreeSet, path::Path, process::Command, time::Instant};

use serde::Deserialize;
use serde_json::Value;

use super::{
    AT_A_TIME, Bench, Found,
    crew::some_at_a_time,
    programs::{self, HECBENCH, OURS, build, build_foreign, build_suite},
};
use crate::{
    error::{Error, Result},
    files,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Exact,
    /// Right but for words that differ between runs.
    Masked,
    Near,
    /// It wrote nothing, as recorded, but changed inputs give what the recorded kernel gives.
    Reacts,
    /// Bit-exact from changed memory: the results were there already.
    Changed,
    Inconclusive,
    Wrong,
    /// The null replay passed too.
    NullRight,
}

#[derive(Default)]
struct Counts {
    exact: usize,
    masked: usize,
    near: usize,
    reacts: usize,
    changed: usize,
    inconclusive: usize,
    wrong: usize,
    null_right: usize,
    restarts: usize,
    /// Bytes changed before the replay, and those of them seen written.
    proven: [f64; 2],
}

pub(super) fn start(command: &mut Command) -> Result<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::start(program))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.success(), text))
}

fn replay(bench: &Bench, launch: &str) -> Result<(Fate, usize, [f64; 2])> {
    let (right, text) = bench.start(&format!("run {launch}"))?;
    let restarts = text.matches("trying another process").count();
    // A command that succeeds on changed memory has also found the change wrong.
    let proven = proven(&text).filter(|_| right);
    let fate = if proven.is_some() {
        Fate::Changed
    } else if right && text.contains("of its inputs were changed") {
        Fate::Reacts
    } else if right {
        let (null, _) = bench.start(&format!("run {launch} --null"))?;
        if null { Fate::NullRight } else { Fate::Exact }
    } else if text.contains("inconclusive") {
        Fate::Inconclusive
    } else {
        // Sums in their own order rarely differ in a given word; addresses differ per process.
        let ways = [
            ("--mask 16", Fate::Masked),
            ("--mask 4 --mask-processes 3", Fate::Masked),
            ("--tolerance 1e-4 --type f32", Fate::Near),
            ("--tolerance 1e-12 --type f64", Fate::Near),
        ];
        let mut fate = Fate::Wrong;
        for (words, then) in ways {
            let (right, said) = bench.start(&format!("run {launch} {words}"))?;
            if right {
                let said = said.lines().find(|line| line.contains("right"));
                eprintln!("{launch}: {words}: {}", said.unwrap_or("right").trim());
                let null = format!("run {launch} --null {words}");
                let (null, _) = bench.start(&null)?;
                fate = if null { Fate::NullRight } else { then };
                break;
            }
        }
        fate
    };
    Ok((fate, restarts, proven.unwrap_or_default()))
}

fn proven(text: &str) -> Option<[f64; 2]> {
    let line = text
        .lines()
        .find(|line| line.contains("bytes were changed before the launch"))?;
    let mut numbers = line.split([' ', ',']).filter_map(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?])
}

fn replay_all(bench: &Bench, launches: &[String]) -> Result<Counts> {
    let mut counts = Counts::default();
    let replays = some_at_a_time(AT_A_TIME, launches, |launch| {
        let replayed = replay(bench, launch)?;
        if matches!(
            replayed.0,
            Fate::Wrong | Fate::NullRight | Fate::Inconclusive
        ) {
            let (_, text) = bench.start(&format!("run {launch}"))?;
            eprintln!("{launch}: not shown to be right: {text}");
        }
        Ok::<_, Error>(replayed)
    });
    for replayed in replays {
        let (fate, restarts, [changed, written]) = replayed?;
        counts.restarts += restarts;
        counts.proven[0] += changed;
        counts.proven[1] += written;
        *match fate {
            Fate::Exact => &mut counts.exact,
            Fate::Masked => &mut counts.masked,
            Fate::Near => &mut counts.near,
            Fate::Reacts => &mut counts.reacts,
            Fate::Changed => &mut counts.changed,
            Fate::Inconclusive => &mut counts.inconclusive,
            Fate::Wrong => &mut counts.wrong,
            Fate::NullRight => &mut counts.null_right,
        } += 1;
    }
    Ok(counts)
}

pub(super) fn launches(bench: &Bench, recording: &str) -> Result<(Vec<String>, f64)> {
    let (_, text) = bench.start(&format!("list {recording}"))?;
    let mut bytes = 0.0;
    let mut names = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, _, _, _, "regions", amount, unit, ..] = words.as_slice() else {
            continue;
        };
        names.push(format!("{recording}#{number}"));
        let scale = match *unit {
            "kB" => 1e-3,
            "MB" => 1.0,
            "GB" => 1e3,
            _ => 1e-6,
        };
        bytes += amount.parse::<f64>().unwrap_or(0.0) * scale;
    }
    Ok((names, bytes))
}

pub(super) fn right(bench: &Bench, recording: &str) -> Result<(usize, usize)> {
    let (names, _) = launches(bench, recording)?;
    let mut right = 0;
    for name in &names {
        right += usize::from(bench.start(&format!("run {name}"))?.0);
    }
    Ok((names.len(), right))
}

pub(super) fn named(bench: &Bench, recording: &str) -> Result<Vec<(String, String)>> {
    let (names, _) = launches(bench, recording)?;
    let (_, list) = bench.start(&format!("list {recording}"))?;
    let kernels = list
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    Ok(names.into_iter().zip(kernels.map(str::to_owned)).collect())
}

pub(super) fn of<'a>(all: &'a [(String, String)], kernel: &str) -> &'a str {
    let found = all.iter().find(|(_, name)| name.contains(kernel));
    found.map_or("none#0", |(launch, _)| launch)
}

pub(super) fn report(said: &str) -> Value {
    let line = said.lines().find(|line| line.starts_with('{'));
    line.and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default()
}

pub(super) fn disk(folder: &Path) -> f64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0.0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&entry.path()),
            Ok(metadata) => metadata.len() as f64 / 1e6,
            Err(_) => 0.0,
        })
        .sum()
}

/// Launches counted by the hooks, with those inside graphs.
fn counted(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with("[gpureplay]") && line.contains(" launches, "))?;
    line.split([' ', ',']).find_map(|word| word.parse().ok())
}

fn with_app(bench: &Bench, words: &str, line: &[&str]) -> Command {
    let mut command = bench.gpureplay(words);
    let folder = bench.programs.display().to_string();
    let word = |word: &&str| word.replace('@', &folder);
    command.arg("--").args(line.iter().map(word));
    command.env("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    command
}

#[derive(Deserialize)]
pub(super) struct Duration {
    pub(super) kernel: String,
    pub(super) grid: String,
    pub(super) block: String,
    pub(super) occurrences: u64,
    pub(super) total_us: f64,
}

pub(super) fn durations(text: &str) -> Vec<Duration> {
    let rows = text.lines().rev().find(|line| line.starts_with("[{"));
    rows.and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default()
}

fn completeness(bench: &Bench, line: &[&str]) -> Result<String> {
    let (_, text) = start(&mut with_app(bench, "durations -v --json", line))?;
    let by_cupti = !text.contains("times are those of events");
    let rows = durations(&text);
    let kernels: u64 = rows.iter().map(|row| row.occurrences).sum();
    let hooks = counted(&text).map_or("?".into(), |launches| launches.to_string());
    Ok(if by_cupti {
        format!("{hooks} / {kernels}")
    } else {
        format!("{hooks} / no CUPTI")
    })
}

const HEADER: &str = "| Program | Launches: hooks / CUPTI | Recorded | Bit for bit | Bit for bit from changed memory (of what is written) | Right but for noise | Within 1e-4 as f32, or 1e-12 as f64 | Writes nothing, and reacts to changed inputs | Inconclusive | Wrong | Restarts | Memory, MB | On disk, MB |\n\
     | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

pub(super) fn ours(bench: &Bench) -> Found {
    build(bench)?;
    let mut text = String::from(HEADER);
    let mut wrong = 0;
    for (number, (name, line, words)) in OURS.iter().enumerate() {
        let recording = format!("ours-{number}");
        let (row, bad) = one(bench, name, &recording, words, line)?;
        text += &row;
        wrong += bad;
    }
    Ok((text, wrong))
}

const ABSENT: &str = "does not run here";

pub(super) fn openmp(bench: &Bench) -> Found {
    let programs = programs::openmp(bench);
    if programs.is_empty() {
        let text =
            "Not run: neither gcc nor clang here offloads to NVIDIA's GPUs, and no --openmp.\n";
        return Ok((text.into(), 0));
    }
    let mut text = String::from(HEADER);
    let mut wrong = 0;
    for (name, path) in &programs {
        let (row, bad) = one(bench, name, name, "--pick all", &[path.as_str()])?;
        wrong += bad + usize::from(!bench.openmp.is_empty() && row.contains(ABSENT));
        text += &row;
    }
    let (limits, bad) = limits_of_openmp(bench, &programs)?;
    Ok((text + &limits, wrong + bad))
}

fn limits_of_openmp(bench: &Bench, programs: &[(String, String)]) -> Found {
    let mut text = String::from("\n| Kernel | Sizes | Said |\n| --- | --- | --- |\n");
    let mut bad = 0;
    for (name, _) in programs {
        let mut kernels = named(bench, name)?;
        // GCC's do not state their limits.
        kernels.retain(|(_, kernel)| kernel.starts_with("__omp_offloading_"));
        let mut refused = [0; 2];
        for (launch, kernel) in &kernels {
            let beyond = [
                ("--block 1024", "threads of a block; OpenMP compiled"),
                ("--grid 21", "teams; OpenMP compiled"),
            ];
            for (refused, (sizes, mark)) in refused.iter_mut().zip(beyond) {
                let (_, said) = bench.start(&format!("run {launch} {sizes}"))?;
                if let Some(line) = said.lines().find(|line| line.contains(mark)) {
                    *refused += 1;
                    text += &format!("| {name}, {kernel} | {sizes} | {line} |\n");
                }
            }
        }
        // Each kernel has a thread limit, only the one with `num_teams` a team limit.
        let wanted = [kernels.len(), usize::from(!kernels.is_empty())];
        bad += usize::from(refused != wanted);
    }
    Ok((text, bad))
}

fn one(bench: &Bench, name: &str, recording: &str, words: &str, line: &[&str]) -> Found {
    let words = format!("record -v -o {recording} {words}");
    let (ran, said) = start(&mut with_app(bench, &words, line))?;
    if !ran {
        eprintln!("{name}: {said}");
        let row = format!("| {name} | {ABSENT} | | | | | | | | | | | |\n");
        return Ok((row, 0));
    }
    let refused = said.lines().filter(|line| line.contains("is not recorded"));
    refused.for_each(|line| eprintln!("{name}: {line}"));
    let seen = completeness(bench, line)?;
    let (names, bytes) = launches(bench, recording)?;
    let counts = replay_all(bench, &names)?;
    let disk = disk(&bench.work.path().join(recording));
    Ok((
        row(name, &seen, names.len(), &counts, bytes, disk),
        counts.wrong + counts.null_right,
    ))
}

pub(super) fn foreign(bench: &Bench, hecbench: &Path, until: Instant) -> Found {
    let mut text = String::from(HEADER);
    let (mut programs, mut missed, mut left, mut total) = (0, 0, 0, Counts::default());
    let mut refused = BTreeSet::new();
    let not_built = build_foreign(hecbench);
    for (name, arguments) in HECBENCH {
        if Instant::now() > until {
            left += 1;
            continue;
        }
        let folder = hecbench.join(format!("{name}-cuda"));
        if not_built.contains(name) {
            text += &format!("| HeCBench {name} | does not build | | | | | | | | | | | |\n");
            continue;
        }
        let recording = bench.work.path().join(format!("hecbench-{name}"));
        let words = format!(
            "record -v -o {} --strict --pick all --max-per-kernel 1 --max-bytes 8000000000 -- ./main {arguments}",
            recording.display()
        );
        let (_, said) = start(bench.gpureplay(&words).current_dir(&folder))?;
        let reasons = said.lines().filter_map(|line| {
            let (kernel, reason) = line
                .strip_prefix("[gpureplay] ")?
                .split_once(" is not recorded: ")?;
            Some(format!("{name}: {kernel}, {reason}"))
        });
        refused.extend(reasons);
        let is_whole = said.contains("the hooks saw what CUPTI saw");
        let hooks = counted(&said).map_or("?".into(), |launches| launches.to_string());
        let seen = if is_whole {
            format!("{hooks} / the same")
        } else {
            eprintln!("{name}: {said}");
            missed += 1;
            format!("{hooks} / others")
        };
        let (names, bytes) = launches(bench, &recording.display().to_string())?;
        let counts = replay_all(bench, &names)?;
        text += &row(
            &format!("HeCBench {name}"),
            &seen,
            names.len(),
            &counts,
            bytes,
            disk(&recording),
        );
        programs += usize::from(!names.is_empty());
        total.exact += counts.exact;
        total.masked += counts.masked;
        total.near += counts.near;
        total.reacts += counts.reacts;
        total.changed += counts.changed;
        total.inconclusive += counts.inconclusive;
        total.wrong += counts.wrong;
        total.null_right += counts.null_right;
        // Recordings of gigabytes add up.
        let _ = std::fs::remove_dir_all(&recording);
    }
    let right = total.exact + total.changed + total.masked + total.near + total.reacts;
    let all = right + total.inconclusive + total.wrong + total.null_right;
    text += &format!(
        "\nHeCBench, {programs} programs, {missed} with other launches than CUPTI saw: {right} of {all} kernels right ({:.1} %), {} inconclusive, {} wrong; {} called right that the null replay also passes. {left} programs were left out for lack of time. Refused: {}.\n",
        100.0 * right as f64 / all.max(1) as f64,
        total.inconclusive,
        total.wrong,
        total.null_right,
        if refused.is_empty() {
            "nothing".to_owned()
        } else {
            Vec::from_iter(refused).join("; ")
        }
    );
    Ok((text, missed + left + total.wrong + total.null_right))
}

fn row(name: &str, seen: &str, recorded: usize, counts: &Counts, bytes: f64, disk: f64) -> String {
    let changed = match (counts.changed, counts.proven) {
        (0, _) => "0".to_owned(),
        (count, [changed, written]) => format!("{count} ({:.0} %)", 100.0 * changed / written),
    };
    let row = format!(
        "| {name} | {seen} | {recorded} | {} | {changed} | {} | {} | {} | {} | {} | {} | {bytes:.1} | {disk:.1} |\n",
        counts.exact,
        counts.masked,
        counts.near,
        counts.reacts,
        counts.inconclusive,
        counts.wrong + counts.null_right,
        counts.restarts
    );
    eprint!("{row}");
    row
}

pub(super) fn fresh(bench: &Bench, runs: usize) -> Found {
    build_suite(bench)?;
    let (mut text, mut wrong) = (String::new(), 0);
    for alloc in ["native", "arena"] {
        let recording = format!("fresh-{alloc}");
        let words =
            format!("record -v -o {recording} --pick all --alloc {alloc} -- ./suite 262144");
        let (ran, said) = bench.start(&words)?;
        if !ran {
            eprintln!("{said}");
        }
        let (line, bad) = replays_of(bench, &recording, runs)?;
        text += &format!("Recorded with --alloc {alloc}: {line}\n\n");
        wrong += bad;
    }
    Ok((text, wrong))
}

pub(super) fn elsewhere(bench: &Bench, folder: &Path, runs: usize) -> Found {
    let (mut text, mut wrong) = (String::new(), 0);
    for folder in files::entries(folder)? {
        let (line, bad) = replays_of(bench, &folder.display().to_string(), runs)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("`{name}`, recorded on another machine: {line}\n\n");
        wrong += bad;
    }
    Ok((text, wrong))
}

fn replays_of(bench: &Bench, recording: &str, runs: usize) -> Found {
    let (names, _) = launches(bench, recording)?;
    // Not the sum by atomics: its last bits vary.
    let names: Vec<&String> = names.iter().take(5).collect();
    if names.is_empty() {
        return Ok(("nothing was recorded".into(), runs));
    }
    let numbers: Vec<usize> = (0..runs).collect();
    let replays = some_at_a_time(AT_A_TIME, &numbers, |number| {
        let launch = names[number % names.len()];
        let (is_right, text) = bench.start(&format!("run {launch}"))?;
        Ok((is_right, text.matches("trying another process").count()))
    });
    let replays: Vec<(bool, usize)> = replays.into_iter().collect::<Result<_>>()?;
    let right = replays.iter().filter(|(is_right, _)| *is_right).count();
    let restarts: usize = replays.iter().map(|(_, tried)| tried).sum();
    let worst = replays.iter().map(|(_, tried)| *tried).max().unwrap_or(0);
    let said = format!(
        "{right} of {runs} replays in fresh processes right; {restarts} other processes were tried in all, {worst} for one replay at most."
    );
    eprintln!("{said}");
    Ok((said, runs - right))
}
