// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: many ways to run one launch, each verified.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use gpureplay_cuda_replay::{
    JitOptions, Loaded, Mask, ReplayError, Session, Sizes, Times, Verdict,
};
use gpureplay_host::csv;
use serde::{Deserialize, Serialize};

use crate::attempt;
use crate::failure::{Failure, Outcome, write};
use crate::report;
use crate::report::{note, say};
use crate::run::{Checking, Evidence, read_image};
use crate::target::{Target, sizes};

/// Replays one launch with other blocks, registers and images; verifies and times each.
#[derive(Args)]
pub(crate) struct Tune {
    /// The launch.
    #[arg(value_name = "DIR#K")]
    target: Target,
    /// Blocks to try, separated by spaces or semicolons: "64 128 32,8".
    #[arg(long, value_name = "BLOCKS", value_parser = blocks)]
    blocks: Option<Blocks>,
    /// Keep the recorded grid; else as many blocks in x as keep the number of threads.
    #[arg(long)]
    keep_grid: bool,
    /// Registers of a thread, at most, to try; 0 is the image as it is.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [0])]
    registers: Vec<u32>,
    /// Levels of optimisation to try; -1 is the compiler's own.
    #[arg(long, value_name = "LEVEL,…", value_delimiter = ',', allow_hyphen_values = true, default_values_t = [-1], value_parser = clap::value_parser!(i32).range(-1..=4))]
    optimisation: Vec<i32>,
    /// Other images to try.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Timed runs of each candidate.
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where the table goes.
    #[arg(long, alias = "csv", value_name = "FILE.csv")]
    table: Option<PathBuf>,
    #[command(flatten)]
    checking: Checking,
}

#[derive(Clone)]
struct Blocks(Vec<[u32; 3]>);

fn blocks(text: &str) -> Result<Blocks, String> {
    let words = text.split([' ', ';']).filter(|word| !word.is_empty());
    words.map(sizes).collect::<Result<_, _>>().map(Blocks)
}

/// What is left out of a comparison, and what is changed before a launch.
struct Checks {
    mask: Mask,
    evidence: Option<Evidence>,
}

/// One candidate and what became of it.
struct Row {
    image: String,
    registers: u32,
    optimisation: i32,
    sizes: Sizes,
    used: u32,
    result: Result<(Verdict, Times), String>,
    /// The kernel failed: no launch of this process succeeds any more.
    is_last: bool,
}

/// What is kept of a candidate, also for another process that goes on after a kernel that failed.
#[derive(Serialize, Deserialize)]
struct Done {
    csv: String,
    what: String,
    /// Median and spread in microseconds, if it is right.
    right: Option<[f64; 2]>,
}

const HEADER: &str = "image,max_registers,optimisation,grid,block,registers,verdict,median_us,least_us,spread_us,note";

impl Row {
    fn csv(&self) -> String {
        let Sizes { grid, block, .. } = self.sizes;
        let head = [
            self.image.clone(),
            self.registers.to_string(),
            self.optimisation.to_string(),
            report::sizes(grid),
            report::sizes(block),
            self.used.to_string(),
        ];
        let (verdict, times, note) = match &self.result {
            Ok((verdict, times)) => {
                let times = [times.median(), times.least(), times.spread()];
                let times = times.map(|time| format!("{time:.2}"));
                (verdict.word(), times, String::new())
            }
            // One line for one candidate, whatever the driver's linker says.
            Err(note) => ("refused", Default::default(), note.replace('\n', " ")),
        };
        let head = head.into_iter().chain([verdict.to_owned()]);
        csv::line(head.chain(times).chain([note]))
    }

    fn done(&self) -> Done {
        let right = match &self.result {
            Ok((verdict, times)) if verdict.is_right() => Some([times.median(), times.spread()]),
            _ => None,
        };
        Done {
            csv: self.csv(),
            what: format!(
                "{}, at most {} registers, block {}",
                self.image,
                self.registers,
                report::sizes(self.sizes.block)
            ),
            right,
        }
    }
}

/// The rows so far. A row is printed when it is there; one of an earlier process was printed by that.
struct Rows {
    done: Vec<Done>,
    /// Candidates up to here, which were tried by earlier processes.
    known: usize,
    next: usize,
}

impl Rows {
    fn new() -> Result<Self, Failure> {
        let done: Vec<Done> = attempt::handed_on()?.unwrap_or_default();
        Ok(Self {
            known: done.len(),
            done,
            next: 0,
        })
    }

    /// Whether the next candidate was tried already.
    fn skips(&mut self) -> bool {
        self.next += 1;
        self.next <= self.known
    }

    /// A row. After a kernel that failed, another process goes on.
    fn push(&mut self, row: &Row) -> Result<(), Failure> {
        let done = row.done();
        say!("{}", done.csv.trim_end());
        self.done.push(done);
        if row.is_last {
            return Err(attempt::hand_on(&self.done, None));
        }
        Ok(())
    }
}

