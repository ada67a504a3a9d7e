// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trials as commands.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use gpureplay_trials::soundness::Counts;
use gpureplay_trials::{
    Parts, corpus, cost, faults, fingerprints, mutants, seeds, shipped, soundness,
};
use mali_drive::middleware::FaultKind;
use serde_json::json;

/// Trials that the replayer must pass.
#[derive(Parser)]
#[command(name = "trials", version)]
struct Cli {
    /// Also write the result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(subcommand)]
    trial: Trial,
}

#[derive(Subcommand)]
enum Trial {
    /// Recordings that are wrong in one point: each must be refused by the rule that it breaks.
    Mutants {
        /// Only those that break this rule.
        #[arg(long, value_name = "NAME")]
        rule: Option<String>,
    },
    /// Every kind of fault at every call to the device while the digits recording replays.
    Faults {
        /// Only every N-th call.
        #[arg(long, value_name = "N", default_value_t = 1)]
        step: usize,
        /// Only this kind.
        #[arg(long, value_name = "NAME")]
        kind: Option<String>,
    },
    /// Shipped recordings changed at random and run on the model; seeds with a new outcome go to the corpus.
    Soundness {
        /// How long.
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        seconds: u64,
        /// Number of the first change; another one tries others.
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
    },
    /// Verification of a recording of 50 MB against reading it; run it with `cargo run --release`.
    Cost {
        /// Size of the recording.
        #[arg(long, value_name = "N", default_value_t = 50)]
        megabytes: usize,
    },
    /// Hashes of what two replays of each shipped recording do to the model: equal before and after a change that moves code.
    Fingerprints,
    /// Writes seeds for the fuzz targets into a directory.
    Seeds {
        /// The directory; each target gets one in it.
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let passed = match cli.trial {
        Trial::Mutants { rule } => run_mutants(rule.as_deref()),
        Trial::Faults { step, kind } => run_faults(step, kind.as_deref()),
        Trial::Soundness { seconds, seed } => {
            run_soundness(Duration::from_secs(seconds), seed, cli.save.as_deref())
        }
        Trial::Cost { megabytes } => run_cost(megabytes * 1_000_000),
        Trial::Fingerprints => run_fingerprints(),
        Trial::Seeds { directory } => seeds::write(&directory)
            .map(|()| (true, json!({})))
            .map_err(Into::into),
    };
    let passed = passed.and_then(|(passed, mut report)| {
        if let Some(path) = &cli.save {
            report["passed"] = json!(passed);
            save(path, &report)?;
        }
        Ok(passed)
    });
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Result = std::result::Result<(bool, serde_json::Value), Box<dyn std::error::Error>>;

fn save(path: &Path, report: &serde_json::Value) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, path)
}

const LEAST_KINDS: usize = 40;

fn run_mutants(only: Option<&str>) -> Result {
    let recordings = shipped::all()?;
    let tally = mutants::tally(&recordings, only);
    let (mut tried, mut refused) = (0, 0);
    for (rule, (all, right)) in &tally.rules {
        tried += all;
        refused += right;
        println!("  {rule:24} {all:4} tried {right:4} refused by it");
    }
    for survivor in &tally.survivors {
        eprintln!("{survivor}");
    }
    let enough = only.is_some() || tally.kinds >= LEAST_KINDS;
    let passed = tried == refused && enough && tried > 0;
    println!(
        "mutants: {} kinds on {} recordings, {tried} tried, {refused} refused by the rule that they break ({:.1} %)",
        tally.kinds,
        recordings.len(),
        100.0 * refused as f64 / tried.max(1) as f64
    );
    let rules: Vec<_> = tally
        .rules
        .iter()
        .map(|(rule, (all, right))| json!({"rule": rule, "tried": all, "refused": right}))
        .collect();
    let report = json!({
        "recordings": recordings.len(), "kinds": tally.kinds, "tried": tried, "refused": refused, "rules": rules,
    });
    Ok((passed, report))
}

