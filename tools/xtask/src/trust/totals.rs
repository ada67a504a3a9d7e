// SPDX-License-Identifier: MIT OR Apache-2.0
//! All fuzzing so far: fuzz/totals.json.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{keep, kept, root};
use crate::error::Result;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Total {
    pub(super) executions: u64,
    pub(super) seconds: f64,
    pub(super) processor_seconds: f64,
    pub(super) findings: u64,
    /// The last run had a finding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) open: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_seed: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) outcomes: BTreeMap<String, u64>,
}

impl Total {
    pub(super) fn add(&mut self, more: &Self) {
        self.executions += more.executions;
        self.seconds += more.seconds;
        self.processor_seconds += more.processor_seconds;
        self.findings += more.findings;
        self.open = more.findings > 0;
        self.next_seed = more.next_seed.or(self.next_seed);
        for (outcome, count) in &more.outcomes {
            *self.outcomes.entry(outcome.clone()).or_default() += count;
        }
    }
}

fn path() -> PathBuf {
    root().join("fuzz/totals.json")
}

pub(super) fn read() -> Result<BTreeMap<String, Total>> {
    kept(&path())
}

pub(super) fn write(totals: &BTreeMap<String, Total>) -> Result<()> {
    keep(&path(), totals)
}
