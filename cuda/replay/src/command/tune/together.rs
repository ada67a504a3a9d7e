// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunes several launches of one kernel together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;

use gpureplay_cuda_launch::recording::Launch;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use super::Tune;
use super::space::Candidate;
use super::tries::Try;
use super::words::Sampler;
use crate::command::attempt::{private_folder, this_program};
use crate::command::failure::{Failure, Outcome, file, json};
use crate::command::report::{self, say, say_json};

/// A way to run launches of any size.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Way {
    /// `recorded`, or the file.
    image: String,
    max_registers: u32,
    optimisation: i32,
    max_threads: u32,
    min_blocks: u32,
    carveout: i32,
    block: [u32; 3],
    /// Nothing if the grid follows the launch.
    grid: Option<[u32; 3]>,
}

impl Way {
    pub(super) fn of(candidate: &Candidate, grid_is_given: bool) -> Self {
        Self {
            image: candidate.image.clone(),
            max_registers: candidate.max_registers,
            optimisation: candidate.optimisation,
            max_threads: candidate.max_threads,
            min_blocks: candidate.min_blocks,
            carveout: candidate.carveout,
            block: candidate.block,
            grid: grid_is_given.then_some(candidate.grid),
        }
    }

    fn words(&self) -> String {
        let grid = self
            .grid
            .map_or_else(|| "adapted".to_owned(), report::sizes);
        let mut words = format!(
            "{}, grid {grid}, block {}",
            self.image,
            report::sizes(self.block)
        );
        for (is_said, text) in [
            (
                self.max_registers > 0,
                format!(", {} registers at most", self.max_registers),
            ),
            (
                self.max_threads > 0,
                format!(", bounds {},{}", self.max_threads, self.min_blocks),
            ),
            (
                self.carveout >= 0,
                format!(", {} % for shared memory", self.carveout),
            ),
            (
                self.optimisation >= 0,
                format!(", optimisation {}", self.optimisation),
            ),
        ] {
            if is_said {
                words += &text;
            }
        }
        words
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) tries: PathBuf,
    /// Ways to try besides the recorded one: those right for another launch, or the common winner.
    pub(super) ways: Option<Vec<Way>>,
    /// `ways` holds the common winner, to be written.
    pub(super) is_settled: bool,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[derive(Deserialize)]
struct Tried {
    tries: Vec<Try>,
}

/// What was found of several launches, for `--json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct TogetherReport {
    kernel: String,
    /// Numbers of the launches.
    launches: Vec<u32>,
    /// The recorded times, in microseconds.
    recorded_us: Vec<f64>,
    /// Ways that are right for all launches, the fastest first.
    ways: Vec<WayReport>,
    /// Ways that are not right for each launch.
    wrong: usize,
    /// Nothing if no way is faster for all together by more than the spread.
    best: Option<Way>,
    /// How many times as fast all launches together are with it.
    speedup: Option<f64>,
}

/// A way, and its times.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct WayReport {
    #[serde(flatten)]
    way: Way,
    /// Of each launch, in microseconds.
    median_us: Vec<f64>,
    /// How many times as fast each launch is.
    speedups: Vec<f64>,
}

