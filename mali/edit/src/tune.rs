// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries candidates for one job, and names the best.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_host::statistics::Spread;
use gpureplay_jobs::report::Work;
use serde::Serialize;

use crate::change::{Change, Subject};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::text;

/// A named change.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Sizes, or where its shader comes from.
    pub name: String,
    /// Or why it cannot be made.
    pub change: std::result::Result<Change, String>,
}

/// What became of a candidate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The job as it was recorded.
    Recorded,
    /// It computes the same.
    Equal,
    /// It computes something else.
    Wrong,
    /// The GPU cannot run it, its shader does not fit, or it reaches too far.
    Refused,
}

/// A candidate, and how it did.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// Threads of a work group.
    pub local: Option<String>,
    /// Work groups.
    pub groups: Option<String>,
    /// What became of it.
    pub standing: Standing,
    /// Whether it is proven to compute the same, or equal for the inputs that were tried.
    pub proven: bool,
    /// Why it is refused or wrong, or why it is not proven.
    pub reason: String,
    /// What it does on the model.
    pub work: Option<Work>,
    /// What ranks it, less is better; see [`cost`].
    pub cost: Option<u64>,
    /// Its place among those that compute the same, from 1.
    pub rank: Option<usize>,
    /// Seconds that the model took, on the clock of the machine that it runs on. They say nothing about a GPU.
    pub model_seconds: Option<Spread>,
}

/// Ranks candidates; less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// See [`cost`].
    #[default]
    Work,
    /// Lines of 64 bytes that warps touch, once for each access.
    Lines,
    /// Median nanoseconds on the model, not on a GPU.
    Time,
}

