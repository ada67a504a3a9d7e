// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask cuda device-test`: records and replays real programs on a real GPU, and writes what came out into docs/cuda.md.

mod measure;
mod programs;
mod replays;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Args, Subcommand};

use crate::{
    error::{Error, Result},
    repository::{output, root},
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
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let Task::DeviceTest(test) = self.task;
        test.execute()
    }
}

/// Builds programs with nvcc, records and replays them, measures, and writes the tables of docs/cuda.md.
///
/// Needs a GPU and nvcc; programs of Python packages that are missing are left out, and named.
#[derive(Args)]
struct DeviceTest {
    /// `gpureplay-cuda`; the library to preload lies beside it.
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// The folder of our programs.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// HeCBench's folder `src`; without it, its programs are left out.
    #[arg(long, value_name = "DIR")]
    hecbench: Option<PathBuf>,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Replays in fresh processes.
    #[arg(long, default_value_t = 500)]
    fresh: usize,
}

/// What all parts of the test need.
struct Bench {
    command: PathBuf,
    programs: PathBuf,
    work: tempfile::TempDir,
}

/// Compilers and replays at a time: each replay has a context and a copy of its memory on the GPU.
const AT_A_TIME: usize = 10;

/// The tables lie between these lines of the page.
const BEGIN: &str = "<!-- device-test begins -->";
const END: &str = "<!-- device-test ends -->";

impl Bench {
    /// `gpureplay-cuda` with these words.
    fn gpureplay(&self, words: &str) -> Command {
        let mut command = Command::new(&self.command);
        command
            .current_dir(self.work.path())
            .args(words.split_whitespace());
        command
    }
}

impl DeviceTest {
    fn execute(self) -> Result<ExitCode> {
        let path =
            |given: Option<PathBuf>, known: &str| given.unwrap_or_else(|| root().join(known));
        let absolute = |path: PathBuf| {
            fs::canonicalize(&path).map_err(|source| Error::Io {
                what: "find",
                path,
                source,
            })
        };
        let bench = Bench {
            command: absolute(path(self.command, "target/release/gpureplay-cuda"))?,
            programs: absolute(path(self.programs, "cuda/programs"))?,
            work: tempfile::tempdir().map_err(|source| Error::Io {
                what: "create",
                path: std::env::temp_dir(),
                source,
            })?,
        };
        let page = absolute(path(self.page, "docs/cuda.md"))?;
        let Ok(doctor) = output(&mut bench.gpureplay("doctor")) else {
            println!("no GPU");
            return Ok(ExitCode::FAILURE);
        };
        let mut text = machine(&doctor)?;
        let hecbench = self.hecbench.map(absolute).transpose()?;
        programs::build(&bench)?;
        let (table, wrong) = replays::table(&bench, hecbench.as_deref())?;
        text += &table;
        text += &replays::fresh(&bench, self.fresh)?;
        text += &measure::all(&bench)?;
        println!("{text}");
        write(&page, &text)?;
        Ok(ExitCode::from(u8::from(wrong > 0)))
    }
}

/// When and on what.
fn machine(doctor: &str) -> Result<String> {
    let date = output(Command::new("date").arg("-I"))?;
    let query = ["--query-gpu=driver_version", "--format=csv,noheader"];
    let driver = output(Command::new("nvidia-smi").args(query))?;
    let of = |name: &str| {
        let line = doctor.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or("unknown").trim().to_owned()
    };
    Ok(format!(
        "Measured on {} by `cargo xtask cuda device-test`: {}, driver {} ({}).\n\n",
        date.trim(),
        of("GPU"),
        driver.trim(),
        of("driver")
    ))
}

/// Puts the tables between the marks of the page.
fn write(page: &Path, tables: &str) -> Result<()> {
    let failed = |what| {
        move |source| Error::Io {
            what,
            path: page.to_owned(),
            source,
        }
    };
    let old = fs::read_to_string(page).map_err(failed("read"))?;
    let parts = old
        .split_once(BEGIN)
        .and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let Some((head, tail)) = parts else {
        return Err(Error::Missing {
            what: format!("{BEGIN} … {END} in {}", page.display()),
            remedy: "put both lines where the tables should be".into(),
        });
    };
    fs::write(
        page,
        format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", tables.trim()),
    )
    .map_err(failed("write"))
}
