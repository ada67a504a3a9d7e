// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay tune`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::Args;
use gpureplay_edit::tune::{By, Candidate, Row, Standing, Tuning, steps, tune};

use gpureplay_edit::{Change, Kernel, Launch, Pair, Subject, inputs, launch};
use gpureplay_host::csv;
use gpureplay_jobs::Selector;
use gpureplay_library::{Recording, Trust};

use crate::Result;
use crate::common::arguments::{positive_number, whole_number};
use crate::common::destinations::Force;
use crate::common::edited::{self, Edited};
use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::{one, table};
use crate::common::model_options::WorkLimit;
use crate::common::progress::Progress;
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

const EXAMPLES: &str = "\
Examples:
  gpureplay tune recordings/digits-g52 --jobs 11 --by lines
      sizes of work groups that divide the threads, ranked by the memory lines that they touch
  gpureplay tune recordings/digits-g52 --jobs 11 --local 8x8,16x4,4x4,32x8 --table tune.csv
      a row for each candidate: equal, wrong or refused, with the reason
  gpureplay tune recordings/digits-g52 --jobs 11 --local 8x8 --variant mine.bin --table tune.csv -o best
      shaders as candidates too; the best recording goes to best
  gpureplay tune recordings/lenet-g52 --jobs 14 --local 25x4x2,5x4x4 --by lines
      the candidate that touches the fewest memory lines";

/// Find the cheapest variant of a job
///
/// Candidates are ranked by what the model counts: work, or memory lines with --by lines. How long the model takes says nothing about a
/// GPU. A best one is named only if it costs at least 1 % less than the recorded job.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tune {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The job: a number, or anything else that means one job, such as kernel:NAME
    #[arg(long, alias = "job", value_name = "SELECTOR")]
    jobs: Selector,
    /// Sizes of work groups to try; without it and --variant: some that divide the threads
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = launch::parse)]
    local: Vec<[u32; 3]>,
    /// Shaders to try: a file, or a whole job of another recording
    #[arg(long, value_name = "FILE.bin|RECORDING:JOB")]
    variant: Vec<String>,
    /// Where data of a variant's recording is in this one: a tensor's name or an address on each side; may be repeated
    #[arg(long, value_name = "THEIRS=OURS", requires = "variant")]
    map: Vec<Pair>,
    /// How many inputs each is tried with
    #[arg(long, alias = "inputs", value_name = "N", default_value_t = 3, value_parser = positive_number)]
    trials: u32,
    /// How often each is timed on the model, in turns; 0: not at all
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole_number::<u32>)]
    runs: u32,
    /// What ranks candidates: work (instructions and bytes), lines (memory lines that warps touch) or time (of --runs on the model)
    #[arg(long, value_name = "BY", default_value = "work", value_parser = By::from_str, hide_default_value = true)]
    by: By,
    /// File for a row of each candidate
    #[arg(long, alias = "csv", value_name = "FILE.csv")]
    table: Option<PathBuf>,
    /// Directory for the recording with the best candidate; not written if none is better
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    work: WorkLimit,
}

