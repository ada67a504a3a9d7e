// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay times against Nsight Compute's.

use std::{process::Command, time::Instant};

use super::{
    Bench, Found,
    measure::median,
    programs::{build_one_of_ours, nvcc},
    replays::{launches, named, of, report, start},
};
use crate::{error::Result, files};

/// Whether memory bounds each.
const KERNELS: [(&str, bool); 4] = [
    ("copy", true),
    ("transpose", true),
    ("stride", true),
    ("compute", false),
];

const NEAR_PERCENT: f64 = 3.0;

const METRIC: &str = "gpu__time_duration.sum";

/// Median microseconds.
fn profiled(bench: &Bench, cache: &str) -> Result<Vec<f64>> {
    let mut ncu = Command::new("timeout");
    ncu.current_dir(bench.work.path())
        .args(["120", "ncu", "--csv", "--print-units", "base"])
        .args(["--clock-control", "none", "--cache-control", cache])
        .args(["--metrics", METRIC, "./bound"]);
    let (_, said) = start(&mut ncu)?;
    let time = |line: &str| {
        let number = line.rsplit('"').nth(1)?.replace(',', "");
        number.parse::<f64>().ok().map(|time| time / 1e3)
    };
    let of = |kernel: &str| {
        // C names have no parameters in Nsight Compute's list.
        let names = [format!("\"{kernel}\""), format!("\"{kernel}(")];
        let lines = said
            .lines()
            .filter(|line| line.contains(METRIC) && names.iter().any(|name| line.contains(name)));
        median(lines.filter_map(time).collect())
    };
    let times: Vec<f64> = KERNELS.iter().map(|(kernel, _)| of(kernel)).collect();
    if times.iter().any(|time| time.is_nan()) {
        eprintln!("{said}");
    }
    Ok(times)
}

/// CUPTI's medians in microseconds, without stops between kernels.
fn in_program(bench: &Bench) -> Result<Vec<f64>> {
    bench.output("durations --log bound.csv -- ./bound")?;
    let text = files::text(bench.work.path().join("bound.csv"))?;
    let of = |kernel: &str| {
        let lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let own = lines.filter(|fields| fields.get(1) == Some(&kernel));
        let times = own.filter_map(|fields| fields.last()?.parse().ok());
        median(times.collect())
    };
    Ok(KERNELS.iter().map(|(kernel, _)| of(kernel)).collect())
}

pub(super) fn against_ncu(bench: &Bench) -> Found {
    build_one_of_ours(bench, "bound.cu", "bound")?;
    bench.output("record -o bound-1 -- ./bound")?;
    let all = named(bench, "bound-1")?;
    let mut wrong = 0;
    let mut text = String::from(
        "| Kernel of `bound.cu` | Caches | Nsight Compute in the program, µs | CUPTI there, µs | Replayed, µs | Spread, µs | Difference from Nsight Compute |\n| --- | --- | --: | --: | --: | --: | --: |\n",
    );
    let running = in_program(bench)?;
    for (cache, control) in [("warm", "none"), ("cold", "all")] {
        let theirs = profiled(bench, control)?;
        for (((kernel, is_bound), theirs), running) in KERNELS.iter().zip(theirs).zip(&running) {
            // In the program nothing makes caches cold.
            let running = match cache {
                "warm" => format!("{running:.2}"),
                _ => "–".into(),
            };
            let launch = of(&all, kernel);
            let words = format!("run {launch} --runs 50 --cache {cache} --json");
            let (right, said) = bench.start(&words)?;
            let times = &report(&said)["times"];
            let number = |name: &str| times[name].as_f64().unwrap_or(f64::NAN);
            let ours = number("median_us");
            let percent = 100.0 * (ours / theirs - 1.0);
            let is_near = percent.abs() <= NEAR_PERCENT;
            wrong += usize::from(!right) + usize::from(*is_bound && !is_near);
            let row = format!(
                "| `{kernel}` | {cache} | {theirs:.2} | {running} | {ours:.2} | {:.2} | {percent:+.1} % |\n",
                number("spread_us")
            );
            eprint!("{row}");
            text += &row;
        }
    }
    Ok((text, wrong))
}

fn seconds(mut command: impl FnMut() -> Command, times: usize) -> Result<Option<f64>> {
    let mut all = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        let (right, said) = start(&mut command())?;
        if !right {
            eprintln!("{said}");
            return Ok(None);
        }
        all.push(began.elapsed().as_secs_f64());
    }
    Ok(Some(median(all)))
}

/// A 2 GB launch takes at most twice the time of reading and copying its files.
pub(super) fn gigabytes(bench: &Bench) -> Found {
    nvcc(bench, "gigabytes.cu", "gigabytes", &[])?;
    let words = "record -o gigabytes-1 --kernel change --max-bytes 8000000000 -- ./gigabytes 2";
    bench.output(words)?;
    let (names, bytes) = launches(bench, "gigabytes-1")?;
    let launch = names.first().cloned().unwrap_or_default();
    let copy = || {
        let mut command = Command::new("./gigabytes");
        command.current_dir(bench.work.path()).arg("gigabytes-1");
        command
    };
    let run = |words: &'static str| {
        let launch = launch.clone();
        move || bench.gpureplay(&format!("run {launch} {words}"))
    };
    let least = seconds(copy, 3)?.unwrap_or(f64::NAN);
    let once = seconds(run(""), 3)?.unwrap_or(f64::NAN);
    let ten = seconds(run("--runs 10"), 1)?.unwrap_or(f64::NAN);
    let ratio = once / least;
    let wrong = usize::from(!(ratio <= 2.0 && ten.is_finite()));
    let text = format!(
        "| A launch of {bytes:.0} MB of random words, half of them changed | Seconds |\n| --- | --: |\n\
         | its files read and copied to the GPU, by a program of a few lines | {least:.2} |\n\
         | one replay, verified | {once:.2} ({ratio:.2} times as long) |\n\
         | ten timed runs and one that is verified | {ten:.2} |\n"
    );
    eprint!("{text}");
    Ok((text, wrong))
}
