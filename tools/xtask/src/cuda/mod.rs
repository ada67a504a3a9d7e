// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask cuda device-test`: records and replays on a GPU.

mod crew;
mod embedded;
mod graphs;
mod hostile;
mod inputs;
mod inside;
mod machines;
mod measure;
mod networks;
mod programs;
mod refused;
mod replays;
mod runs;
mod seeds;
mod times;
mod tuning;
mod watched;

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use clap::{Args, Subcommand, ValueEnum as _};

use gpureplay_task::{
    measured::{self, Table},
    output,
};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

/// Recording and replaying CUDA kernels on this machine's GPU.
#[derive(Args)]
pub(crate) struct Cuda {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    DeviceTest(DeviceTest),
}

impl Cuda {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let Task::DeviceTest(test) = self.task;
        test.execute()
    }
}

/// Builds programs with nvcc, records, replays and measures them, into measurements/cuda-PART.json.
///
/// Needs a GPU and nvcc; programs whose Python packages are missing are named. Parts can run one by one, on a machine
/// that is lent for minutes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
struct DeviceTest {
    /// What to run; everything without it.
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// Begin no part after so many seconds; those that are left are named, and the command fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    seconds: u64,
    /// `gpureplay-cuda`; the library to preload lies beside it.
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// The folder of our programs.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// HeCBench's folder `src`; without it, its programs are left out.
    #[arg(long, value_name = "DIR")]
    hecbench: Option<PathBuf>,
    /// An OpenMP program with offload to this GPU, built elsewhere from openmp.c; may be given again; else gcc and clang are tried.
    #[arg(long, value_name = "FILE")]
    openmp: Vec<PathBuf>,
    /// A folder of recordings of the suite that another machine made, for the part elsewhere.
    #[arg(long, value_name = "DIR")]
    recording: Option<PathBuf>,
    /// Replays in fresh processes.
    #[arg(long, default_value_t = 500)]
    fresh: usize,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask cuda device-test
      everything, about twenty minutes
  cargo xtask cuda device-test programs fresh --seconds 500
      two parts
  cargo xtask cuda device-test hecbench --hecbench HeCBench/src
      programs that this code was not written against";

/// A part of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Our programs: every launch recorded, replayed, verified.
    Programs,
    /// The same with OpenMP programs.
    Openmp,
    /// What cannot be recorded is named, and the program runs on.
    Refused,
    /// Recordings that somebody changed: each replay ends, with words.
    Hostile,
    /// Graphs: conditional nodes are refused by name, times by events leave nothing out.
    Graphs,
    /// The same with HeCBench's.
    Hecbench,
    /// Many replays, each in a fresh process.
    Fresh,
    /// The same with a recording of another machine (--recording).
    Elsewhere,
    /// A kernel's time in its program and alone; tuning.
    Nbody,
    /// Times of replays against Nsight Compute's, of kernels that memory bounds.
    Times,
    /// How long a replay of 2 GB takes.
    Gigabytes,
    /// Tuning of grids, of two dimensions and with samplers, and its winners in the program.
    Tuning,
    /// What recording and measuring cost launches.
    Cost,
    /// How fast memory is copied, and how little room it takes.
    Memory,
    /// Whole runs: recorded, replayed as one graph and one by one, with the recorded inputs and with others.
    Runs,
    /// Profilers on a replay.
    Tools,
    /// What probes count inside of kernels, against known counts and Nsight Compute's.
    Analyse,
    /// What a workbench says of kernels that do nothing, half, or other work.
    Workbench,
    /// Each feature of the tools that these commands replace.
    Seeds,
    /// Several processes and GPUs.
    Ranks,
}

struct Bench {
    command: PathBuf,
    programs: PathBuf,
    openmp: Vec<PathBuf>,
    work: tempfile::TempDir,
}

/// Each replay takes a context, and a copy of its memory.
const AT_A_TIME: usize = 12;

impl Bench {
    fn gpureplay(&self, words: &str) -> Command {
        let mut command = Command::new(&self.command);
        command
            .current_dir(self.work.path())
            .args(words.split_whitespace());
        command
    }

    fn start(&self, words: &str) -> Result<(bool, String)> {
        replays::start(&mut self.gpureplay(words))
    }

