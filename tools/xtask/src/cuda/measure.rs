// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in the program and alone.

use std::process::Command;

use super::{
    Bench, Found,
    programs::{build_one_of_ours, build_suite},
    replays::{disk, durations, launches},
};
use gpureplay_host::statistics::Sorted;
use gpureplay_task::{Result, output};

/// In turns; the median counts.
const RUNS: usize = 9;
/// For slow starts, of seconds.
const SLOW_RUNS: usize = 4;

/// Microseconds more for a launch that no filter matches.
const MOST_MORE: f64 = 0.2;

fn after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split(word).nth(1)?;
    rest.split_whitespace()
        .next()?
        .trim_end_matches([',', ';'])
        .parse()
        .ok()
}

pub(super) fn median(values: Vec<f64>) -> f64 {
    Sorted::new(values).median().unwrap_or(f64::NAN)
}

fn launch(bench: &Bench, kernel: &str) -> Result<String> {
    let list = bench.output("list nbody")?;
    let line = list
        .lines()
        .find(|line| line.contains(kernel))
        .unwrap_or("");
    Ok(format!(
        "nbody#{}",
        line.split_whitespace().next().unwrap_or("0")
    ))
}

pub(super) fn nbody(bench: &Bench) -> Result<String> {
    build_suite(bench)?;
    bench.output("record -o nbody --kernel nbody -- ./suite")?;
    let mut in_program = Vec::new();
    for _ in 0..RUNS {
        let said = bench.output("durations --json --kernel nbody -- ./suite")?;
        let means = durations(&said).into_iter();
        in_program.extend(means.map(|row| row.total_us / row.occurrences.max(1) as f64));
    }
    let nbody = launch(bench, "nbody")?;
    let alone = bench.output(&format!("run {nbody} --repetitions 50"))?;
    let cold = bench.output(&format!("run {nbody} --repetitions 50 --cache cold"))?;
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

pub(super) fn overhead(bench: &Bench) -> Found {
    build_one_of_ours(bench, "launches.cu", "launches")?;
    let transformer = bench.programs.join("transformer.py").display().to_string();
    let programs: [(&str, &str, Vec<&str>, usize); 2] = [
        (
            "a tiny launch, µs",
            "launches ",
            vec!["./launches", "200000"],
            RUNS,
        ),
        (
            "a transformer's forward pass, ms",
            "forward ",
            vec!["python3", &transformer],
            SLOW_RUNS,
        ),
    ];
    let modes = [
        ("bare", ""),
        (
            "nothing wanted",
            "record -o nothing --kernel no_such_kernel --",
        ),
        ("durations by CUPTI", "durations --"),
    ];
    let mut text = format!(
        "| Cost, {RUNS} or {SLOW_RUNS} interleaved runs: median (least to most), difference of medians | bare | recording, nothing wanted | durations by CUPTI |\n| --- | --- | --- | --- |\n",
    );
    let mut wrong = 0;
    for (name, word, line, runs) in &programs {
        let mut times = [const { Vec::new() }; 3];
        // The first round warms disk and driver caches.
        for round in 0..=*runs {
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
                let time = said.ok().and_then(|said| after(&said, word));
                times.extend(time.filter(|_| round > 0));
            }
        }
        let bare = median(times[0].clone());
        let more = median(times[1].clone()) - bare;
        // A forward pass varies by more.
        wrong += usize::from(*runs == RUNS && (more.is_nan() || more > MOST_MORE));
        let cells = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            let (least, most) = (times.first(), times.last());
            let middle = median(times.clone());
            format!(
                "{middle:.3} ({:.3} to {:.3}), {:+.3}, {:+.1} %",
                least.unwrap_or(&f64::NAN),
                most.unwrap_or(&f64::NAN),
                middle - bare,
                100.0 * (middle / bare - 1.0)
            )
        });
        let row = format!("| {name} | {} |\n", cells.join(" | "));
        eprint!("{row}");
        text += &row;
    }
    Ok((text, wrong))
}

pub(super) fn memory(bench: &Bench) -> Result<String> {
    build_one_of_ours(bench, "large.cu", "large")?;
    build_suite(bench)?;
    let mut text = String::from(
        "| Recording | Memory, MB | On disk, MB | Device memory copied |\n| --- | --- | --- | --- |\n",
    );
    let rows = [
        (
            "8 GB of one kernel, first launch",
            "--pick first -o large-1",
            "./large 8",
        ),
        (
            "the same, three launches",
            "--pick all -o large-3",
            "./large 8",
        ),
        (
            "the same in the arena",
            "--pick all --alloc arena -o large-arena",
            "./large 8",
        ),
        ("the suite", "--pick all -o suite-1", "./suite"),
        (
            "the suite again, chunks shared with the first",
            "--pick all --share suite-1 -o suite-2",
            "./suite",
        ),
    ];
    for (name, words, line) in rows {
        let words = format!("record -v --max-bytes 80000000000 {words} -- {line}");
        let folder = words
            .split("-o ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let folder = folder.unwrap_or("").to_owned();
        let before = disk_of(bench);
        let (_, said) = bench.start(&words)?;
        let speed = said.lines().find(|line| line.contains("GB/s"));
        let speed = speed.and_then(|line| line.split("memory copied ").nth(1));
        let (_, bytes) = launches(bench, &folder)?;
        let row = format!(
            "| {name} | {bytes:.1} | {:.1} | {} |\n",
            disk_of(bench) - before,
            speed.unwrap_or("nothing")
        );
        eprint!("{row}");
        text += &row;
    }
    Ok(text)
}

/// Shared files count once.
fn disk_of(bench: &Bench) -> f64 {
    let said = output(
        Command::new("du")
            .args(["-s", "-B", "1000"])
            .arg(bench.work.path()),
    );
    let blocks = said
        .ok()
        .and_then(|said| said.split_whitespace().next()?.parse::<f64>().ok());
    blocks.unwrap_or_else(|| 1e3 * disk(bench.work.path())) / 1e3
}
