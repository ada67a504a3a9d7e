// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run`: replays, verifies and times.

mod evidence;
mod report;
mod save;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::{Comparison, Element, Gpu, JitOptions, Mask, Session, Sizes, Times, Verdict};
use clap::Args;
use gpureplay_cuda_launch::image::MAX_IMAGE;
use gpureplay_cuda_launch::recording::MAX_BYTES;

use crate::command::attempt::{again, differences_elsewhere};
use crate::command::failure::{Failure, Outcome, read, written};
use crate::command::report::{note, say};
use crate::command::sign::Trust;
use crate::command::target::{Target, sizes};
use crate::command::whole::{Options, Whole};
pub(crate) use evidence::Evidence;
use report::Report;
#[cfg(feature = "schema")]
pub(crate) use report::RunReport;
pub(crate) use report::TimesReport;

/// How a replay is compared and bounded.
#[derive(Args)]
pub(crate) struct Checking {
    /// Relative error that is allowed; bits decide without it.
    #[arg(long, value_name = "ERROR", requires = "element", value_parser = tolerance)]
    tolerance: Option<f64>,
    /// What memory holds: f16, bf16, f32, f64 or i32.
    #[arg(
        long = "type",
        value_name = "TYPE",
        id = "element",
        requires = "tolerance"
    )]
    element: Option<Element>,
    /// Leave out words that differ between N runs of the recorded launch and one more.
    #[arg(long, value_name = "RUNS", default_value_t = 0)]
    mask: u32,
    /// Leave out words that differ between this process and N others that replay the recorded launch: addresses that a
    /// kernel leaves in memory.
    #[arg(long, value_name = "PROCESSES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    mask_processes: u32,
    /// Write the words that are not as recorded here, for another process.
    #[arg(long, value_name = "FILE", hide = true)]
    differences: Option<PathBuf>,
    /// Leave out the region that holds this address, such as 0x7f0000000000; may be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    ignore: Vec<u64>,
    /// Seconds that a kernel may take.
    #[arg(
        long,
        alias = "time-limit",
        value_name = "SECONDS",
        default_value_t = 60
    )]
    timeout: u64,
    /// Leave memory as it was recorded, even if it holds the results already.
    #[arg(long)]
    no_poison: bool,
    /// What the second-level cache holds before each timed run: what the run before and the restoring of memory left (warm), or
    /// other memory (cold).
    #[arg(long, value_name = "cold|warm", default_value = "warm", value_parser = ["cold", "warm"])]
    cache: String,
    #[arg(long, hide = true, conflicts_with = "cache")]
    cold: bool,
    /// Which GPU, by its ordinal.
    #[arg(long, default_value_t = 0)]
    gpu: i32,
    #[command(flatten)]
    trust: Trust,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let error: f64 = text.parse().map_err(|_| "is no number")?;
    if error.is_finite() && error >= 0.0 {
        Ok(error)
    } else {
        Err("is no error".to_owned())
    }
}