    fn output(&self, words: &str) -> Result<String> {
        output(&mut self.gpureplay(words))
    }
}

/// A table, and how much is wrong.
type Found = Result<(String, usize)>;

impl DeviceTest {
    fn execute(self) -> Result<ExitCode> {
        let path =
            |given: Option<PathBuf>, known: &str| given.unwrap_or_else(|| root().join(known));
        let absolute = |path: PathBuf| fs::canonicalize(&path).map_err(Error::io("find", path));
        let (began, limit) = (Instant::now(), Duration::from_secs(self.seconds));
        let bench = Bench {
            command: absolute(path(self.command, "target/release/gpureplay-cuda"))?,
            programs: absolute(path(self.programs, "cuda/programs"))?,
            openmp: self
                .openmp
                .into_iter()
                .map(absolute)
                .collect::<Result<_>>()?,
            work: files::temporary()?,
        };
        let Ok(doctor) = bench.output("doctor") else {
            println!("no GPU");
            return Ok(ExitCode::FAILURE);
        };
        let hecbench = self.hecbench.map(absolute).transpose()?;
        let recording = self.recording.map(absolute).transpose()?;
        let parts = if self.parts.is_empty() {
            Part::value_variants()
        } else {
            &self.parts
        };
        let (mut failed, mut left) = (false, Vec::new());
        for part in parts {
            let name = format!("{part:?}").to_lowercase();
            if began.elapsed() > limit {
                left.push(name);
                continue;
            }
            let begun = Instant::now();
            let result = match part {
                Part::Programs => replays::ours(&bench),
                Part::Openmp => replays::openmp(&bench),
                Part::Refused => refused::refused(&bench),
                Part::Hostile => hostile::hostile(&bench),
                Part::Graphs => graphs::graphs(&bench),
                Part::Hecbench => match &hecbench {
                    Some(folder) => replays::foreign(&bench, folder, began + limit),
                    None => Ok(("Not run: without --hecbench.\n".into(), 0)),
                },
                Part::Fresh => replays::fresh(&bench, self.fresh),
                Part::Elsewhere => match &recording {
                    Some(folder) => replays::elsewhere(&bench, folder, self.fresh),
                    None => Ok(("Not run: without --recording.\n".into(), 0)),
                },
                Part::Nbody => measure::nbody(&bench).map(|text| (text, 0)),
                Part::Times => times::against_ncu(&bench),
                Part::Gigabytes => times::gigabytes(&bench),
                Part::Tuning => tuning::tuning(&bench),
                Part::Cost => measure::overhead(&bench),
                Part::Memory => measure::memory(&bench).map(|text| (text, 0)),
                Part::Runs => runs::runs(&bench, hecbench.as_deref()),
                Part::Tools => machines::tools(&bench),
                Part::Analyse => inside::analyse(&bench),
                Part::Workbench => inside::workbench(&bench),
                Part::Seeds => seeds::seeds(&bench),
                Part::Ranks => machines::ranks(&bench),
            };
            // Results stay if another part fails.
            match result {
                Ok((text, wrong)) => {
                    let head = machine(&doctor, &name, begun.elapsed())?;
                    println!("{head}{text}");
                    let tables = Table::all_of(&(head + &text));
                    measured::keep(&format!("cuda-{name}"), &tables)?;
                    failed |= wrong > 0;
                }
                Err(error) => {
                    eprintln!("{name}: {error}");
                    failed = true;
                }
            }
        }
        if !left.is_empty() {
            println!("not run for lack of time: {}", left.join(", "));
        }
        Ok(ExitCode::from(u8::from(failed || !left.is_empty())))
    }
}

fn machine(doctor: &str, part: &str, took: Duration) -> Result<String> {
    let date = output(Command::new("date").arg("-I"))?;
    let query = ["--query-gpu=driver_version", "--format=csv,noheader"];
    let driver = output(Command::new("nvidia-smi").args(query))?;
    let of = |name: &str| {
        let line = doctor.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("unknown").trim().to_owned()
    };
    Ok(format!(
        "Measured on {} by `cargo xtask cuda device-test {part}` in {} s: {}, driver {} ({}).\n\n",
        date.trim(),
        took.as_secs(),
        of("GPU"),
        driver.lines().next().unwrap_or("unknown").trim(),
        of("driver")
    ))
}