fn run_faults(step: usize, only: Option<&str>) -> Result {
    let kinds: Vec<FaultKind> = FaultKind::ALL
        .iter()
        .copied()
        .filter(|kind| only.is_none_or(|only| only == kind.name()))
        .collect();
    if kinds.is_empty() {
        let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        return Err(format!("there is no such kind; there are {}", names.join(", ")).into());
    }
    let started = Instant::now();
    let digits = shipped::named("digits-g52")?;
    let show = |row: &faults::Row| {
        println!(
            "  {:18} {:5} injected {:5} typed errors {:5} right answers, longest {:9} µs to the error",
            row.kind.name(),
            row.injected,
            row.errors,
            row.right,
            row.longest_us
        );
    };
    let summary = match faults::campaign(&digits.bytes, (&kinds, step), show) {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("not survived: {error}");
            println!("faults: 1 not survived");
            return Ok((false, json!({})));
        }
    };
    let sum = |of: fn(&faults::Row) -> u64| summary.rows.iter().map(of).sum::<u64>();
    let longest = summary.rows.iter().map(|row| row.longest_us).max();
    let injected = sum(|row| row.injected);
    let all = summary.rows.iter().all(|row| row.injected > 0);
    let complete = step > 1 || only.is_some() || summary.reported == summary.actions;
    println!(
        "faults: {injected} injected at {} calls of {} actions ({} actions reported one), {} typed errors, {} right answers, 0 wrong answers, \
         0 bytes leaked, 0 pages lost, every next run bit-exact; longest {} µs to the error, its bound {} µs; {:.0} s",
        summary.calls,
        summary.actions,
        summary.reported,
        sum(|row| row.errors),
        sum(|row| row.right),
        longest.unwrap_or(0),
        summary.bound_us,
        started.elapsed().as_secs_f64()
    );
    let rows: Vec<_> = summary
        .rows
        .iter()
        .map(|row| {
            json!({
                "kind": row.kind.name(), "injected": row.injected, "errors": row.errors, "right": row.right,
                "longest_us": row.longest_us,
            })
        })
        .collect();
    let report = json!({
        "rows": rows, "calls": summary.calls, "actions": summary.actions, "reported": summary.reported,
        "bound_us": summary.bound_us, "longest_us": longest, "injected": injected, "seconds": started.elapsed().as_secs_f64(),
    });
    Ok((all && complete, report))
}

fn run_fingerprints() -> Result {
    let mut report = json!({});
    for recording in shipped::all()? {
        let found = fingerprints::of(&recording)?;
        println!(
            "{:20} {:6} accesses {:016x} memory {:016x} outputs {:016x}",
            recording.name, found.accesses, found.registers, found.memory, found.outputs
        );
        report[recording.name] = json!(found);
    }
    Ok((true, report))
}

fn run_cost(bytes: usize) -> Result {
    let mut passed = true;
    let mut report = json!({});
    for (name, contents) in [
        ("raw", cost::Contents::Random),
        ("compressed", cost::Contents::Compressible),
    ] {
        let cost = cost::measure(bytes, contents)?;
        let rate = |time: Duration| cost.bytes as f64 / time.as_secs_f64() / 1e9;
        println!(
            "cost: {name}: reading {} bytes {:.2} ms ({:.1} GB/s), parsing and verifying {:.2} ms ({:.1} GB/s)",
            cost.bytes,
            cost.read.as_secs_f64() * 1e3,
            rate(cost.read),
            cost.verify.as_secs_f64() * 1e3,
            rate(cost.verify)
        );
        passed &= cost.verify < cost.read;
        report[name] = json!({
            "bytes": cost.bytes, "read_seconds": cost.read.as_secs_f64(), "verify_seconds": cost.verify.as_secs_f64(),
        });
    }
    Ok((passed, report))
}

fn processor_seconds() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let both = usage.user_time() + usage.system_time();
        both.num_microseconds() as f64 / 1e6
    })
}

fn run_soundness(time: Duration, seed: u64, save_to: Option<&Path>) -> Result {
    /// Changes of each recording in turn.
    const BATCH: u64 = 20;
    let started = Instant::now();
    let mut corpus = corpus::read()?;
    let mut counts = Counts::default();
    let report = |counts: &Counts, next: u64| {
        let mut report = json!(counts);
        report["seconds"] = json!(started.elapsed().as_secs_f64());
        report["processor_seconds"] = json!(processor_seconds());
        report["next_seed"] = json!(next);
        report
    };
    let recordings: Vec<(String, Parts)> = shipped::all()?
        .into_iter()
        .filter_map(|shipped| Some((shipped.name, Parts::of(&shipped.bytes)?)))
        .collect();
    let mut first = seed;
    'all: loop {
        for (name, parts) in &recordings {
            if started.elapsed() >= time {
                break 'all;
            }
            let seen = corpus.entry(name.clone()).or_default();
            let seeds = first..first + BATCH;
            if let Err(error) = soundness::rounds(parts, seeds, &mut counts, seen) {
                println!("soundness: a promise was not kept: {name}: {error}");
                return Ok((false, report(&counts, first)));
            }
        }
        first += BATCH;
        corpus::write(&corpus)?;
        // Counts even if ended from outside.
        if let Some(path) = save_to {
            save(path, &report(&counts, first))?;
        }
    }
    println!(
        "soundness: {} recordings tried in {:.0} s: {} not parsed, {} refused, {} ran, {} ended in a typed error; \
         0 accesses outside, 0 pages lost, GPU reset after each",
        counts.tried,
        started.elapsed().as_secs_f64(),
        counts.unparsed,
        counts.refused,
        counts.ran,
        counts.failed
    );
    Ok((counts.ran > 0, report(&counts, first + BATCH)))
}
