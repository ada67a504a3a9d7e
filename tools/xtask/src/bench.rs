// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask bench model`: the model beside pocl.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Args, Subcommand};

use gpureplay_task::{output, target};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

/// Benchmarks.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Model(Model),
}

/// Compares the GPU model with pocl, Debian's OpenCL for the CPU.
///
/// The model runs what Mesa compiled of mali/shader/bench/kernels.cl for Mali-G52, pocl compiles the source. Each
/// round runs both on one thread and on two; the shortest time counts. Results are compared with double precision.
/// GPUREPLAY_VECTORS=avx2 (or portable) measures the model as on lesser hosts.
#[derive(Args)]
#[command(
    after_help = "Needs pocl-opencl-icd and ocl-icd-opencl-dev; installs them with apt where it may.\n\
                        Examples:\n  cargo xtask bench model --rounds 5\n  \
                        cargo xtask bench model --against ../before/target/release/examples/bench"
)]
struct Model {
    /// Rounds; more help on a busy machine.
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: u32,
    /// Times that each kernel runs in a round.
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: u32,
    /// Compare with the example `bench` that another tree built, in turns on one thread, instead of pocl.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
}

const PACKAGES: [&str; 2] = ["pocl-opencl-icd", "ocl-icd-opencl-dev"];

/// Relative to the reference or to 1.
const TOLERANCE: f64 = 1e-5;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Time {
    seconds: f64,
    busy: f64,
    error: f64,
    lane_operations: f64,
}

impl Bench {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        match self.what {
            What::Model(model) => model.execute(),
        }
    }
}

