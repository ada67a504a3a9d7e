// SPDX-License-Identifier: MIT OR Apache-2.0
//! fuzz/Cargo.toml's targets, and two more.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::time::Instant;

use gpureplay_task::output_of;
use serde::Deserialize;

use super::totals::{self, Total};
use super::{read, results, root, trial};
use crate::{
    error::{Error, Result},
    files,
};

const DEFAULT_LONGEST: u32 = 4096;
const SECONDS: &str = "GPUREPLAY_MUTATION_SECONDS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    LibFuzzer,
    /// `gpureplay-trials soundness`.
    Soundness,
    /// `damaged_copies` of `gpureplay-import`.
    DamagedCopies,
}

#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Bytes of an input.
    longest: u32,
}

#[derive(Deserialize)]
struct Package {
    package: Metadata,
    bin: Vec<Bin>,
}

#[derive(Deserialize)]
struct Metadata {
    metadata: Longest,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Longest {
    longest_input: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct Bin {
    name: String,
}

#[derive(Deserialize)]
struct Soundness {
    tried: u64,
    unparsed: u64,
    refused: u64,
    ran: u64,
    failed: u64,
    processor_seconds: f64,
    next_seed: u64,
}

pub(super) fn all() -> Result<Vec<Target>> {
    let path = root().join("fuzz/Cargo.toml");
    let text = files::text(&path)?;
    let package: Package = toml::from_str(&text)
        .map_err(|error| Error::io("read", &path)(std::io::Error::other(error)))?;
    let longest = package.package.metadata.longest_input;
    let mut targets: Vec<Target> = package
        .bin
        .into_iter()
        .map(|bin| Target {
            kind: Kind::LibFuzzer,
            longest: longest.get(&bin.name).copied().unwrap_or(DEFAULT_LONGEST),
            name: bin.name,
        })
        .collect();
    targets.sort_by(|left, right| left.name.cmp(&right.name));
    for (name, kind) in [
        ("soundness", Kind::Soundness),
        ("damaged_copies", Kind::DamagedCopies),
    ] {
        targets.push(Target {
            name: name.into(),
            kind,
            longest: 0,
        });
    }
    Ok(targets)
}

impl Target {
    pub(super) fn run(&self, seconds: u64) -> Result<Total> {
        let started = Instant::now();
        let mut total = match self.kind {
            Kind::LibFuzzer => self.fuzz(seconds)?,
            Kind::Soundness => soundness(seconds)?,
            Kind::DamagedCopies => damaged_copies(seconds)?,
        };
        if total.seconds == 0.0 {
            total.seconds = started.elapsed().as_secs_f64();
        }
        Ok(total)
    }

    fn fuzz(&self, seconds: u64) -> Result<Total> {
        let mut command = fuzz_command();
        command
            .args(["run", &self.name, "--"])
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={}", self.longest))
            .args(["-print_final_stats=1", "-rss_limit_mb=2048", "-timeout=60"]);
        let (output, processor_seconds) = timed(&command)?;
        let executions = number_after(&output, "stat::number_of_executed_units:");
        let findings = show_failure(&output);
        // The fuzzer's own seconds, without cargo's build.
        let fuzzed = run_time(&String::from_utf8_lossy(&output.stderr)).unwrap_or(0.0);
        Ok(Total {
            executions: executions.unwrap_or(0),
            seconds: fuzzed,
            processor_seconds: processor_seconds.min(fuzzed),
            findings,
            ..Total::default()
        })
    }
}

fn soundness(seconds: u64) -> Result<Total> {
    let seed = totals::read()?.get("soundness").and_then(|it| it.next_seed);
    let save = "soundness.json";
    let mut command = trial::command()?;
    command
        .arg("--save")
        .arg(results()?.join(save))
        .args(["soundness", "--seconds", &seconds.to_string()])
        .args(["--seed", &seed.unwrap_or(0).to_string()]);
    let (output, _) = timed(&command)?;
    if show_failure(&output) > 0 {
        return Ok(Total {
            findings: 1,
            ..Total::default()
        });
    }
    let found: Soundness = read(save)?
        .ok_or_else(|| Error::missing("the result of soundness", "see what it says above"))?;
    let outcomes = [
        ("unparsed", found.unparsed),
        ("refused", found.refused),
        ("ran", found.ran),
        ("failed", found.failed),
    ];
    Ok(Total {
        executions: found.tried,
        processor_seconds: found.processor_seconds,
        next_seed: Some(found.next_seed),
        outcomes: outcomes.map(|(name, count)| (name.into(), count)).into(),
        ..Total::default()
    })
}

fn damaged_copies(seconds: u64) -> Result<Total> {
    let seed = totals::read()?
        .get("damaged_copies")
        .and_then(|it| it.next_seed);
    let first = seed.unwrap_or(0);
    let mut command = Command::new("cargo");
    command
        .args([
            "test",
            "--package",
            "gpureplay-import",
            "--test",
            "recordings",
        ])
        .args(["--", "--nocapture", "damaged_copies"])
        .env(SECONDS, seconds.to_string())
        .env("GPUREPLAY_MUTATION_SEED", first.to_string());
    let (output, processor_seconds) = timed(&command)?;
    let findings = show_failure(&output);
    let Some(tried) = number_after(&output, "damaged copies tried:") else {
        return Err(Error::missing(
            "the recording of the original that is damaged",
            "set GPUREPLAY_SHARED to the folder with gpureplay-recordings",
        ));
    };
    Ok(Total {
        executions: tried,
        processor_seconds,
        findings,
        next_seed: Some(first + tried),
        ..Total::default()
    })
}

fn run_time(log: &str) -> Option<f64> {
    let line = log.lines().rev().find(|line| line.starts_with("Done "))?;
    let (_, rest) = line.split_once(" in ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn number_after(output: &Output, word: &str) -> Option<u64> {
    let log = String::from_utf8_lossy(&output.stderr);
    let mut lines = log.lines().filter_map(|line| line.strip_prefix(word));
    lines.find_map(|rest| {
        let word = rest.split_whitespace().next()?;
        word.trim_end_matches(';').parse().ok()
    })
}

fn show_failure(output: &Output) -> u64 {
    if output.status.success() {
        return 0;
    }
    for stream in [&output.stdout, &output.stderr] {
        let log = String::from_utf8_lossy(stream);
        let start = log.len().saturating_sub(4000);
        eprintln!("{}", log.get(start..).unwrap_or(&log));
    }
    1
}

/// Processor seconds with children.
fn timed(command: &Command) -> Result<(Output, f64)> {
    const MARK: &str = "processor-seconds:";
    let mut shell = Command::new("bash");
    shell
        .current_dir(root())
        .args(["-c", &format!("TIMEFORMAT='{MARK} %3U %3S'; time \"$@\"")])
        .arg("fuzz")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().map_err(Error::start("cargo fuzz"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let line = log.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let times = line.unwrap_or_default().split_whitespace();
    let seconds = times.filter_map(|time| time.parse::<f64>().ok()).sum();
    Ok((output, seconds))
}

/// Any toolchain: a stable one's sanitizers suffice.
fn fuzz_command() -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("CARGO")
        .arg("fuzz");
    command
}

pub(super) fn prepare(wanted: &[&Target]) -> Result<()> {
    let found = fuzz_command()
        .arg("--version")
        .output()
        .map_err(Error::start("cargo fuzz"))?;
    if !found.status.success() {
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "cargo-fuzz"]);
        output_of("cargo install cargo-fuzz", &mut install)?;
    }
    let corpus = root().join("fuzz/corpus");
    files::create_dir(&corpus)?;
    output_of("making seeds", trial::command()?.arg("seeds").arg(&corpus))?;
    let mut build = fuzz_command();
    build.arg("build");
    if let [one] = wanted {
        build.arg(&one.name);
    }
    output_of("cargo fuzz build", &mut build).map(drop)
}

#[cfg(test)]
mod tests {
    use super::run_time;

    #[test]
    fn building_is_not_fuzzing() {
        let log = "Compiling x in y\n#12 DONE\nDone 1417 runs in 61 second(s)\nstat::x: 1\n";
        assert_eq!(run_time(log), Some(61.0));
        assert_eq!(run_time("Done in a hurry\n"), None);
        assert_eq!(run_time(""), None);
    }
}
