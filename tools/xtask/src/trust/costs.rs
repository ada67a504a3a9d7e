// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of all attacker runs: fuzz/costs.json.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{keep, kept, root};
use crate::error::Result;

/// Maxima: heap, allocations, steps, bytes written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cost {
    pub(super) inputs: u64,
    /// Processor seconds.
    pub(super) seconds: f64,
    pub(super) findings: u64,
    /// Largest share of the budget that an input took.
    shares: [f64; 4],
    /// Per byte of input, without the base.
    ratios: [f64; 4],
    most: [u64; 4],
    /// Per file, and per byte of it.
    budgets: [[u64; 2]; 4],
    /// Extra multiples of declared GPU memory.
    memory: u64,
}

impl Cost {
    /// Another budget resets the maxima. Runs with findings add none: those get fixed.
    pub(super) fn add(&mut self, more: &Self) {
        let same = self.budgets == more.budgets && self.memory == more.memory;
        let before = if same { self.clone() } else { Self::default() };
        let within = if more.findings > 0 { &before } else { more };
        let greater = |a: [f64; 4], b: [f64; 4]| [0, 1, 2, 3].map(|i| a[i].max(b[i]));
        *self = Self {
            inputs: self.inputs + more.inputs,
            seconds: self.seconds + more.seconds,
            findings: self.findings + more.findings,
            shares: greater(before.shares, within.shares),
            ratios: greater(before.ratios, within.ratios),
            most: [0, 1, 2, 3].map(|i| before.most[i].max(within.most[i])),
            budgets: more.budgets,
            memory: more.memory,
        };
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Costs {
    pub(super) steps: bool,
    pub(super) next_seed: u64,
    pub(super) commands: BTreeMap<String, Cost>,
}

pub(super) fn path() -> PathBuf {
    root().join("fuzz/costs.json")
}

pub(super) fn read() -> Result<Costs> {
    kept(&path())
}

pub(super) fn add(run: &Costs) -> Result<()> {
    let mut all = read()?;
    all.steps = run.steps;
    all.next_seed = run.next_seed.max(all.next_seed);
    for (name, cost) in &run.commands {
        all.commands.entry(name.clone()).or_default().add(cost);
    }
    keep(&path(), &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(inputs: u64, findings: u64, share: f64) -> Cost {
        Cost {
            inputs,
            findings,
            shares: [share; 4],
            most: [inputs; 4],
            budgets: [[1, 2]; 4],
            ..Cost::default()
        }
    }

    #[test]
    fn runs_add_up_and_what_was_mended_is_no_share() {
        let mut all = Cost::default();
        all.add(&cost(5, 0, 0.5));
        all.add(&cost(7, 0, 0.25));
        assert_eq!((all.inputs, all.findings, all.shares), (12, 0, [0.5; 4]));
        all.add(&cost(1, 1, 3.0));
        assert_eq!((all.inputs, all.findings, all.shares), (13, 1, [0.5; 4]));
        let mut other = cost(1, 0, 0.1);
        other.budgets = [[3, 4]; 4];
        all.add(&other);
        assert_eq!((all.inputs, all.shares), (14, [0.1; 4]));
    }
}
