// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutation`: changes operators; a test must fail.
//!
//! All changes are compiled at once, behind switches: each costs only its tests.

mod change;
mod runner;
mod schema;
mod tree;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;

use self::{
    change::{Change, Texts},
    runner::{Runner, Verdict},
    tree::Tree,
};
use super::root;
use crate::error::{Error, Result};

/// Crates that check strangers' bytes, and those whose tests reach each.
const CRATES: [(&str, &[&str]); 4] = [
    ("gpureplay-core", &["gpureplay-core", "mali-drive"]),
    (
        "gpureplay-format",
        &[
            "gpureplay-format",
            "gpureplay-core",
            "gpureplay-sign",
            "mali-drive",
        ],
    ),
    ("gpureplay-sign", &["gpureplay-sign"]),
    ("mali-drive", &["mali-drive", "gpureplay-core"]),
];
/// One change in so many may be missed.
const ALLOWED: usize = 10;
const DAY: u64 = 24 * 60 * 60;

/// Change operators of the source one by one, and run the tests each time
///
/// Prints changes that no test notices. Those that mean the same are listed in tools/xtask/mutation.toml. Needs
/// `cargo install --locked cargo-mutants`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask mutation                         all changes, in half an hour\n  \
    cargo xtask mutation --sample 100            about 100 changes, others each day\n  \
    cargo xtask mutation --sample 100 --seed 3   the same 100 again\n\n\
    Ends with 1 if more than a tenth was not noticed.")]
pub(crate) struct Mutation {
    /// Try about N changes; all of them come in turn [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Number of the sample [default: days since 1970]
    #[arg(long, value_name = "N", requires = "sample")]
    seed: Option<u64>,
    /// Only this crate; may be repeated
    #[arg(long = "package", value_name = "CRATE")]
    packages: Vec<String>,
    /// Try constants too, each in a build of its own [default: if all changes are tried]
    #[arg(long)]
    constants: bool,
    /// Tests at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

impl Mutation {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let wanted: Vec<&str> = match self.packages.is_empty() {
            true => CRATES.iter().map(|(name, _)| *name).collect(),
            false => self.packages.iter().map(String::as_str).collect(),
        };
        if let Some(other) = wanted.iter().find(|name| reach(name).is_empty()) {
            return Err(Error::Usage(format!(
                "{other} is none of the crates: {}",
                CRATES.map(|(name, _)| name).join(", ")
            )));
        }
        let listed = change::list(&wanted)?;
        let all = listed.len() as u64;
        let changes: Vec<&Change> = match self.sample {
            None => listed.iter().collect(),
            Some(sample) => {
                let seed = self.seed.unwrap_or_else(today);
                let (shard, shards) = shard(all, sample, seed);
                println!("sample {shard} of {shards} (seed {seed}), of {all} changes");
                (0..)
                    .zip(&listed)
                    .filter(|(at, _)| at % shards == shard)
                    .map(|(_, change)| change)
                    .collect()
            }
        };
        let crates: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
        let mut tree = Tree::build(&root().join("target/mutation"), &crates, &changes)?;
        let programs = std::mem::take(&mut tree.programs);
        let runner = Runner::new(programs, self.jobs.map(usize::from))?;
        let tried: Vec<&Change> = changes
            .iter()
            .copied()
            .filter(|change| !tree.refused.contains(&change.number))
            .collect();
        let mut verdicts = runner.run(&tried)?;
        for (change, verdict) in tried.iter().zip(&mut verdicts) {
            if *verdict != Verdict::Missed || !tree.constants.contains(&change.number) {
                continue;
            }
            *verdict = match self.constants || self.sample.is_none() {
                false => Verdict::Constant,
                true if tree.alone(&crates, change)? => {
                    Runner::alone(std::mem::take(&mut tree.programs), change)?
                }
                true => Verdict::Constant,
            };
        }
        let whole = self.sample.is_none() && self.packages.is_empty();
        report(&changes, &tried, &verdicts, whole)
    }
}

fn report(
    changes: &[&Change],
    tried: &[&Change],
    verdicts: &[Verdict],
    whole: bool,
) -> Result<ExitCode> {
    let known = change::known()?;
    let mut matched = vec![false; known.len()];
    let mut texts = Texts::default();
    let mut counts: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    for change in changes {
        if let Some(listed) = counts.entry(&change.package).or_default().first_mut() {
            *listed += 1;
        }
    }
    let mut missed = 0_usize;
    for (change, verdict) in tried.iter().zip(verdicts) {
        let text = texts.get(&change.file)?;
        let same = known.iter().position(|known| known.is(change, text));
        if let Some(hit) = same.and_then(|at| matched.get_mut(at)) {
            *hit = true;
        }
        let column = match (verdict, same) {
            (Verdict::Caught, _) => 1,
            (Verdict::TimedOut, _) => 2,
            (Verdict::Missed, Some(_)) => 3,
            (Verdict::Missed, None) => 4,
            (Verdict::Constant, _) => 5,
        };
        if column == 4 {
            missed += 1;
            println!("MISSED {}", change.name);
        }
        if let Some(count) = counts
            .get_mut(change.package.as_str())
            .and_then(|counts| counts.get_mut(column))
        {
            *count += 1;
        }
    }
    for (package, [listed, failed, late, same, missed, constant]) in &counts {
        let tried = failed + late + same + missed;
        println!(
            "{package}: {listed} changes, {tried} tried: {} noticed ({late} by a limit of time), {same} known, {missed} missed; \
             {constant} constants left out",
            failed + late
        );
    }
    let stale: Vec<String> = known
        .iter()
        .zip(&matched)
        .filter(|(_, matched)| whole && !**matched)
        .map(|(known, _)| known.to_string())
        .collect();
    if !stale.is_empty() {
        return Err(Error::Usage(format!(
            "tools/xtask/mutation.toml lists what is no change: {}",
            stale.join("; ")
        )));
    }
    if missed * ALLOWED > tried.len() {
        return Err(Error::fell_short(
            "the tests",
            "write a test for each change that is named MISSED",
        ));
    }
    println!("mutation: {} changes tried, {missed} missed", tried.len());
    Ok(ExitCode::SUCCESS)
}

fn reach(package: &str) -> &'static [&'static str] {
    CRATES
        .iter()
        .find(|(name, _)| *name == package)
        .map_or(&[], |(_, reach)| reach)
}

fn today() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |passed| passed.as_secs() / DAY)
}

/// The seed's turn among samples of equal size, and their count.
fn shard(all: u64, sample: u64, seed: u64) -> (u64, u64) {
    let shards = all.div_ceil(sample.max(1)).max(1);
    (seed % shards, shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_in_turn() {
        assert_eq!(shard(1281, 50, 0), (0, 26));
        assert_eq!(shard(1281, 50, 27), (1, 26));
        assert_eq!(shard(10, 50, 7), (0, 1));
        assert_eq!(shard(0, 50, 7), (0, 1));
        let mut seen: Vec<u64> = (100..126).map(|seed| shard(1281, 50, seed).0).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..26).collect::<Vec<_>>());
    }
}