pub(super) fn run(tune: &Tune, kernel: &str) -> Outcome {
    let wanted = Regex::new(kernel)
        .map_err(|error| Failure::Usage(format!("--kernel {kernel:?}: {error}")))?;
    let recording = tune.target.recording()?;
    let mut launches = tune.target.launches(&recording)?;
    launches.retain(|(_, launch)| wanted.is_match(&launch.kernel));
    let Some((_, first)) = launches.first() else {
        return Err(Failure::Usage(format!(
            "no launch is of a kernel {kernel:?}"
        )));
    };
    let name = first.kernel.clone();
    if let Some((_, other)) = launches.iter().find(|(_, launch)| launch.kernel != name) {
        return Err(Failure::Usage(format!(
            "--kernel {kernel:?} fits {name} and {}; only launches of one kernel are tuned together",
            other.kernel
        )));
    }
    let numbers: Vec<u32> = launches.iter().map(|(number, _)| *number).collect();
    let learns = matches!(tune.sampler, Sampler::Learn(_));
    // Learns from the launch with most threads; others try that.
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    if learns {
        order.sort_by_key(|at| std::cmp::Reverse(threads(&launches[*at].1)));
    }
    let folder = private_folder("tune")?;
    let part = |at: usize, ways, is_settled| Part {
        number: numbers[at],
        tries: folder.path().join(numbers[at].to_string()),
        ways,
        is_settled,
    };
    let mut tried = vec![Vec::new(); numbers.len()];
    let mut ways = None;
    for at in order {
        tried[at] = of_one(&part(at, ways.clone(), false))?;
        if learns && ways.is_none() {
            ways = Some(fastest(&tried[at], tune.grids.is_some()));
        }
    }
    let report = together(name, numbers.clone(), &tried, tune.grids.is_some());
    if let (Some(_), Some(best)) = (&tune.tuned, &report.best) {
        for at in 0..numbers.len() {
            of_one(&part(at, Some(vec![best.clone()]), true))?;
        }
    }
    if tune.json {
        say_json(&report)?;
    } else {
        report.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn threads(launch: &Launch) -> u64 {
    let sizes = launch.grid.iter().chain(&launch.block);
    sizes.fold(1, |all, size| all.saturating_mul(u64::from(*size)))
}

const MOST_PASSED_ON: usize = 128;

fn fastest(tries: &[Try], grid_is_given: bool) -> Vec<Way> {
    let right = tries.iter().filter_map(|one| Some((one.right()?[0], one)));
    let mut right: Vec<_> = right.collect();
    right.sort_by(|a, b| a.0.total_cmp(&b.0));
    let way = |(_, one): (f64, &Try)| Way::of(&one.candidate, grid_is_given);
    right.into_iter().take(MOST_PASSED_ON).map(way).collect()
}

fn of_one(part: &Part) -> Result<Vec<Try>, Failure> {
    let program = this_program()?;
    let text = serde_json::to_string(part).map_err(json)?;
    let done = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .args(["--part", &text])
        .stderr(Stdio::inherit())
        .output()
        .map_err(file(&program))?;
    let tried: Option<Tried> = serde_json::from_slice(&done.stdout).ok();
    match tried {
        Some(tried) if done.status.success() => Ok(tried.tries),
        _ => Err(Failure::OtherProcess(done.status)),
    }
}

fn together(
    kernel: String,
    launches: Vec<u32>,
    tried: &[Vec<Try>],
    grid_is_given: bool,
) -> TogetherReport {
    let base: Vec<[f64; 2]> = tried
        .iter()
        .map(|tries| tries.first().and_then(Try::right).unwrap_or_default())
        .collect();
    let mut ways: BTreeMap<Way, Vec<Option<[f64; 2]>>> = BTreeMap::new();
    for (at, tries) in tried.iter().enumerate() {
        for one in tries {
            let times = ways
                .entry(Way::of(&one.candidate, grid_is_given))
                .or_default();
            times.resize(tried.len(), None);
            times[at] = one.right();
        }
    }
    let all = ways.len();
    let right = ways.into_iter().filter_map(|(way, times)| {
        let times: Option<Vec<[f64; 2]>> = times.into_iter().collect();
        Some((way, times?))
    });
    let mut right: Vec<_> = right.collect();
    let total =
        |times: &[[f64; 2]], which: usize| times.iter().map(|time| time[which]).sum::<f64>();
    right.sort_by(|a, b| total(&a.1, 0).total_cmp(&total(&b.1, 0)));
    let best = right
        .first()
        .filter(|(_, times)| total(times, 0) + total(times, 1) + total(&base, 1) < total(&base, 0));
    let best = best.map(|(way, times)| (way.clone(), total(&base, 0) / total(times, 0)));
    let wrong = all - right.len();
    let ways = right.into_iter().map(|(way, times)| WayReport {
        way,
        speedups: base
            .iter()
            .zip(&times)
            .map(|(old, new)| old[0] / new[0])
            .collect(),
        median_us: times.iter().map(|time| time[0]).collect(),
    });
    TogetherReport {
        kernel,
        launches,
        recorded_us: base.iter().map(|time| time[0]).collect(),
        ways: ways.collect(),
        wrong,
        speedup: best.as_ref().map(|(_, speedup)| *speedup),
        best: best.map(|(way, _)| way),
    }
}

impl TogetherReport {
    fn print(&self) -> Result<(), Failure> {
        let list = |times: &[f64]| {
            let times: Vec<String> = times.iter().map(|time| format!("{time:.2}")).collect();
            times.join(" ")
        };
        say!(
            "{}: launches {:?}, recorded {} us",
            self.kernel,
            self.launches,
            list(&self.recorded_us)
        );
        for one in &self.ways {
            say!(
                "  {} us, {} times as fast: {}",
                list(&one.median_us),
                list(&one.speedups),
                one.way.words()
            );
        }
        if self.wrong > 0 {
            say!(
                "  {} others are not right, or were not tried, for each launch",
                self.wrong
            );
        }
        match (&self.best, self.speedup) {
            (Some(best), Some(speedup)) => say!(
                "best: {speedup:.2} times as fast together: {}",
                best.words()
            ),
            _ => say!("nothing is faster for all of them by more than the spread"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::Candidate;
    use super::super::tries::Try;
    use super::{Way, together};
    use crate::{Times, Verdict};

    fn one(grid: u32, block: u32, time: Option<f64>) -> Try {
        let candidate = Candidate::recorded([grid, 1, 1], [block, 1, 1]);
        let result = time.map(|time| (Verdict::Exact, Times::new(vec![time; 3])));
        Try::new(candidate, 8, result.ok_or_else(|| "refused".to_owned()))
    }

    #[test]
    fn the_best_is_right_and_fastest_for_all_together() {
        // 128 wins the first, loses the second; 64 is wrong once; 256 is best in sum.
        let small = [
            one(8, 32, Some(10.0)),
            one(2, 128, Some(1.0)),
            one(1, 256, Some(6.0)),
            one(4, 64, Some(1.0)),
        ];
        let large = [
            one(80, 32, Some(100.0)),
            one(20, 128, Some(120.0)),
            one(10, 256, Some(50.0)),
            one(40, 64, None),
        ];
        let tried = [small.to_vec(), large.to_vec()];
        let found = together("k".into(), vec![0, 3], &tried, false);
        assert_eq!(found.best, Some(Way::of(&small[2].candidate, false)));
        assert_eq!(found.speedup, Some(110.0 / 56.0));
        assert_eq!(found.wrong, 1);
        assert_eq!(found.ways[0].median_us, [6.0, 50.0]);
        assert_eq!(found.ways[0].speedups, [10.0 / 6.0, 2.0]);
        // With given grids, the same block is another way.
        let given = together("k".into(), vec![0, 3], &tried, true);
        assert_eq!((given.best, given.ways.len()), (None, 0));
    }
}