impl By {
    /// Values of `--by`.
    pub const NAMES: [&'static str; 3] = ["work", "lines", "time"];

    fn text(self) -> &'static str {
        match self {
            Self::Work => "modelled work",
            Self::Lines => "memory lines",
            Self::Time => "time on the model",
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "work" => Ok(Self::Work),
            "lines" => Ok(Self::Lines),
            "time" => Ok(Self::Time),
            _ => Err(format!("expected one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// All candidates, the recorded job first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Tuning {
    /// A row for each.
    pub rows: Vec<Row>,
    /// Number of the best row, if one does clearly less than the recorded job.
    pub best: Option<usize>,
    /// What ranks rows, in words.
    pub by: &'static str,
}

/// Instructions of all threads, plus one per 16 bytes of memory. The model counts exactly. It ignores caches and warps
/// that are not full.
pub fn cost(work: &Work) -> u64 {
    let bytes = work.bytes_read.saturating_add(work.bytes_written);
    work.instructions.saturating_add(bytes / 16)
}

/// Least difference that counts, as a share of the recorded job's cost.
const CLEARLY: f64 = 0.01;

/// Tries every candidate, times it `runs` times in turns with the recorded job, and ranks those with the same results.
/// `done` counts [`steps`].
///
/// # Errors
/// The recorded job does not run.
pub fn tune(
    subject: &Subject<'_>,
    candidates: &[Candidate],
    runs: u32,
    by: By,
    done: &AtomicU64,
) -> Result<Tuning> {
    let recorded = Change {
        launch: subject.launch(),
        kernel: Kernel::Recorded,
    };
    let base = subject.try_out(&recorded)?;
    let mut rows = vec![Row {
        name: "recorded".into(),
        local: Some(text(recorded.launch.local)),
        groups: Some(text(recorded.launch.groups)),
        standing: Standing::Recorded,
        proven: true,
        reason: String::new(),
        cost: base.before.as_ref().map(cost),
        work: base.before,
        rank: None,
        model_seconds: None,
    }];
    rows.extend(candidates.iter().map(|candidate| {
        done.fetch_add(1, Ordering::Relaxed);
        row(subject, candidate)
    }));
    time((subject, &recorded), candidates, &mut rows, runs, done);
    let changes =
        std::iter::once(Some(&recorded)).chain(candidates.iter().map(|it| it.change.as_ref().ok()));
    for (row, change) in rows.iter_mut().zip(changes) {
        let counts = matches!(row.standing, Standing::Recorded | Standing::Equal);
        match (by, change.filter(|_| counts)) {
            (By::Work, _) => {}
            (By::Lines, change) => row.cost = change.and_then(|change| subject.lines(change)),
            (By::Time, _) => {
                row.cost = row.model_seconds.map(|time| (time.median * 1e9) as u64);
            }
        }
    }
    let mut order: Vec<usize> = (0..rows.len())
        .filter(|at| {
            let row = rows.get(*at);
            row.is_some_and(|it| {
                matches!(it.standing, Standing::Recorded | Standing::Equal) && it.cost.is_some()
            })
        })
        .collect();
    // Ties: the earlier one; the recorded job first.
    order.sort_by_key(|at| (rows.get(*at).and_then(|row| row.cost), *at));
    for (rank, at) in (1..).zip(&order) {
        if let Some(row) = rows.get_mut(*at) {
            row.rank = Some(rank);
        }
    }
    let cost_of = |at: usize| rows.get(at).and_then(|row| row.cost);
    let best = order.first().copied().filter(|at| {
        let (new, old) = (cost_of(*at), cost_of(0));
        let (Some(new), Some(old)) = (new, old) else {
            return false;
        };
        (new as f64) < old as f64 * (1.0 - CLEARLY) && (by != By::Time || apart(&rows, *at))
    });
    Ok(Tuning {
        rows,
        best,
        by: by.text(),
    })
}

fn apart(rows: &[Row], at: usize) -> bool {
    let spread = |at: usize| rows.get(at).and_then(|row| row.model_seconds);
    let (Some(new), Some(old)) = (spread(at), spread(0)) else {
        return false;
    };
    new.median + new.deviation < old.median - old.deviation
}

fn row(subject: &Subject<'_>, candidate: &Candidate) -> Row {
    let mut row = Row {
        name: candidate.name.clone(),
        local: None,
        groups: None,
        standing: Standing::Refused,
        proven: false,
        reason: String::new(),
        work: None,
        cost: None,
        rank: None,
        model_seconds: None,
    };
    let change = match &candidate.change {
        Ok(change) => change,
        Err(reason) => {
            row.reason.clone_from(reason);
            return row;
        }
    };
    row.local = Some(text(change.launch.local));
    row.groups = Some(text(change.launch.groups));
    match subject.try_out(change) {
        Ok(tried) => {
            row.work = tried.after;
            if let Some((at, old, new)) = tried.first {
                row.standing = Standing::Wrong;
                row.reason = format!(
                    "{} bytes differ, first {at:#x}: {new:#04x} instead of {old:#04x}",
                    tried.different
                );
                return row;
            }
            row.standing = Standing::Equal;
            row.cost = row.work.as_ref().map(cost);
            row.proven = tried.proof.is_proven() && change.kernel.is_recorded();
            if !change.kernel.is_recorded() {
                let what = match change.kernel {
                    Kernel::Job(_) => "another job",
                    _ => "another shader",
                };
                row.reason = format!("{what}, equal for {} inputs", tried.inputs);
            } else if !row.proven {
                row.reason = format!("{}; equal for {} inputs", tried.proof, tried.inputs);
            }
        }
        Err(error) => {
            if matches!(error, crate::EditError::Differs(_)) {
                row.standing = Standing::Wrong;
            }
            row.reason = error.to_string();
        }
    }
    row
}

/// [`tune`] tries each candidate, and times each and the recorded job `runs` times and once uncounted. Turns let
/// disturbances hit all alike.
pub fn steps(candidates: usize, runs: u32) -> u64 {
    let runs = u64::from(runs).checked_add(1).filter(|_| runs > 0);
    (candidates as u64 + 1) * runs.unwrap_or_default() + candidates as u64
}

fn time(
    (subject, recorded): (&Subject<'_>, &Change),
    candidates: &[Candidate],
    rows: &mut [Row],
    runs: u32,
    done: &AtomicU64,
) {
    let changes =
        std::iter::once(Some(recorded)).chain(candidates.iter().map(|it| it.change.as_ref().ok()));
    let changes: Vec<Option<&Change>> = changes.collect();
    let mut times = vec![Vec::new(); rows.len()];
    for run in 0..=runs {
        for ((change, row), times) in changes.iter().zip(rows.iter()).zip(&mut times) {
            let counts = matches!(row.standing, Standing::Recorded | Standing::Equal);
            done.fetch_add(1, Ordering::Relaxed);
            let Some(change) = change.filter(|_| counts && runs > 0) else {
                continue;
            };
            if let Some(seconds) = subject.run_once(change).filter(|_| run > 0) {
                times.push(seconds);
            }
        }
    }
    for (row, times) in rows.iter_mut().zip(times) {
        row.model_seconds = Spread::of(&times);
    }
}
