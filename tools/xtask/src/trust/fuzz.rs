// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask fuzz`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use clap::Args;

use super::target::{self, Kind, Target};
use super::totals::{self, Total};
use crate::error::{Error, Result};

/// Fuzz every parser and the replay of changed recordings, for a minute each
///
/// Needs a C++ compiler; cargo-fuzz is installed if missing. Two more targets run when named: `soundness` (changed
/// recordings on the model) and `damaged_copies` (of a recording of the original GPUReplay). Corpora are kept in
/// fuzz/corpus, findings in fuzz/artifacts.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask fuzz --seconds 60 --jobs 2\n  cargo xtask fuzz --target recording --target pack --seconds 600 --add-up\n  \
                  cargo xtask fuzz --target soundness --seconds 3600 --add-up"
)]
pub(crate) struct Fuzz {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Only this target; may be given again
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Targets that run at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Add what was done to fuzz/totals.json
    #[arg(long)]
    add_up: bool,
    /// Print the targets' names
    #[arg(long)]
    list: bool,
}

impl Fuzz {
    pub(super) fn for_all(seconds: u64) -> Self {
        Self {
            seconds,
            targets: Vec::new(),
            jobs: 1,
            add_up: true,
            list: false,
        }
    }

    pub(super) fn for_one(target: &str, seconds: u64) -> Self {
        Self {
            targets: vec![target.to_owned()],
            ..Self::for_all(seconds)
        }
    }

    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let all = target::all()?;
        if self.list {
            for target in &all {
                println!("{}", target.name);
            }
            return Ok(ExitCode::SUCCESS);
        }
        for name in &self.targets {
            if !all.iter().any(|target| target.name == *name) {
                let names: Vec<&str> = all.iter().map(|target| target.name.as_str()).collect();
                return Err(Error::Usage(format!(
                    "there is no target {name}; there are {}",
                    names.join(", ")
                )));
            }
        }
        let chosen: Vec<&Target> = all
            .iter()
            .filter(|target| match self.targets.as_slice() {
                [] => target.kind == Kind::LibFuzzer,
                named => named.contains(&target.name),
            })
            .collect();
        let by_lib_fuzzer: Vec<&Target> = chosen
            .iter()
            .copied()
            .filter(|target| target.kind == Kind::LibFuzzer)
            .collect();
        if !by_lib_fuzzer.is_empty() {
            target::prepare(&by_lib_fuzzer)?;
        }
        let done = self.run(&chosen)?;
        let sum = sum(&done);
        println!(
            "fuzz: {} targets, {} executions in {:.0} s, {} findings",
            chosen.len(),
            sum.executions,
            sum.seconds,
            sum.findings
        );
        Ok(if passed(&done) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn run(&self, chosen: &[&Target]) -> Result<Vec<Total>> {
        let waiting = Mutex::new(chosen.iter());
        let all = Mutex::new(Vec::new());
        let work = || -> Result<()> {
            loop {
                let Some(target) = waiting.lock().ok().and_then(|mut them| them.next()) else {
                    return Ok(());
                };
                let done = target.run(self.seconds)?;
                let Ok(mut all) = all.lock() else {
                    return Ok(());
                };
                println!(
                    "  {:14} {:10} executions {:6.0} s {:3} findings",
                    target.name, done.executions, done.seconds, done.findings
                );
                if self.add_up {
                    let mut totals: BTreeMap<String, Total> = totals::read()?;
                    totals.entry(target.name.clone()).or_default().add(&done);
                    totals::write(&totals)?;
                }
                all.push(done);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(work)).collect();
            let mut ended = workers.into_iter().map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.try_for_each(|result| result)
        })?;
        Ok(all.into_inner().unwrap_or_default())
    }
}

fn sum(done: &[Total]) -> Total {
    let mut sum = Total::default();
    done.iter().for_each(|total| sum.add(total));
    sum
}

fn passed(done: &[Total]) -> bool {
    !done.is_empty()
        && done
            .iter()
            .all(|total| total.executions > 0 && total.findings == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_found_something_or_did_nothing_falls_short() {
        let good = Total {
            executions: 5,
            ..Total::default()
        };
        let found = Total {
            findings: 1,
            ..good.clone()
        };
        assert!(passed(&[good.clone(), good.clone()]));
        assert!(!passed(&[good.clone(), found.clone()]));
        assert!(!passed(&[good.clone(), Total::default()]) && !passed(&[]));
        assert_eq!(sum(&[good.clone(), found.clone()]).executions, 10);
        let mut total = found;
        assert!(total.findings == 1);
        total.add(&good);
        assert!(total.findings == 1 && !total.open);
    }
}
