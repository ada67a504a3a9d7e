// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times and work of jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How times and work were found.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The device.
    pub device: String,
    /// Clock of all seconds of the report: `host`, the clock of the machine that replays, from the start command of a chain until
    /// its end is known. On the model it says how fast the model is, not the GPU.
    pub clock: String,
    /// What counts of work are: `model`, what the model's shader cores did. Nothing on devices that do not count.
    pub work: Option<String>,
    /// Runs that were counted.
    pub runs: u32,
    /// Runs before them that were not.
    pub warmup: u32,
}

/// What the model's shader cores did for a job. Operations count once for each thread that took part.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Work groups that ran.
    pub workgroups: u64,
    /// Threads that ran.
    pub threads: u64,
    /// Instructions of all units, without those that do nothing: `fma`, `add` and `messages` together.
    pub instructions: u64,
    /// Of these, those of the FMA unit.
    pub fma: u64,
    /// Those of the ADD unit, without messages.
    pub add: u64,
    /// Messages by kind: loads, stores, ….
    pub messages: BTreeMap<String, u64>,
    /// Bytes that loads read.
    pub bytes_read: u64,
    /// Bytes that stores wrote.
    pub bytes_written: u64,
}

impl Work {
    /// Figures from the model's counts.
    pub fn of(counts: &mali_model::Statistics) -> Self {
        let messages = counts.messages_by_kind();
        Self {
            workgroups: counts.workgroups,
            threads: counts.threads,
            instructions: counts.lane_operations(),
            fma: counts.fma,
            add: counts.add,
            messages: messages
                .map(|(kind, count)| (kind.to_owned(), count))
                .collect(),
            bytes_read: counts.bytes_read,
            bytes_written: counts.bytes_written,
        }
    }

    /// Adds another job's work.
    pub fn add(&mut self, other: &Self) {
        self.workgroups = self.workgroups.saturating_add(other.workgroups);
        self.threads = self.threads.saturating_add(other.threads);
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.fma = self.fma.saturating_add(other.fma);
        self.add = self.add.saturating_add(other.add);
        for (kind, count) in &other.messages {
            let sum = self.messages.entry(kind.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
    }
}
