// SPDX-License-Identifier: MIT OR Apache-2.0
//! `record`, and programs with the library inside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;

use clap::Args;
use gpureplay_cuda_launch::recording::{Pick, Recording, RegionOf, Writer};
use gpureplay_tensors::Form;

use crate::command::failure::{Failure, Outcome, file, written};
use crate::command::report::note;
use crate::command::setting::set;
use crate::command::strict::{self, Strict};

/// The program and its arguments.
#[derive(Args)]
pub(crate) struct App {
    /// Kernels whose mangled names match this regular expression; all without it.
    #[arg(long, value_name = "REGEX")]
    kernel: Option<String>,
    /// Only in the process of this rank (of mpirun, srun or torchrun).
    #[arg(long)]
    rank: Option<u32>,
    /// The library to put into the program; else it is looked for beside this program.
    #[arg(
        long,
        value_name = "FILE",
        env = "GPUREPLAY_CUDA_PRELOAD",
        hide_env = true
    )]
    preload: Option<PathBuf>,
    /// Say at the end how many launches there were.
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "APP")]
    app: Vec<OsString>,
}

impl App {
    pub(crate) fn command(&self, mode: &str) -> Result<Command, Failure> {
        let preload = self.preload_path()?;
        if let Some(kernel) = &self.kernel {
            regex_lite::Regex::new(kernel)
                .map_err(|error| Failure::Usage(format!("--kernel {kernel:?}: {error}")))?;
        }
        let mut libraries = preload.into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        let mut command = Command::new(&self.app[0]);
        command.args(&self.app[1..]).env("LD_PRELOAD", libraries);
        let rank = self.rank.map(|rank| rank.to_string());
        set(&mut command, "MODE", Some(mode));
        set(&mut command, "KERNEL", self.kernel.as_ref());
        set(&mut command, "RANK", rank);
        set(&mut command, "VERBOSE", self.verbose.then_some("1"));
        Ok(command)
    }

    fn preload_path(&self) -> Result<PathBuf, Failure> {
        match &self.preload {
            Some(path) => path.canonicalize().map_err(file(path)),
            None => beside(),
        }
    }

    pub(crate) fn run(&self, mut command: Command) -> Outcome {
        let status = command.status().map_err(file(Path::new(&self.app[0])))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        if code.is_none() {
            note!("{} ended with {status}", Path::new(&self.app[0]).display());
        }
        Ok(ExitCode::from(code.unwrap_or(5)))
    }
}

pub(crate) fn beside() -> Result<PathBuf, Failure> {
    const NAME: &str = "libgpureplay_cuda_preload.so";
    let program = std::env::current_exe().map_err(file(Path::new(NAME)))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places =
        ["", "../lib", "../lib/gpureplay", "deps"].map(|place| folder.join(place).join(NAME));
    let found = places.into_iter().find_map(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "{NAME} is not next to {}: build it (cargo build -p gpureplay-cuda-preload), or say --preload FILE",
            program.display()
        ))
    })
}

/// Record launches, or a region of a program
///
/// A launch is kept with image, parameters, and memory before and after; with --run, a whole region of the program's time.
#[derive(Args)]
pub(crate) struct Record {
    /// Which launches of each kernel: first, a number from 0, random:N (one in N), or all.
    #[arg(long, default_value = "first", value_parser = checked::<Pick>)]
    pick: String,
    /// Launches of each kernel, at most.
    #[arg(long, value_name = "N")]
    max_per_kernel: Option<u64>,
    /// Memory of one launch, in bytes, at most; larger ones are not recorded.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Save all memory, not only what parameters and memory point at.
    #[arg(long)]
    all_memory: bool,
    /// Where the program's device memory comes from: the driver (native), or our own arena at addresses that are free in any
    /// process that replays.
    #[arg(long, default_value = "native", value_parser = ["native", "arena"])]
    alloc: String,
    /// Record a whole run: profiler (from cudaProfilerStart to cudaProfilerStop), turn (of a loop, up to a result), nvtx:NAME (a
    /// range of NVTX), or launches=FIRST..END (by number). Copies around the launches belong to it.
    #[arg(long, value_name = "REGION", num_args = 0..=1, default_missing_value = "profiler", require_equals = true, value_parser = checked::<RegionOf>,
        conflicts_with_all = ["pick", "max_per_kernel", "alloc", "kernel"])]
    run: Option<String>,
    /// As --run=REGION
    #[arg(long, value_name = "REGION", value_parser = checked::<RegionOf>, conflicts_with_all = ["run", "pick", "max_per_kernel", "alloc", "kernel"])]
    region: Option<String>,
    /// With --run: another name for an input or output than the one by its order, such as in0=image. May be given again.
    #[arg(long, value_name = "OLD=NEW", value_parser = renamed)]
    name: Vec<String>,
    /// Type and shape of an input or output of a whole run; by either name, such as image=f32[1,3,224,224]. May be given again.
    #[arg(long, value_name = "NAME=TYPE[N,…]", value_parser = formed)]
    tensor: Vec<(String, Form)>,
    /// With --run: after a second turn of the same work, which is compared with the first, keep inputs and outputs of N turns; the
    /// recording must reproduce them.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=1000))]
    verify_inputs: u64,
    /// With --run: a file of weights. Its tensors are found in memory by their bytes; the recording names them and does not hold them.
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
    /// Seconds that a snapshot waits for the GPU; a kernel that takes longer is not recorded, since it may wait for the host.
    #[arg(long, alias = "time-limit", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Another recording on the same file system: chunks of memory that it holds are linked, not written again.
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    #[command(flatten)]
    strict: Strict,
    /// The folder of the recording; launches are added to those that it holds.
    #[arg(long, short, default_value = "cuda-recording", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    app: App,
}

