// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: many verified ways to run a launch.

mod learn;
mod search;
mod space;
mod together;
mod tries;
mod triton;
mod winner;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use gpureplay_cuda_launch::recording::sm;
use serde::{Deserialize, Serialize};

use crate::command::attempt;
use crate::command::failure::{Failure, Outcome, written};
use crate::command::report::note;
use crate::command::run::{Checking, read_image};
use crate::command::target::Target;
use search::Search;
use space::Candidate;
#[cfg(feature = "schema")]
pub(crate) use together::TogetherReport;
use together::{Part, Way};
use tries::{Subject, Tries, Try};
use words::{AllBounds, Budget, List, Sampler};

/// Find better sizes, registers or images for a launch
///
/// Replays the launch with each, verifies and times it.
#[derive(Args)]
pub(crate) struct Tune {
    /// The launch; with --kernel, the recording.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// Tune all launches of this kernel together, and find what is right for all and fastest in sum.
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["table", "resume"])]
    kernel: Option<String>,
    #[arg(long, hide = true)]
    part: Option<Part>,
    /// Blocks to try, separated by spaces or semicolons: "64 16,16 32,8", or "32..1024", doubled each time.
    #[arg(long, value_name = "BLOCKS")]
    blocks: Option<List>,
    /// Grids to try with each block, written as blocks are; "132..1056:132" counts by 132.
    #[arg(long, value_name = "GRIDS", conflicts_with = "keep_grid")]
    grids: Option<List>,
    /// Keep the recorded grid; else as many blocks in each dimension as keep the number of threads.
    #[arg(long)]
    keep_grid: bool,
    /// Registers of a thread, at most, to try; 0 is the image as it is.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [0])]
    registers: Vec<u32>,
    /// Launch bounds to try: threads of a block at most, and blocks of a multiprocessor at least: "0 256 256,4". 0 leaves them.
    #[arg(long, value_name = "BOUNDS", default_value = "0")]
    bounds: AllBounds,
    /// Levels of optimisation to try; -1 is the compiler's own.
    #[arg(long, value_name = "LEVEL,…", value_delimiter = ',', allow_hyphen_values = true, default_values_t = [-1], value_parser = clap::value_parser!(i32).range(-1..=4))]
    optimisation: Vec<i32>,
    /// Carve-outs of shared memory to try, in percent of what it shares with the first-level cache; -1 is as recorded.
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', allow_hyphen_values = true, default_values_t = [-1], value_parser = clap::value_parser!(i32).range(-1..=100))]
    carveout: Vec<i32>,
    /// Other images to try.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Also try kernels of the same name in Triton's cache: each with its own warps, stages and shared memory, and with the recorded
    /// grid or those of --grids.
    #[arg(long)]
    triton: bool,
    /// In which order candidates are tried: all, random:SEED, or learn:SEED, which tries what is like the best so far.
    #[arg(long, value_name = "SAMPLER", default_value = "all")]
    sampler: Sampler,
    /// End after N tries, or begin none after N seconds (60s).
    #[arg(long, value_name = "TRIES|SECONDS")]
    budget: Option<Budget>,
    /// Keep each try in this file as a line of JSON, and try nothing again that it holds.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Timed runs of each candidate.
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where the table goes.
    #[arg(long, alias = "csv", value_name = "FILE.csv")]
    table: Option<PathBuf>,
    /// Add the best one to this file, and its image to the folder `images` beside it, for `replace --tuned`.
    #[arg(long, value_name = "FILE.toml")]
    tuned: Option<PathBuf>,
    /// Print one JSON object at the end instead of a line for each try.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    checking: Checking,
}

/// What a search found, for `--json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct TuneReport<'a> {
    kernel: &'a str,
    gpu: &'a str,
    /// How many candidates the lists make together with the recorded one.
    candidates: usize,
    /// The recorded launch first, then in the order of the search.
    tries: &'a [Try],
    /// Nothing if none is faster than the recorded launch by more than both spread.
    best: Option<&'a Try>,
    /// How many times as fast the best one is.
    speedup: Option<f64>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Handed {
    folder: Option<PathBuf>,
    tries: u64,
    time: Duration,
}

impl Tune {
    fn is_json(&self) -> bool {
        self.json || self.part.is_some()
    }

    /// Path for winners; for several launches, only once settled.
    fn tuned(&self) -> Option<&PathBuf> {
        let is_open = self.part.as_ref().is_some_and(|part| !part.is_settled);
        self.tuned.as_ref().filter(|_| !is_open)
    }

    fn ways(&self) -> Option<&[Way]> {
        self.part.as_ref()?.ways.as_deref()
    }

    fn is_asked_for(&self, candidate: &Candidate) -> bool {
        let way = || Way::of(candidate, self.grids.is_some());
        self.ways().is_none_or(|ways| ways.contains(&way()))
    }

    pub(crate) fn execute(&self) -> Outcome {
        let mut target = self.target.clone();
        match (&self.part, &self.kernel) {
            (Some(part), _) => target.number = Some(part.number),
            (None, Some(kernel)) => return together::run(self, kernel),
            (None, None) => {}
        }
        let began = Instant::now();
        let mut images = Vec::new();
        for path in &self.image {
            if path.as_os_str() == Candidate::RECORDED {
                return Err(Failure::Usage(
                    "--image recorded: so the table names the recorded image; say ./recorded"
                        .into(),
                ));
            }
            images.push((path.display().to_string(), read_image(path)?));
        }
        let mut session = self.checking.session(&target)?;
        let mut own = BTreeMap::new();
        if self.triton {
            let capability = sm(session.gpu().info().capability);
            for (path, how) in triton::images(&session.launch().kernel, capability) {
                let name = path.display().to_string();
                images.push((name.clone(), read_image(&path)?));
                own.insert(name, how);
            }
            note!("{} kernels of this name are in Triton's cache", own.len());
        }
        let Some(mask) = self.checking.mask(&mut session)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut handed: Handed = attempt::handed_on()?.unwrap_or_default();
        let part = self.part.as_ref().map(|part| &part.tries);
        let path = match (part.or(self.resume.as_ref()), &handed.folder) {
            (Some(path), _) => path.clone(),
            (None, Some(folder)) => folder.join("tries"),
            (None, None) => {
                let folder = attempt::private_folder("tune")?.keep();
                handed.folder.insert(folder).join("tries")
            }
        };
        let folder = handed.folder.clone();
        let checking = self.checking.words();
        let subject = Subject::new(session.launch(), checking, session.gpu().info(), &images)?;
        let outcome = Tries::open(&path, &subject).and_then(|tries| {
            let search = Search {
                options: self,
                session,
                images,
                own,
                mask,
                evidence: None,
                tries,
                handed,
                began,
            };
            search.run()
        });
        if let Some(folder) = folder {
            std::fs::remove_dir_all(&folder).map_err(written(&folder))?;
        }
        outcome
    }
}