impl Tune {
    pub(crate) fn execute(&self) -> Result {
        if self.by == By::Time && self.runs == 0 {
            return Err(Failure::Usage("--by time needs --runs above 0".into()));
        }
        let trust = self.trust.read()?;
        let (recording, mut destinations) = edited::open(&self.recording, &trust, self.force)?;
        for variant in &self.variant {
            destinations.reads(Path::new(variant));
            if let Some((other, _)) = variant.split_once(':') {
                destinations.reads_named(Path::new(other));
            }
        }
        if let Some(path) = &self.table {
            destinations.claim(path)?;
        }
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and --table - both want standard output".into(),
            ));
        }
        let new = Edited::claim_if(self.output.as_deref(), self.force, &destinations)?;
        let jobs = table(&recording)?;
        let index = one(&self.jobs, &jobs)?;
        let inputs = inputs(&recording, self.trials as usize)?;
        let subject = Subject::new(&recording, &jobs, index, &inputs, self.work.limit_work)?;
        let candidates = self.candidates(&recording, &subject, &trust);
        let done = Arc::new(AtomicU64::new(0));
        let steps = Some(steps(candidates.len(), self.runs));
        let progress = Progress::start("tuning", done.clone(), steps, "steps");
        let tuning = tune(&subject, &candidates, self.runs, self.by, &done)?;
        drop(progress);
        if let Some(path) = &self.table {
            destinations.write(path, comma_separated(&tuning).as_bytes())?;
        }
        if self.json {
            terminal::json(&mut terminal::stdout(), &tuning)?;
        } else {
            let title = jobs
                .jobs
                .get(index)
                .map(gpureplay_jobs::Job::title)
                .unwrap_or_default();
            print(
                &mut terminal::report(destinations.takes_standard_output()),
                (index, &title, self.by),
                &tuning,
                subject.proof(),
            )?;
        }
        let best = tuning
            .best
            .and_then(|at| candidates.get(at.checked_sub(1)?));
        if let (Some(new), Some(Ok(change))) = (new, best.map(|it| it.change.as_ref())) {
            let changed = subject.apply(change)?;
            let command = format!("gpureplay tune {} --jobs {index}", self.recording.display());
            let mut out = terminal::report(destinations.takes_standard_output());
            new.put(&recording, &changed, command, &mut out)?;
        }
        Ok(Outcome::Done)
    }

    fn candidates(
        &self,
        recording: &Recording,
        subject: &Subject<'_>,
        trust: &Trust,
    ) -> Vec<Candidate> {
        let recorded = subject.launch();
        let tried = match self.local.is_empty() && self.variant.is_empty() {
            true => subject.sizes(),
            false => self.local.clone(),
        };
        let sizes = tried.iter().map(|local| Candidate {
            name: format!("local {}", local.map(|size| size.to_string()).join("x")),
            change: Launch::over(recorded.global(), *local)
                .map(|launch| Change {
                    launch,
                    kernel: Kernel::Recorded,
                })
                .map_err(|error| error.to_string()),
        });
        let shaders = self.variant.iter().map(|text| {
            let change = match Path::new(text).is_file() {
                true => edited::read_shader(Path::new(text)).map(|shader| Change {
                    launch: recorded,
                    kernel: Kernel::Shader(shader),
                }),
                false => edited::taken(text, recording, &self.map, trust, self.work)
                    .map(|taken| Change::from(Arc::new(taken))),
            };
            Candidate {
                name: text.clone(),
                change: change.map_err(|failure| failure.to_string()),
            }
        });
        sizes.chain(shaders).collect()
    }
}

fn standing(row: &Row) -> &'static str {
    match row.standing {
        Standing::Recorded => "recorded",
        Standing::Equal if row.proven => "proven",
        Standing::Equal => "equal",
        Standing::Wrong => "wrong",
        Standing::Refused => "refused",
    }
}

/// Columns with times are last.
fn comma_separated(tuning: &Tuning) -> String {
    let mut text = String::from(
        "candidate,local,groups,standing,rank,best,cost,instructions,bytes_read,bytes_written,reason,model_seconds_median,model_seconds_deviation\n",
    );
    for (at, row) in tuning.rows.iter().enumerate() {
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let work = |of: fn(&gpureplay_jobs::report::Work) -> u64| number(row.work.as_ref().map(of));
        let cells = [
            row.name.clone(),
            row.local.clone().unwrap_or_default(),
            row.groups.clone().unwrap_or_default(),
            standing(row).into(),
            number(row.rank.map(|rank| rank as u64)),
            if tuning.best == Some(at) {
                "yes".into()
            } else {
                String::new()
            },
            number(row.cost),
            work(|work| work.instructions),
            work(|work| work.bytes_read),
            work(|work| work.bytes_written),
            row.reason.clone(),
            row.model_seconds
                .map_or_else(String::new, |it| it.median.to_string()),
            row.model_seconds
                .map_or_else(String::new, |it| it.deviation.to_string()),
        ];
        text += &csv::line(cells);
    }
    text
}

fn print(
    out: &mut impl Write,
    (index, title, by): (usize, &str, By),
    tuning: &Tuning,
    proof: &gpureplay_edit::Proof,
) -> Result<()> {
    writeln!(out, "job {index} {title}: other work groups are {proof}")?;
    for (at, row) in tuning.rows.iter().enumerate() {
        let rank = row
            .rank
            .map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        let cost = row
            .cost
            .map_or_else(|| "-".to_owned(), |cost| cost.to_string());
        let best = if tuning.best == Some(at) {
            "  best"
        } else {
            ""
        };
        writeln!(
            out,
            "{rank:>4}  {:24} {:9} {cost:>12}{best}  {}",
            row.name,
            standing(row),
            row.reason
        )?;
    }
    match tuning.best {
        Some(_) if by == By::Work => writeln!(
            out,
            "ranked by {by}: instructions, and 16 bytes of memory as one more"
        )?,
        Some(_) => writeln!(out, "ranked by {by}")?,
        None => writeln!(
            out,
            "no candidate does clearly less than the recorded job, by {}",
            tuning.by
        )?,
    }
    Ok(())
}
