// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run`: one launch, replayed, verified and timed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use gpureplay_cuda_replay::{
    Comparison, Element, Gpu, JitOptions, Mask, Poison, ReplayError, Session, Sizes, Times, Verdict,
};

use crate::attempt::again;
use crate::failure::{Failure, Outcome, file};
use crate::report;
use crate::target::{Target, sizes};

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
    /// Leave out words that differ between so many runs of the recorded launch and one more.
    #[arg(long, value_name = "RUNS", default_value_t = 0)]
    mask: u32,
    /// Seconds that a kernel may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    /// Leave memory as it was recorded, even if it holds the results already.
    #[arg(long)]
    no_poison: bool,
    /// Fill the second-level cache with other memory before each timed run.
    #[arg(long)]
    cold: bool,
    /// Which GPU, by its ordinal.
    #[arg(long, default_value_t = 0)]
    gpu: i32,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let error: f64 = text.parse().map_err(|_| "is no number")?;
    if error.is_finite() && error >= 0.0 {
        Ok(error)
    } else {
        Err("is no error".to_owned())
    }
}

impl Checking {
    pub(crate) fn comparison(&self) -> Comparison {
        Comparison {
            tolerance: self.element.zip(self.tolerance),
        }
    }

    /// The launch in memory; another process is tried if its addresses are taken here.
    pub(crate) fn session(&self, target: &Target) -> Result<Session, Failure> {
        let recording = target.recording()?;
        let number = target.one(&recording)?;
        let gpu = Gpu::open(self.gpu)?;
        let mut session = Session::open(
            gpu,
            &recording,
            number,
            Duration::from_secs(self.time_limit),
        )
        .map_err(again)?;
        let (recorded, here) = (&session.launch().device, session.gpu().info());
        if recorded.capability != here.capability {
            eprintln!(
                "gpureplay: recorded on {} (sm_{}{}), replayed on {} (sm_{}{})",
                recorded.name,
                recorded.capability[0],
                recorded.capability[1],
                here.name,
                here.capability[0],
                here.capability[1]
            );
        }
        if self.cold {
            session.make_cold()?;
        }
        Ok(session)
    }

    /// Words to change before a launch whose results are in memory already, found with the recorded image. None may be loaded.
    pub(crate) fn poison(
        &self,
        session: &mut Session,
        mask: &Mask,
    ) -> Result<Option<Poison>, Failure> {
        if self.no_poison {
            return Ok(None);
        }
        let loaded = session.load(None, JitOptions::default())?;
        let poison = session.poison(&loaded, &self.comparison(), mask);
        match poison {
            Ok(poison) => {
                session.unload(&loaded);
                Ok((!poison.is_empty()).then_some(poison))
            }
            Err(error @ (ReplayError::Driver { .. } | ReplayError::TimeLimit { .. })) => {
                Err(Failure::Poison(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Words to leave out, found with the recorded image.
    pub(crate) fn mask(&self, session: &mut Session) -> Result<Mask, Failure> {
        if self.mask == 0 {
            return Ok(Mask::default());
        }
        let loaded = session.load(None, JitOptions::default())?;
        let mask = session.mask(&loaded, self.mask)?;
        session.unload(&loaded);
        eprintln!(
            "gpureplay: {} words differ between {} runs of the recorded launch and are left out",
            mask.words(),
            self.mask.saturating_add(1)
        );
        Ok(mask)
    }
}

/// Replays one launch and compares all memory with what the recorded launch left.
#[derive(Args)]
pub(crate) struct Run {
    /// The launch.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// Timed runs before the one that is compared.
    #[arg(long, value_name = "N", default_value_t = 0)]
    repetitions: u32,
    /// Threads of a block: x, x,y or x,y,z.
    #[arg(long, value_name = "X,Y,Z", value_parser = sizes)]
    block: Option<[u32; 3]>,
    /// Blocks: x, x,y or x,y,z.
    #[arg(long, value_name = "X,Y,Z", value_parser = sizes)]
    grid: Option<[u32; 3]>,
    /// With --block: as many blocks in x as keep the number of threads.
    #[arg(long, requires = "block", conflicts_with = "grid")]
    keep_total: bool,
    /// Dynamic shared memory, in bytes.
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
    /// Another cubin, fatbin or PTX file with the same kernel.
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Compile the PTX with so many registers of a thread at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=255))]
    max_registers: Option<u32>,
    /// Compile the PTX at this level of optimisation.
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(0..=4))]
    optimisation: Option<u32>,
    /// Restore everything, launch nothing, and compare: this must not be right.
    #[arg(long, conflicts_with = "repetitions")]
    null: bool,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "null")]
    json: bool,
    #[command(flatten)]
    checking: Checking,
}