fn piece(text: &str) -> Result<(usize, PathBuf), String> {
    let (number, path) = text.split_once('=').ok_or("is no N=FILE")?;
    let number = number
        .parse()
        .map_err(|_| format!("{number:?} is no number of a piece of memory"))?;
    Ok((number, path.into()))
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or("does not begin with 0x")?;
    u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

impl Checking {
    fn is_cold(&self) -> bool {
        self.cold || self.cache == "cold"
    }

    pub(crate) fn cache(&self) -> &'static str {
        if self.is_cold() { "cold" } else { "warm" }
    }

    fn for_launches(&self) -> Option<&'static str> {
        [
            (self.tolerance.is_some(), "--tolerance"),
            (self.mask > 0, "--mask"),
            (self.mask_processes > 0, "--mask-processes"),
            (!self.ignore.is_empty(), "--ignore"),
            (self.no_poison, "--no-poison"),
            (self.is_cold(), "--cache cold"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }

    /// Tries of searches that differ in it do not mix.
    pub(crate) fn words(&self) -> String {
        let (tolerance, cache) = (self.comparison().tolerance, self.cache());
        let (masks, ignored) = ([self.mask, self.mask_processes], &self.ignore);
        format!("tolerance {tolerance:?}, masks {masks:?}, ignored {ignored:?}, cache {cache}")
    }

    pub(crate) fn comparison(&self) -> Comparison {
        Comparison {
            tolerance: self.element.zip(self.tolerance),
        }
    }

    /// Tries another process if addresses are taken.
    pub(crate) fn session(&self, target: &Target) -> Result<Session, Failure> {
        let recording = target.recording()?;
        let number = target.one(&recording)?;
        let launch = self.trust.launch(&recording, number)?;
        let gpu = Gpu::open(self.gpu)?;
        let mut session = Session::open(gpu, &recording, launch, Duration::from_secs(self.timeout))
            .map_err(again)?;
        let (recorded, here) = (&session.launch().device, session.gpu().info());
        if recorded.capability != here.capability {
            note!(
                "recorded on {} (sm_{}{}), replayed on {} (sm_{}{})",
                recorded.name,
                recorded.capability[0],
                recorded.capability[1],
                here.name,
                here.capability[0],
                here.capability[1]
            );
        }
        for address in &self.ignore {
            if !session.ignore(*address) {
                return Err(Failure::Usage(format!(
                    "--ignore {address:#x}: no region of the launch holds it"
                )));
            }
        }
        if self.is_cold() {
            session.make_cold()?;
        }
        Ok(session)
    }

    /// Finds evidence against results that are in memory already. No image may be loaded.
    pub(crate) fn evidence(
        &self,
        session: &mut Session,
        mask: &Mask,
    ) -> Result<Option<Evidence>, Failure> {
        if self.no_poison {
            return Ok(None);
        }
        let loaded = session.load(None, JitOptions::default())?;
        let evidence = match session.poison(&loaded, &self.comparison(), mask) {
            Ok(poison) if poison.is_empty() => session
                .reaction(&loaded, mask)
                .map(|reaction| reaction.map(Evidence::Reaction)),
            Ok(poison) => Ok(Some(Evidence::Poison(poison))),
            Err(error) => Err(error),
        };
        match evidence {
            Ok(evidence) => {
                session.unload(&loaded);
                Ok(evidence)
            }
            Err(error) if error.ends_the_context() => Err(Failure::Poison(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Loads the recorded image. `None` once `--differences` is written for another process.
    pub(crate) fn mask(&self, session: &mut Session) -> Result<Option<Mask>, Failure> {
        let mut mask = Mask::default();
        if self.mask == 0 && self.mask_processes == 0 && self.differences.is_none() {
            return Ok(Some(mask));
        }
        let loaded = session.load(None, JitOptions::default())?;
        if let Some(path) = &self.differences {
            let bytes = session.differences(&loaded)?.bytes();
            std::fs::write(path, bytes).map_err(written(path))?;
            return Ok(None);
        }
        if self.mask > 0 {
            mask = session.mask(&loaded, self.mask)?;
            note!(
                "{} words differ between {} runs of the recorded launch and are left out",
                mask.words(),
                self.mask.saturating_add(1)
            );
        }
        if self.mask_processes > 0 {
            let mut all = vec![session.differences(&loaded)?];
            for _ in 0..self.mask_processes {
                all.push(differences_elsewhere()?);
            }
            let others = session.mask_of_processes(&all)?;
            note!(
                "{} words differ between {} processes that replay the recorded launch and are left out",
                others.words(),
                all.len()
            );
            mask.add(others);
        }
        session.unload(&loaded);
        Ok(Some(mask))
    }
}

/// Other sizes of a launch than the recorded ones.
#[derive(Args)]
pub(crate) struct NewSizes {
    /// Threads of a block: x, x,y or x,y,z.
    #[arg(long, value_name = "X,Y,Z", value_parser = sizes)]
    block: Option<[u32; 3]>,
    /// Blocks: x, x,y or x,y,z.
    #[arg(long, value_name = "X,Y,Z", value_parser = sizes)]
    grid: Option<[u32; 3]>,
    /// With --block: as many blocks in each dimension as keep the number of threads.
    #[arg(long, requires = "block", conflicts_with = "grid")]
    keep_total: bool,
    /// Dynamic shared memory, in bytes.
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
}

impl NewSizes {
    pub(crate) fn apply(&self, recorded: Sizes) -> Sizes {
        let mut sizes = recorded;
        if let Some(block) = self.block {
            sizes = if self.keep_total {
                sizes.keep_total(block)
            } else {
                Sizes { block, ..sizes }
            };
        }
        sizes.grid = self.grid.unwrap_or(sizes.grid);
        sizes.shared = self.shared.unwrap_or(sizes.shared);
        sizes
    }
}

/// Replay a launch or a whole run, and compare
///
/// Of a launch all memory is compared, of a run its outputs.
#[derive(Args)]
pub(crate) struct Run {
    /// The launch, DIR#K, or the whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
    /// Timed runs before the one that is compared.
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 0)]
    runs: u32,
    #[command(flatten)]
    sizes: NewSizes,
    /// Another cubin, fatbin or PTX file with the same kernel.
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Compile the PTX with at most N registers per thread.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=255))]
    max_registers: Option<u32>,
    /// Compile the PTX at this level of optimisation.
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(0..=4))]
    optimisation: Option<u32>,
    /// Compile the PTX for at most N threads per block, instead of its launch bounds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_threads: Option<u32>,
    /// With --max-threads: compile so that a multiprocessor can hold N blocks.
    #[arg(long, value_name = "N", requires = "max_threads", conflicts_with = "max_registers", value_parser = clap::value_parser!(u32).range(1..=32))]
    min_blocks: Option<u32>,
    /// Print the first words that differ: where, as recorded, as found.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["json", "null"])]
    show: usize,
    /// Restore everything, launch nothing, and compare: this must not be right.
    #[arg(long, conflicts_with = "runs")]
    null: bool,
    /// Launch and time, and compare nothing.
    #[arg(long, conflicts_with_all = ["null", "show"])]
    no_verify: bool,
    /// Other bytes for a piece of memory, by its number in `memory.csv` or `launch.json`; may be given several times.
    #[arg(long, value_name = "N=FILE", requires = "no_verify", value_parser = piece)]
    memory: Vec<(usize, PathBuf)>,
    /// Write memory as the replay leaves it to this new folder, a file for each region and variable, with a table.
    #[arg(long, value_name = "DIR", conflicts_with = "null")]
    save_output: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    checking: Checking,
    #[command(flatten)]
    whole: Whole,
}

