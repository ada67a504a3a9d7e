// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask reliability`: the trials, and the document that shows what came out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::costs;
use super::fuzz::Fuzz;
use super::target::{self, Kind, Target};
use super::totals::{self, Total};
use super::{read, root, trial};
use crate::error::{Error, Result};

/// Run all trials and write docs/reliability.md
#[derive(Args)]
pub(crate) struct Reliability {
    /// Seconds for each fuzz target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Write the document from the results of earlier runs
    #[arg(long)]
    no_run: bool,
}

/// What a trial saved.
#[derive(Deserialize)]
struct Saved<T> {
    /// Whether everything held.
    passed: bool,
    #[serde(flatten)]
    result: Option<T>,
}

/// Fewest hours of soundness.
const LEAST_HOURS: f64 = 1.0;

#[derive(Deserialize)]
struct MutantResult {
    recordings: usize,
    kinds: usize,
    tried: u64,
    refused: u64,
    rules: Vec<RuleResult>,
}

#[derive(Deserialize)]
struct RuleResult {
    rule: String,
    tried: u64,
    refused: u64,
}

#[derive(Deserialize)]
struct FaultResult {
    rows: Vec<FaultRow>,
    calls: u64,
    actions: usize,
    reported: usize,
    bound_us: u64,
    longest_us: u64,
    injected: u64,
    seconds: f64,
}

#[derive(Deserialize)]
struct FaultRow {
    kind: String,
    injected: u64,
    errors: u64,
    right: u64,
    longest_us: u64,
}

#[derive(Deserialize)]
struct CostResult {
    raw: CostOf,
    compressed: CostOf,
}

#[derive(Deserialize)]
struct CostOf {
    bytes: u64,
    read_seconds: f64,
    verify_seconds: f64,
}

impl FaultResult {
    /// At how many of the calls a fault was injected; the last few of some kinds come too late to happen.
    fn every_nth(&self) -> String {
        let possible = self.calls * self.rows.len() as u64;
        match (possible as f64 / self.injected.max(1) as f64).round() {
            step if step > 1.0 => format!("one in {step}"),
            _ => "each".into(),
        }
    }
}