fn checked<T: FromStr<Err = &'static str>>(text: &str) -> Result<String, &'static str> {
    text.parse::<T>().map(|_| text.to_owned())
}

fn renamed(text: &str) -> Result<String, String> {
    let fits = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(fits)
    };
    match text.split_once('=') {
        Some((old, new)) if fits(old) && fits(new) => Ok(text.to_owned()),
        _ => Err("is not OLD=NEW, with names of letters, digits, '_', '-' and '.'".to_owned()),
    }
}

fn formed(text: &str) -> Result<(String, Form), String> {
    let (name, form) = text
        .split_once('=')
        .ok_or("is not NAME=TYPE[N,…]".to_owned())?;
    Ok((name.to_owned(), form.parse()?))
}

impl Record {
    fn whole(&self) -> Result<Option<&String>, Failure> {
        let region = self.run.as_ref().or(self.region.as_ref());
        for (given, option) in [
            (!self.name.is_empty(), "--name"),
            (!self.tensor.is_empty(), "--tensor"),
            (self.weights.is_some(), "--weights"),
        ] {
            if given && region.is_none() {
                return Err(Failure::Usage(format!(
                    "{option} is for a whole run: --run"
                )));
            }
        }
        Ok(region)
    }

    /// Removes turns that did not come again, if others did.
    fn remove_single(&self, before: &[u32]) -> Result<(), Failure> {
        let recording = Recording::open(&self.output)?;
        let mut new = recording.runs()?;
        new.retain(|number| !before.contains(number));
        let comes_again = |number: &u32| matches!(recording.second(*number), Ok(Some(_)));
        if !new.iter().any(comes_again) {
            return Ok(());
        }
        for number in new.iter().filter(|number| !comes_again(number)) {
            let path = self.output.join("runs").join(format!("{number}.toml"));
            std::fs::remove_file(&path).map_err(written(&path))?;
        }
        Ok(recording.sweep()?)
    }

    fn describe(&self) -> Result<(), Failure> {
        if self.tensor.is_empty() {
            return Ok(());
        }
        let recording = Recording::open(&self.output)?;
        let renamed = |name: &str| {
            let mut names = self.name.iter().filter_map(|name| name.split_once('='));
            let new = names.find(|(old, _)| *old == name);
            new.map_or(name, |(_, new)| new).to_owned()
        };
        for number in recording.runs()? {
            let mut run = recording.run(number)?;
            for (name, form) in &self.tensor {
                let name = renamed(name);
                let mut ports = run.inputs.iter_mut().chain(&mut run.outputs);
                match ports.find(|port| port.name == name) {
                    Some(port) if form.bytes() == Some(port.size) => {
                        port.form = Some(form.to_string());
                    }
                    Some(port) => note!(
                        "run {number}: {name} has {} bytes; {form} has another size",
                        port.size
                    ),
                    None => note!("run {number}: no input or output is called {name}"),
                }
            }
            Writer::create(&self.output)?.replace_run(number, &run)?;
        }
        Ok(())
    }

    pub(crate) fn execute(&self) -> Outcome {
        let whole = self.whole()?;
        let mut command = self.app.command("record")?;
        Writer::create(&self.output)?;
        let before = Recording::open(&self.output)?.runs()?;
        let output = self.output.canonicalize().map_err(file(&self.output))?;
        let share = self.share.as_deref().map(|share| {
            Recording::open(share)?;
            share.canonicalize().map_err(file(share))
        });
        set(&mut command, "OUTPUT", Some(output));
        set(&mut command, "SHARE", share.transpose()?);
        let alloc = whole.map_or(self.alloc.as_str(), |_| "arena");
        let names = (!self.name.is_empty()).then(|| self.name.join(","));
        for (name, value) in [
            ("PICK", Some(self.pick.clone())),
            ("TIME_LIMIT", Some(self.timeout.to_string())),
            ("ALLOC", Some(alloc.to_owned())),
            ("MAX_PER_KERNEL", self.max_per_kernel.map(|n| n.to_string())),
            ("MAX_BYTES", self.max_bytes.map(|n| n.to_string())),
            ("RUN", whole.cloned()),
            ("LATER_TURNS", Some(self.verify_inputs.to_string())),
            ("NAMES", names),
            ("ALL_MEMORY", self.all_memory.then(|| "1".to_owned())),
            ("CUPTI", None),
        ] {
            set(&mut command, name, value);
        }
        if whole.is_some() {
            // The library is NVTX's injection, too.
            command.env("NVTX_INJECTION64_PATH", self.app.preload_path()?);
        }
        let counted = self.strict.prepare(&mut command)?;
        let code = self.app.run(command)?;
        let ended = strict::conclude(counted.as_ref(), code)?;
        if whole.is_some() {
            if whole.is_some_and(|region| region == "turn") {
                self.remove_single(&before)?;
            }
            self.describe()?;
            // First: known weights are not looked at as memory.
            let mut weights = self.weights.as_deref();
            if let Some(path) = weights
                && !crate::command::weights::refer(&self.output, path)?
            {
                weights = None;
            }
            crate::command::check::after_recording(&self.output, weights);
        }
        let recording = Recording::open(&self.output)?;
        if recording.numbers()?.is_empty() && recording.runs()?.is_empty() {
            note!(
                "{}: nothing is recorded; a program that uses no CUDA has nothing to record here",
                self.output.display()
            );
        }
        Ok(ended)
    }
}