impl Tune {
    pub(crate) fn execute(&self) -> Outcome {
        let mut images = vec![("recorded".to_owned(), None)];
        for path in &self.image {
            images.push((path.display().to_string(), Some(read_image(path)?)));
        }
        let mut session = self.checking.session(&self.target)?;
        let Some(mask) = self.checking.mask(&mut session)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let recorded = session.sizes();
        let blocks = self
            .blocks
            .as_ref()
            .map_or_else(|| vec![recorded.block], |blocks| blocks.0.clone());
        let mut rows = Rows::new()?;
        if rows.known == 0 {
            say!("{HEADER}");
        }
        let loaded = session.load(None, JitOptions::default())?;
        let mut checks = Checks {
            mask,
            evidence: None,
        };
        let recorded_as_it_is = ("recorded", 0, -1);
        let mut base = self.candidate(&session, &loaded, &checks, recorded, recorded_as_it_is);
        session.unload(&loaded);
        if matches!(base.result, Ok((Verdict::Inconclusive, _))) {
            checks.evidence = match self.checking.evidence(&mut session, &checks.mask) {
                Err(Failure::Poison(error)) => {
                    note!(
                        "with memory changed before the launch: {error}; going on in another process with --no-poison"
                    );
                    return Err(attempt::hand_on(&rows.done, Some("--no-poison")));
                }
                evidence => evidence?,
            };
            if checks.evidence.is_some() {
                let loaded = session.load(None, JitOptions::default())?;
                base = self.candidate(&session, &loaded, &checks, recorded, recorded_as_it_is);
                session.unload(&loaded);
            }
        }
        if !rows.skips() {
            rows.push(&base)?;
        }
        for (name, image) in &images {
            for registers in &self.registers {
                for optimisation in &self.optimisation {
                    let options = JitOptions {
                        registers: (*registers > 0).then_some(*registers),
                        optimisation: u32::try_from(*optimisation).ok(),
                        ..JitOptions::default()
                    };
                    let key = (name.as_str(), *registers, *optimisation);
                    let blocks: Vec<_> = blocks.iter().filter(|_| !rows.skips()).collect();
                    if blocks.is_empty() {
                        continue;
                    }
                    let loaded = session.load(image.as_deref(), options);
                    for block in blocks {
                        let sizes = if self.keep_grid {
                            Sizes {
                                block: *block,
                                ..recorded
                            }
                        } else {
                            recorded.keep_total(*block)
                        };
                        let row = match &loaded {
                            Ok(loaded) => self.candidate(&session, loaded, &checks, sizes, key),
                            Err(error) => Row {
                                image: name.clone(),
                                registers: *registers,
                                optimisation: *optimisation,
                                sizes,
                                used: 0,
                                result: Err(error.to_string()),
                                is_last: false,
                            },
                        };
                        rows.push(&row)?;
                    }
                    if let Ok(loaded) = &loaded {
                        session.unload(loaded);
                    }
                }
            }
        }
        if let Some(path) = &self.table {
            let lines = rows.done.iter().map(|row| row.csv.clone());
            write(path, &format!("{HEADER}\n{}", lines.collect::<String>()))?;
        }
        conclude(&rows.done)?;
        let base_is_right = rows.done.first().is_some_and(|base| base.right.is_some());
        Ok(ExitCode::from(u8::from(!base_is_right)))
    }

    fn candidate(
        &self,
        session: &Session,
        loaded: &Loaded,
        checks: &Checks,
        sizes: Sizes,
        (image, registers, optimisation): (&str, u32, i32),
    ) -> Row {
        let how = self.checking.comparison();
        let run = |mask| {
            let verdict = session.run(loaded, &sizes, &how, mask)?;
            match &checks.evidence {
                Some(evidence) if verdict == Verdict::Inconclusive => {
                    evidence.run(session, loaded, &sizes, &how, mask)
                }
                _ => Ok(verdict),
            }
        };
        let result = run(&checks.mask)
            .and_then(|verdict| Ok((verdict, session.time(loaded, &sizes, self.runs)?)));
        Row {
            image: image.to_owned(),
            registers,
            optimisation,
            sizes,
            used: loaded.limits().registers,
            is_last: matches!(
                result,
                Err(ReplayError::Driver { .. } | ReplayError::TimeLimit { .. })
            ),
            result: result.map_err(|error| error.to_string()),
        }
    }
}

/// Says the best candidate, if it is better than the recorded launch by more than both spread.
fn conclude(rows: &[Done]) -> Result<(), Failure> {
    let Some([base, spread]) = rows.first().and_then(|base| base.right) else {
        say!("the recorded launch does not replay right: nothing is compared with it");
        return Ok(());
    };
    let best = rows
        .iter()
        .filter_map(|row| Some((&row.what, row.right?)))
        .min_by(|a, b| a.1[0].total_cmp(&b.1[0]));
    match best {
        Some((what, [median, own])) if median + own + spread < base => {
            say!(
                "best: {median:.2} us ({:.2} times as fast as recorded): {what}",
                base / median
            );
        }
        _ => {
            say!("nothing is faster than the recorded launch by more than the spread");
        }
    }
    Ok(())
}
