// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutation`: operators in the source are changed one by one, and a test of the crate must fail.

use std::{
    process::{Command, ExitCode},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;

use super::{results, root};
use crate::error::{Error, Result};

/// Crates whose tests must notice a change: they check what strangers send.
const CRATES: [&str; 4] = [
    "gpureplay-core",
    "gpureplay-format",
    "gpureplay-sign",
    "mali-drive",
];
/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Change operators of the source one by one, and run the crate's tests each time
///
/// A change that no test notices is printed; write the test. Needs cargo-mutants: `cargo install --locked cargo-mutants`. Changes that
/// mean the same are listed in .cargo/mutants.toml.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask mutation --sample 50             about 50 changes, others each day\n  \
    cargo xtask mutation --sample 50 --seed 3    the same 50 again\n\n\
    Ends with 1 if a change was not noticed.")]
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
}

impl Mutation {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let command = || {
            let mut command = Command::new("cargo");
            command.current_dir(root()).arg("mutants");
            match self.packages.is_empty() {
                true => command.args(CRATES.iter().flat_map(|name| ["--package", name])),
                false => command.args(self.packages.iter().flat_map(|name| ["--package", name])),
            };
            command
        };
        let listed = gpureplay_task::output(command().arg("--list"))?;
        let all = listed.lines().count() as u64;
        let folder = results()?.join("mutation");
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let mut run = command();
        run.args(["--no-shuffle", "--output"]).arg(&folder);
        // The engine and its family are tested together.
        let tested = self.packages.iter().map(String::as_str).chain(CRATES);
        run.args(tested.flat_map(|name| ["--test-package", name]));
        if let Some(sample) = self.sample {
            let seed = self.seed.unwrap_or_else(today);
            let (shard, shards) = shard(all, sample, seed);
            println!("mutation: sample {shard} of {shards}, of {all} changes");
            run.arg("--sharding=round-robin")
                .arg(format!("--shard={shard}/{shards}"));
        }
        let status = run.status().map_err(Error::io("start", "cargo mutants"))?;
        // 2: a change was not noticed; 3: a test took too long, which notices it as well.
        match status.code() {
            Some(0 | 3) => Ok(ExitCode::SUCCESS),
            Some(2) => Err(Error::FellShort {
                what: "the tests".into(),
                remedy: "write a test for each change that is named MISSED".into(),
            }),
            _ => Ok(ExitCode::FAILURE),
        }
    }
}

fn today() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |passed| passed.as_secs() / DAY)
}

/// Which of how many equal samples: one after the other as the seed counts up.
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
