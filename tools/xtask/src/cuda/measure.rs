// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times: a kernel in its program and alone, tuning, and what recording costs launches that it does not want.

use std::process::Command;

use super::Bench;
use crate::{error::Result, repository::output};

/// Interleaved runs of which the median counts.
const RUNS: usize = 9;

/// The number after a word.
fn after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split(word).nth(1)?;
    rest.split_whitespace()
        .next()?
        .trim_end_matches([',', ';'])
        .parse()
        .ok()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// All tables.
pub(super) fn all(bench: &Bench) -> Result<String> {
    let nbody = nbody(bench)?;
    eprint!("{nbody}");
    Ok(nbody + &overhead(bench)?)
}

/// The number of the launch of a kernel.
fn launch(bench: &Bench, kernel: &str) -> Result<String> {
    let list = output(&mut bench.gpureplay("list ours-0"))?;
    let line = list
        .lines()
        .find(|line| line.contains(kernel))
        .unwrap_or("");
    Ok(format!(
        "ours-0#{}",
        line.split_whitespace().next().unwrap_or("0")
    ))
}

fn nbody(bench: &Bench) -> Result<String> {
    let mut in_program = Vec::new();
    for _ in 0..RUNS {
        let table = output(&mut bench.gpureplay("durations --csv --kernel nbody -- ./suite"))?;
        let line = table
            .lines()
            .find(|line| line.contains("nbody"))
            .unwrap_or("");
        in_program.extend(
            line.rsplit("\",")
                .next()
                .and_then(|rest| rest.split(',').nth(3)?.parse::<f64>().ok()),
        );
    }
    let nbody = launch(bench, "nbody")?;
    let alone = output(&mut bench.gpureplay(&format!("run {nbody} --repetitions 50")))?;
    let cold = output(&mut bench.gpureplay(&format!("run {nbody} --repetitions 50 --cold")))?;
    let tuned = output(
        bench
            .gpureplay(&format!(
                "tune {nbody} --registers 0,20,32,64,128 --repetitions 20"
            ))
            .args(["--blocks", "32 64 96 128 192 256 512 1024"]),
    )?;
    let best = tuned
        .lines()
        .rev()
        .find(|line| line.starts_with("best") || line.starts_with("nothing"));
    let (program, alone, cold) = (
        median(in_program),
        after(&alone, "median ").unwrap_or(f64::NAN),
        after(&cold, "median ").unwrap_or(f64::NAN),
    );
    Ok(format!(
        "| `nbody` of the suite | |\n| --- | --- |\n\
         | in the program, by CUPTI, median of {RUNS} runs | {program:.1} µs |\n\
         | replayed, by events, median of 50 | {alone:.1} µs ({:+.2} %) |\n\
         | replayed with a cold second-level cache | {cold:.1} µs |\n\
         | tuned over 40 candidates, each verified | {} |\n\n",
        100.0 * (alone / program - 1.0),
        best.unwrap_or("no candidate is right")
    ))
}

fn overhead(bench: &Bench) -> Result<String> {
    let transformer = bench.programs.join("transformer.py").display().to_string();
    let programs: [(&str, &str, Vec<&str>); 2] = [
        (
            "a tiny launch, µs",
            "launches ",
            vec!["./launches", "200000"],
        ),
        (
            "a transformer's forward pass, ms",
            "forward ",
            vec!["python3", &transformer],
        ),
    ];
    let modes = [
        ("bare", ""),
        (
            "recording, nothing wanted",
            "record -o nothing --kernel no_such_kernel --",
        ),
        ("durations by CUPTI", "durations --"),
    ];
    let mut text = String::from(
        "| Cost, median of nine interleaved runs | bare | recording, nothing wanted | durations by CUPTI |\n| --- | --- | --- | --- |\n",
    );
    for (name, word, line) in &programs {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..RUNS {
            for ((_, mode), times) in modes.iter().zip(&mut times) {
                let mut command = if mode.is_empty() {
                    let mut command = Command::new(line[0]);
                    command.args(&line[1..]);
                    command
                } else {
                    let mut command = bench.gpureplay(mode);
                    command.args(line);
                    command
                };
                let said = output(command.current_dir(bench.work.path()));
                times.extend(said.ok().and_then(|said| after(&said, word)));
            }
        }
        let [bare, filtered, cupti] = times.map(median);
        let more = |time: f64| {
            format!(
                "{time:.3} ({:+.3}, {:+.1} %)",
                time - bare,
                100.0 * (time / bare - 1.0)
            )
        };
        text += &format!(
            "| {name} | {bare:.3} | {} | {} |\n",
            more(filtered),
            more(cupti)
        );
    }
    Ok(text)
}