impl Reliability {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let mut passed = true;
        if !self.no_run {
            let fuzz = Fuzz::for_all(self.seconds);
            let soundness = Fuzz::for_one("soundness", self.seconds);
            for outcome in [
                trial::run("mutants", &[]),
                trial::run("faults", &[]),
                trial::run("cost", &[]),
                fuzz.execute(),
                soundness.execute(),
            ] {
                passed &= outcome? == ExitCode::SUCCESS;
            }
        }
        let targets = target::all()?;
        let fuzzed = totals::read()?;
        let short = short_targets(&targets, &fuzzed);
        let text = document(&targets, &fuzzed)?;
        let path = root().join("docs/reliability.md");
        std::fs::write(&path, text).map_err(Error::io("write", &path))?;
        for what in &short {
            println!("  {what}");
        }
        passed &= short.is_empty();
        println!(
            "reliability: docs/reliability.md written, {}",
            if passed {
                "all trials passed"
            } else {
                "something fell short"
            }
        );
        Ok(if passed {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// The result of a trial that passed.
fn passed<T: DeserializeOwned>(trial: &str, command: &str) -> Result<T> {
    let saved: Option<Saved<T>> = read(&format!("{trial}.json"))?;
    judge(saved, trial, command)
}

fn judge<T>(saved: Option<Saved<T>>, trial: &str, command: &str) -> Result<T> {
    match saved {
        Some(Saved {
            passed: true,
            result: Some(result),
        }) => Ok(result),
        Some(Saved { passed: false, .. }) => Err(Error::FellShort {
            what: trial.into(),
            remedy: format!("`{command}` says what it was"),
        }),
        _ => Err(Error::Missing {
            what: format!("the result of {trial}"),
            remedy: format!("run `{command}` first"),
        }),
    }
}

/// Fuzz targets that nobody ran, whose last finding is open, or that did not run for long enough, as sentences.
fn short_targets(targets: &[Target], totals: &BTreeMap<String, Total>) -> Vec<String> {
    let none = Total::default();
    let mut short = Vec::new();
    for target in targets {
        let name = &target.name;
        let total = totals.get(name).unwrap_or(&none);
        if total.executions == 0 {
            short.push(format!("fuzz target {name} has not been run"));
        }
        if total.open {
            short.push(format!(
                "the last run of fuzz target {name} found something"
            ));
        }
        let hours = total.seconds / 3600.0;
        if target.kind == Kind::Soundness && hours < LEAST_HOURS {
            short.push(format!("{name} ran for {hours:.2} h of {LEAST_HOURS:.0} h"));
        }
    }
    short
}

fn document(targets: &[Target], fuzz: &BTreeMap<String, Total>) -> Result<String> {
    let mutants: MutantResult = passed("mutants", "cargo xtask mutants")?;
    let faults: FaultResult = passed("faults", "cargo xtask faults")?;
    let cost: CostResult = passed("cost", "cargo xtask reliability")?;
    let mut text = String::from(
        "# Reliability\n\n\
         Made by `cargo xtask reliability`; its parts are `cargo xtask mutants`, `faults` and `fuzz`, each of which fails when something falls\n\
         short. What is promised, and what is not, is in [SPECIFICATION.md](SPECIFICATION.md).\n\n",
    );
    // Writing to a string cannot fail.
    let _ = write_mutants(&mut text, &mutants);
    let _ = write_faults(&mut text, &faults);
    let _ = write_fuzz(&mut text, targets, fuzz);
    let _ = write_cost(&mut text, &cost);
    let path = root().join("docs/reliability.md");
    let page = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    text.push_str(&what_files_cost(&page, &costs::section(&costs::read()?)));
    text.push_str(
        "\n## Defects of the original\n\n\
         Eleven, with a regression test each: see [SPECIFICATION.md](SPECIFICATION.md). `cargo test -p gpureplay-trials --test trials defects` runs all of\n\
         them, with the name of a test behind it that one.\n",
    );
    Ok(text)
}

fn write_mutants(text: &mut String, result: &MutantResult) -> std::fmt::Result {
    writeln!(
        text,
        "## Mutants\n\n\
         {} kinds of recordings that are wrong in one point, made from each of the {} shipped ones: {} tried, {} refused by the rule that they\n\
         break. Kill rate {:.1} %. `cargo xtask mutants`, or the short form `cargo test -p gpureplay-trials every_mutant`.\n\n\
         | Rule | Tried | Refused by it | Command |\n| --- | ---: | ---: | --- |",
        result.kinds,
        result.recordings,
        result.tried,
        result.refused,
        100.0 * result.refused as f64 / result.tried.max(1) as f64
    )?;
    for row in &result.rules {
        let RuleResult {
            rule,
            tried,
            refused,
        } = row;
        writeln!(
            text,
            "| {rule} | {tried} | {refused} | `cargo xtask mutants --rule {rule}` |"
        )?;
    }
    writeln!(
        text,
        "\nRules `format-…` are the parser's, `signature-…` those of `--require-signature`, `identity` the engine's; `gpureplay verify --rules`\n\
         explains the others.\n"
    )
}

fn write_faults(text: &mut String, result: &FaultResult) -> std::fmt::Result {
    writeln!(
        text,
        "## Faults\n\n\
         Each kind of fault at {} of the {} calls that a replay of `recordings/digits-g52` makes to its device, on the model: {} faults in\n\
         {:.0} s. {} of its {} actions that reach the device reported one. After every fault the GPU was reset and the next run bit-exact.\n\
         A fault counts from the moment when it happens to the error that the caller gets.\n\
         `cargo xtask faults` (`--step N` for one call in N), or the short form `cargo test -p gpureplay-trials faults_are_survived`.\n\n\
         | Kind | Injected | Typed errors | Right answers all the same | Longest time to the error | Command |\n\
         | --- | ---: | ---: | ---: | ---: | --- |",
        result.every_nth(),
        result.calls,
        result.injected,
        result.seconds,
        result.reported,
        result.actions
    )?;
    for row in &result.rows {
        writeln!(
            text,
            "| {0} | {1} | {2} | {3} | {4} | `cargo xtask faults --kind {0}` |",
            row.kind,
            row.injected,
            row.errors,
            row.right,
            milliseconds(row.longest_us)
        )?;
    }
    writeln!(
        text,
        "\n| | |\n| --- | ---: |\n\
         | Longest time to an error | {} |\n\
         | Its bound: the longest wait of the recording, and 2 s for resets and power | {} |\n\
         | Wrong answers | 0 |\n| Accesses outside of its own pages | 0 |\n| Bytes of others changed | 0 |\n\
         | Pages lost, bytes leaked | 0 |\n\n\
         Times are those of the engine's clock, in which a register access takes 20 µs and a wait for nothing its whole bound. A write that is\n\
         lost when a chain is started, or the interrupt at its end, shows when the chain's time-out is over, which the recording sets: 10 s in this one.\n",
        milliseconds(result.longest_us),
        milliseconds(result.bound_us)
    )
}

fn milliseconds(us: u64) -> String {
    format!("{:.2} ms", us as f64 / 1000.0)
}

fn write_fuzz(
    text: &mut String,
    targets: &[Target],
    totals: &BTreeMap<String, Total>,
) -> std::fmt::Result {
    let none = Total::default();
    writeln!(
        text,
        "## Fuzzing\n\n\
         All runs so far, added up in fuzz/totals.json by `cargo xtask fuzz --add-up`; a target without executions has not been run to be counted.\n\
         Seeds are made from the shipped recordings. Findings become tests of the crate that they concern.\n\n\
         | Target | Executions | Hours | Of the processor | Findings | Command |\n| --- | ---: | ---: | ---: | ---: | --- |"
    )?;
    let mut sum = Total::default();
    for target in targets {
        let name = &target.name;
        let total = totals.get(name).unwrap_or(&none);
        writeln!(
            text,
            "| {name} | {} | {:.2} | {:.2} | {} | `cargo xtask fuzz --target {name}` |",
            total.executions,
            total.seconds / 3600.0,
            total.processor_seconds / 3600.0,
            total.findings
        )?;
        sum.add(total);
    }
    writeln!(
        text,
        "| all | {} | {:.2} | {:.2} | {} | |\n",
        sum.executions,
        sum.seconds / 3600.0,
        sum.processor_seconds / 3600.0,
        sum.findings
    )?;
    let Some(soundness) = totals.get("soundness") else {
        return Ok(());
    };
    let count = |outcome: &str| soundness.outcomes.get(outcome).copied().unwrap_or(0);
    writeln!(
        text,
        "`soundness` and `replay` change shipped recordings, keep all checksums right, and run what verifies on the model. Of the recordings of `soundness`\n\
         {} did not parse, {} were refused by a rule, {} ran to the end and {} ended in a typed error: all with 0 accesses outside of their own pages,\n\
         0 pages lost, within their bounds, and with the GPU reset afterwards. A seed for each outcome is kept in tools/trials/corpus, which\n\
         `cargo test -p gpureplay-trials kept_seeds` repeats.\n",
        count("unparsed"),
        count("refused"),
        count("ran"),
        count("failed")
    )
}

/// The part about what files cost: its text is written by hand, its table is made.
fn what_files_cost(page: &str, table: &str) -> String {
    const HEAD: &str = "\n## What files cost\n";
    let old = page.split_once(HEAD).map_or("", |(_, rest)| rest);
    let old = old.split("\n## ").next().unwrap_or_default();
    let (before, rest) = old.split_once("<!-- begin costs -->").unwrap_or((old, ""));
    let after = rest
        .split_once("<!-- end costs -->")
        .map_or("", |(_, after)| after);
    format!("{HEAD}{before}{table}{after}")
}

fn write_cost(text: &mut String, cost: &CostResult) -> std::fmt::Result {
    writeln!(
        text,
        "## Cost of verification\n\n\
         Reading from the page cache, and parsing and verifying: the best of seven each, in a build for development (`opt-level = 1`).\n\
         `cargo run -p gpureplay-trials -- cost`\n\n\
         | Recording | Bytes | Reading | Parsing and verifying |\n| --- | ---: | ---: | ---: |"
    )?;
    let rows = [
        ("stored as it is", &cost.raw),
        ("LZ4 blocks of many short sequences", &cost.compressed),
    ];
    for (name, row) in rows {
        writeln!(
            text,
            "| {name} | {} | {:.0} ms | {:.1} ms |",
            row.bytes,
            row.read_seconds * 1000.0,
            row.verify_seconds * 1000.0
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(text: &str) -> Option<Saved<CostOf>> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn a_trial_that_fell_short_is_no_result() {
        let all = r#""bytes": 1, "read_seconds": 2, "verify_seconds": 1"#;
        let good = saved(&format!("{{\"passed\": true, {all}}}"));
        assert_eq!(judge(good, "cost", "it").unwrap().bytes, 1);
        for (text, says) in [
            (format!("{{\"passed\": false, {all}}}"), "fell short"),
            (r#"{"passed": false}"#.into(), "fell short"),
            (r#"{"passed": true}"#.into(), "run `it` first"),
            (format!("{{{all}}}"), "run `it` first"),
            ("null".into(), "run `it` first"),
        ] {
            let error = judge(saved(&text), "cost", "it").err().unwrap();
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_about_costs_stays() {
        let page = "a\n## What files cost\n\nby hand\n<!-- begin costs -->\nold\n<!-- end costs -->\nmore\n\n## Next\n";
        let table = "<!-- begin costs -->\nnew\n<!-- end costs -->";
        let new = "\n## What files cost\n\nby hand\n<!-- begin costs -->\nnew\n<!-- end costs -->\nmore\n";
        assert_eq!(what_files_cost(page, table), new);
    }

    #[test]
    fn targets_that_fall_short_are_named() {
        let targets = target::all().unwrap();
        let total = Total {
            executions: 1,
            seconds: 3600.0,
            ..Total::default()
        };
        let mut totals: BTreeMap<String, Total> = targets
            .iter()
            .map(|target| (target.name.clone(), total.clone()))
            .collect();
        assert!(short_targets(&targets, &totals).is_empty());
        totals.get_mut("soundness").unwrap().seconds = 3599.0;
        totals.get_mut("npy").unwrap().open = true;
        totals.remove("pack");
        let short = short_targets(&targets, &totals).join("; ");
        for name in ["soundness", "npy", "pack"] {
            assert!(short.contains(name), "{short}");
        }
        assert_eq!(short.matches(';').count(), 2, "{short}");
    }
}