pub(crate) fn read_image(path: &Path) -> Result<Vec<u8>, Failure> {
    let image = std::fs::read(path).map_err(file(path))?;
    gpureplay_cuda_image::parts(&image).map_err(|source| Failure::Image {
        path: path.to_owned(),
        source,
    })?;
    Ok(image)
}

impl Run {
    fn sizes(&self, recorded: Sizes) -> Sizes {
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

    pub(crate) fn execute(&self) -> Outcome {
        let image = self.image.as_deref().map(read_image).transpose()?;
        let how = self.checking.comparison();
        let mut session = self.checking.session(&self.target)?;
        let mask = self.checking.mask(&mut session)?;
        let options = JitOptions {
            registers: self.max_registers,
            optimisation: self.optimisation,
        };
        let loaded = session.load(image.as_deref(), options)?;
        if session.rewritten() > 0 {
            eprintln!(
                "gpureplay: {} pointers to the image's variables rewritten",
                session.rewritten()
            );
        }
        let sizes = self.sizes(session.sizes());
        if self.null {
            let verdict = session.null(&loaded, &how, &mask)?;
            println!("{}: null replay {verdict}", session.launch().kernel);
            return Ok(ExitCode::from(u8::from(!verdict.is_right())));
        }
        let times = session.time(&loaded, &sizes, self.repetitions)?;
        let mut verdict = session.run(&loaded, &sizes, &how, &mask)?;
        let registers = loaded.limits().registers;
        let mut poison = None;
        if verdict == Verdict::Inconclusive {
            session.unload(&loaded);
            poison = match self.checking.poison(&mut session, &mask) {
                Ok(poison) => poison,
                Err(Failure::Poison(error)) => {
                    eprintln!("gpureplay: with memory changed before the launch: {error}");
                    None
                }
                Err(error) => return Err(error),
            };
            if let Some(poison) = &poison {
                let loaded = session.load(image.as_deref(), options)?;
                verdict = session.run_poisoned(&loaded, &sizes, &how, &mask, poison)?;
            }
        }
        let report = Report {
            kernel: &session.launch().kernel,
            sizes,
            registers,
            times,
            verdict,
            poison,
        };
        if self.json {
            println!("{}", report.json());
        } else {
            report.print();
            if matches!(verdict, Verdict::Differs(_)) && self.checking.mask == 0 {
                println!(
                    "  the recorded kernel may read memory that it does not own or race: --mask 2 leaves out what differs from run to run"
                );
            }
        }
        Ok(ExitCode::from(u8::from(!verdict.is_right())))
    }
}

/// What a replay showed.
struct Report<'a> {
    kernel: &'a str,
    sizes: Sizes,
    registers: u32,
    times: Times,
    verdict: Verdict,
    poison: Option<Poison>,
}

impl Report<'_> {
    fn print(&self) {
        println!(
            "{}: grid {}, block {}, {} registers",
            self.kernel,
            report::sizes(self.sizes.grid),
            report::sizes(self.sizes.block),
            self.registers
        );
        if self.times.runs() > 0 {
            println!(
                "  {} runs: median {:.2} us, least {:.2} us, spread {:.2} us",
                self.times.runs(),
                self.times.median(),
                self.times.least(),
                self.times.spread()
            );
        }
        println!("  {}", self.verdict);
        if let Some(poison) = &self.poison {
            println!(
                "  memory held the results already: {} bytes were changed before the launch, of {} that the recorded kernel was seen to write",
                poison.bytes(),
                poison.written()
            );
        }
    }

    fn json(&self) -> serde_json::Value {
        let times = (self.times.runs() > 0).then(|| {
            serde_json::json!({
                "runs": self.times.runs(), "median_us": self.times.median(),
                "least_us": self.times.least(), "spread_us": self.times.spread(),
            })
        });
        let difference = match self.verdict {
            Verdict::Differs(difference) => Some(serde_json::json!({
                "elements": difference.elements, "first": difference.first,
            })),
            _ => None,
        };
        serde_json::json!({
            "kernel": self.kernel, "grid": self.sizes.grid, "block": self.sizes.block, "registers": self.registers,
            "verdict": self.verdict.word(), "times": times, "difference": difference,
            "changed_bytes": self.poison.as_ref().map(Poison::bytes),
            "written_bytes": self.poison.as_ref().map(Poison::written),
        })
    }
}