impl Model {
    fn pairs(&self, old: &Path) -> Result<ExitCode> {
        let new = build_model(&root())?;
        let mut best: [Vec<(String, Time)>; 2] = Default::default();
        for round in 0..self.rounds.max(1) as usize {
            for at in [round % 2, 1 - round % 2] {
                let mut command = Command::new([old, &new][at]);
                command.args(["1", &self.runs.to_string()]);
                merge(&mut best[at], parse(&output(&mut command)?)?);
            }
        }
        println!(
            "{:12} {:>14} {:>14} {:>6}",
            "kernel", "its ms", "this tree's", "ratio"
        );
        let [old, new] = best;
        for ((kernel, old), (_, new)) in old.iter().zip(&new) {
            let [old, new] = [old.busy, new.busy];
            println!(
                "{kernel:12} {:14.2} {:14.2} {:6.3}",
                old * 1e3,
                new * 1e3,
                new / old
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn execute(self) -> Result<ExitCode> {
        if let Some(old) = &self.against {
            return self.pairs(old);
        }
        let top = root();
        let sources = top.join("mali/shader/bench");
        let pocl = build_pocl(&top, &sources)?;
        let model = build_model(&top)?;
        let kernels = sources.join("kernels.cl").display().to_string();
        let runs = self.runs.to_string();
        let programs = [("pocl", 2), ("pocl", 1), ("model", 1), ("model", 2)];
        let mut best: [Vec<(String, Time)>; 4] = Default::default();
        for _ in 0..self.rounds.max(1) {
            for (best, (program, threads)) in best.iter_mut().zip(programs) {
                let threads = threads.to_string();
                let mut command;
                if program == "pocl" {
                    command = Command::new(&pocl);
                    command.env("POCL_MAX_PTHREAD_COUNT", threads);
                    command.args([&kernels, &runs]);
                } else {
                    command = Command::new(&model);
                    command.args([&threads, &runs]);
                }
                merge(best, parse(&output(&mut command)?)?);
            }
        }
        let mut wrong = 0;
        println!(
            "{:12} {:8} {:>10} {:>12} {:>10} {:>12} {:>14} {:>9}",
            "kernel",
            "on",
            "ms",
            "processor ms",
            "x pocl",
            "x processor",
            "G lane ops/s/c",
            "error"
        );
        for row in 0..best[0].len() {
            let reference = best[0][row].1;
            for ((program, threads), times) in programs.iter().zip(&best) {
                let name = format!("{program} {threads}");
                let Some((kernel, time)) = times.get(row) else {
                    continue;
                };
                wrong += u32::from(time.error.is_nan() || time.error > TOLERANCE);
                let rate = match time.lane_operations {
                    0.0 => "-".into(),
                    operations => format!("{:.2}", operations / time.busy / 1e9),
                };
                println!(
                    "{kernel:12} {name:8} {:10.1} {:12.1} {:10.2} {:12.2} {rate:>14} {:9.1e}",
                    time.seconds * 1e3,
                    time.busy * 1e3,
                    time.seconds / reference.seconds,
                    time.busy / reference.busy,
                    time.error
                );
            }
            let scaling = |one: usize, two: usize| {
                let (one, two) = (best[one].get(row)?.1, best[two].get(row)?.1);
                Some((one.seconds / two.seconds, 2.0 * one.busy / two.busy))
            };
            for (program, scaling) in [("pocl", scaling(1, 0)), ("model", scaling(2, 3))] {
                if let Some((time, busy)) = scaling {
                    println!(
                        "{:12} {program}: two threads are {time:.2} times as fast as one; {busy:.2} by processor time",
                        ""
                    );
                }
            }
        }
        if wrong > 0 {
            eprintln!("error: {wrong} results differ from their references");
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn build_pocl(top: &Path, sources: &Path) -> Result<PathBuf> {
    let installed = Path::new("/etc/OpenCL/vendors/pocl.icd").exists()
        && Path::new("/usr/include/CL/cl.h").exists();
    if !installed {
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "--no-install-recommends"]);
        install.args(PACKAGES);
        if output(&mut install).is_err() {
            return Err(Error::missing(
                "pocl",
                format!("apt install {}", PACKAGES.join(" ")),
            ));
        }
    }
    let directory = top.join("target/bench");
    files::create_dir(&directory)?;
    let program = directory.join("opencl");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program);
    compiler.arg(sources.join("opencl.c"));
    compiler.args(["-lOpenCL", "-lm"]);
    output(&mut compiler)?;
    Ok(program)
}

fn build_model(top: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(top);
    cargo.args([
        "build",
        "--release",
        "--quiet",
        "-p",
        "mali-shader",
        "--example",
        "bench",
    ]);
    output(&mut cargo)?;
    Ok(target(top).join("release/examples/bench"))
}

/// Name, seconds, processor seconds, error, perhaps lane operations.
fn parse(text: &str) -> Result<Vec<(String, Time)>> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let time = Time {
            seconds: number()?,
            busy: number()?,
            error: number()?,
            lane_operations: number().unwrap_or(0.0),
        };
        Some((name, time))
    };
    text.lines()
        .map(|text| {
            line(text).ok_or_else(|| Error::Output {
                program: "the benchmark",
                line: text.into(),
            })
        })
        .collect()
}

fn merge(best: &mut Vec<(String, Time)>, new: Vec<(String, Time)>) {
    let known: BTreeMap<String, usize> = best
        .iter()
        .enumerate()
        .map(|(index, (name, _))| (name.clone(), index))
        .collect();
    for (name, time) in new {
        match known.get(&name) {
            Some(&index) => {
                let old = &mut best[index].1;
                old.seconds = old.seconds.min(time.seconds);
                old.busy = old.busy.min(time.busy);
                if time.error.is_nan() || time.error > old.error {
                    old.error = time.error;
                }
            }
            None => best.push((name, time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_time_and_the_worst_error_are_kept() {
        let mut best = parse("add 2.0 3.0 1e-7 100\n").unwrap_or_default();
        merge(
            &mut best,
            parse("add 1.5 3.5 2e-7 100\n").unwrap_or_default(),
        );
        let want = Time {
            seconds: 1.5,
            busy: 3.0,
            error: 2e-7,
            lane_operations: 100.0,
        };
        assert_eq!(best, [("add".to_owned(), want)]);
        assert!(parse("add 1.0\n").is_err());
    }
}