pub(crate) fn read_image(path: &Path) -> Result<Vec<u8>, Failure> {
    let image = read(path, MAX_IMAGE as u64)?;
    gpureplay_cuda_launch::image::check(&image).map_err(|source| Failure::Image {
        path: path.to_owned(),
        source,
    })?;
    Ok(image)
}

fn note_strays(session: &Session) {
    if let Some(strays) = session.strays() {
        note!("{strays}");
    }
}

impl Run {
    fn for_launches(&self) -> Option<&'static str> {
        [
            (self.sizes.block.is_some(), "--block"),
            (self.sizes.grid.is_some(), "--grid"),
            (self.sizes.shared.is_some(), "--shared"),
            (self.image.is_some(), "--image"),
            (self.max_registers.is_some(), "--max-registers"),
            (self.optimisation.is_some(), "--optimisation"),
            (self.max_threads.is_some(), "--max-threads"),
            (self.show > 0, "--show"),
            (self.null, "--null"),
            (self.no_verify, "--no-verify"),
            (self.save_output.is_some(), "--save-output"),
            (!self.memory.is_empty(), "--memory"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
        .or_else(|| self.checking.for_launches())
    }

    pub(crate) fn execute(&self) -> Outcome {
        let recording = self.target.recording()?;
        if let Some(number) = self.target.run(&recording)? {
            if let Some(option) = self.for_launches() {
                return Err(Failure::Usage(format!(
                    "{option} is for launches, not for a whole run"
                )));
            }
            let options = Options {
                gpu: self.checking.gpu,
                time_limit: self.checking.timeout,
                repetitions: self.runs,
                json: self.json,
            };
            let run = self.checking.trust.run(&recording, number)?;
            return self.whole.execute(&recording, (number, run), &options);
        }
        if let Some(option) = self.whole.given() {
            return Err(Failure::Usage(format!(
                "{option} is for a whole run, not for a launch"
            )));
        }
        let image = self.image.as_deref().map(read_image).transpose()?;
        let how = self.checking.comparison();
        let mut session = self.checking.session(&self.target)?;
        let Some(mask) = self.checking.mask(&mut session)? else {
            return Ok(ExitCode::SUCCESS);
        };
        for (number, path) in &self.memory {
            session.replace_memory(*number, read(path, MAX_BYTES)?)?;
        }
        let options = JitOptions {
            registers: self.max_registers,
            optimisation: self.optimisation,
            max_threads: self.max_threads,
            min_blocks: self.min_blocks,
        };
        let loaded = session.load(image.as_deref(), options)?;
        if session.rewritten() > 0 {
            note!(
                "{} pointers to the image's variables rewritten",
                session.rewritten()
            );
        }
        let sizes = self.sizes.apply(session.sizes());
        let mut report = Report {
            kernel: session.launch().kernel.clone(),
            sizes,
            registers: loaded.limits().registers,
            times: Times::default(),
            cache: self.checking.cache(),
            is_null: self.null,
            verdict: None,
            evidence: None,
        };
        if self.null {
            let verdict = session.null(&loaded, &how, &mask)?;
            report.verdict = Some(verdict);
            report.say(self.json)?;
            return Ok(ExitCode::from(u8::from(!verdict.is_right())));
        }
        let timed = session.time(&loaded, &sizes, self.runs);
        let ran = timed.and_then(|times| {
            report.times = times;
            session.launch_restored(&loaded, &sizes)
        });
        if let Err(error) = ran {
            if error.is_illegal_address() {
                note_strays(&session);
                note!(
                    "memory that the kernel reaches by computed addresses is recorded with --all-memory; compute-sanitizer on this command says where it reads"
                );
            }
            return Err(error.into());
        }
        if let Some(folder) = &self.save_output {
            save::save(folder, &session, &loaded)?;
        }
        if self.no_verify {
            report.say(self.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut verdict = session.compare(&loaded, &how, &mask)?;
        let differing = if self.show > 0 {
            session.differing(&loaded, self.show)?
        } else {
            Vec::new()
        };
        if verdict == Verdict::Inconclusive {
            session.unload(&loaded);
            report.evidence = match self.checking.evidence(&mut session, &mask) {
                Ok(evidence) => evidence,
                Err(Failure::Poison(error)) => {
                    note!("with memory changed before the launch: {error}");
                    None
                }
                Err(error) => return Err(error),
            };
            if let Some(evidence) = &report.evidence {
                let loaded = session.load(image.as_deref(), options)?;
                verdict = evidence.run(&session, &loaded, &sizes, &how, &mask)?;
            }
        }
        report.verdict = Some(verdict);
        report.say(self.json)?;
        if matches!(verdict, Verdict::Differs(_)) {
            note_strays(&session);
        }
        if !self.json {
            for (address, recorded, found) in differing {
                say!("  {address:#x}: recorded {recorded:08x}, found {found:08x}");
            }
            if matches!(verdict, Verdict::Differs(_)) && self.checking.mask == 0 {
                say!(
                    "  the recorded kernel may read memory that it does not own or race: --mask 2 leaves out what differs from run to run. What it reaches by computed addresses is recorded with --all-memory; analyse counts such accesses"
                );
            }
        }
        Ok(ExitCode::from(u8::from(!verdict.is_right())))
    }
}
