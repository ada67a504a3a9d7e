// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask reliability`: all trials.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::fuzz::Fuzz;
use super::target::{self, Kind, Target};
use super::totals::{self, Total};
use super::{results, trial};
use crate::repository::root;
use crate::{error::Result, files};

/// Run all trials; results go to measurements/ and fuzz/totals.json
#[derive(Args)]
pub(crate) struct Reliability {
    /// Seconds for each fuzz target
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

const LEAST_HOURS: f64 = 1.0;

impl Reliability {
    pub(crate) fn execute(&self) -> Result<ExitCode> {
        let mut passed = true;
        for name in ["mutants", "faults", "cost"] {
            passed &= trial::run(name, &[])? == ExitCode::SUCCESS;
            let from = results()?.join(format!("{name}.json"));
            let to = root().join(format!("measurements/trials/{name}.json"));
            files::copy(&from, to)?;
        }
        for fuzz in [
            Fuzz::for_all(self.seconds),
            Fuzz::for_one("soundness", self.seconds),
        ] {
            passed &= fuzz.execute()? == ExitCode::SUCCESS;
        }
        let short = short_targets(&target::all()?, &totals::read()?);
        for what in &short {
            println!("  {what}");
        }
        Ok(ExitCode::from(u8::from(!passed || !short.is_empty())))
    }
}

fn short_targets(targets: &[Target], totals: &BTreeMap<String, Total>) -> Vec<String> {
    let none = Total::default();
    let mut short = Vec::new();
    for target in targets {
        let name = &target.name;
        let total = totals.get(name).unwrap_or(&none);
        if total.executions == 0 {
            short.push(format!("fuzz target {name} has not been run"));
        }
        if total.open {
            short.push(format!(
                "the last run of fuzz target {name} found something"
            ));
        }
        let hours = total.seconds / 3600.0;
        if target.kind == Kind::Soundness && hours < LEAST_HOURS {
            short.push(format!("{name} ran for {hours:.2} h of {LEAST_HOURS:.0} h"));
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_fall_short_are_named() {
        let targets = target::all().unwrap();
        let total = Total {
            executions: 1,
            seconds: 3600.0,
            ..Total::default()
        };
        let mut totals: BTreeMap<String, Total> = targets
            .iter()
            .map(|target| (target.name.clone(), total.clone()))
            .collect();
        assert!(short_targets(&targets, &totals).is_empty());
        totals.get_mut("soundness").unwrap().seconds = 3599.0;
        totals.get_mut("npy").unwrap().open = true;
        totals.remove("pack");
        let short = short_targets(&targets, &totals).join("; ");
        for name in ["soundness", "npy", "pack"] {
            assert!(short.contains(name), "{short}");
        }
        assert_eq!(short.matches(';').count(), 2, "{short}");
    }
}
