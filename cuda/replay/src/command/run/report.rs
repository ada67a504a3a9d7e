// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a replay of a launch showed.

use crate::{Sizes, Times, Verdict};
use serde::Serialize;

use super::Evidence;
use crate::command::failure::Failure;
use crate::command::report::{self, say, say_json};

/// What a replay showed, for `--json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct RunReport<'a> {
    kernel: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    /// Registers of a thread.
    registers: u32,
    /// Nothing was launched (`--null`): it should differ.
    null: bool,
    /// `exact`, `within`, `differs` or `inconclusive`; `unverified` with `--no-verify`.
    verdict: &'static str,
    /// Nothing if it was not timed.
    times: Option<TimesReport>,
    difference: Option<DifferenceReport>,
    /// What was changed before the launch: `results` or `inputs`.
    changed: Option<&'static str>,
    changed_bytes: Option<u64>,
    /// Bytes that the recorded kernel was seen to write.
    written_bytes: Option<u64>,
}

/// Times in microseconds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct TimesReport {
    runs: usize,
    /// `cold` or `warm`: the second-level cache before each run.
    cache: &'static str,
    median_us: f64,
    least_us: f64,
    spread_us: f64,
}

impl TimesReport {
    pub(crate) fn of(times: &Times, cache: &'static str) -> Option<Self> {
        (times.runs() > 0).then(|| Self {
            runs: times.runs(),
            cache,
            median_us: times.median(),
            least_us: times.least(),
            spread_us: times.spread(),
        })
    }
}

/// Where a replay differs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct DifferenceReport {
    /// How many elements differ.
    elements: u64,
    /// Address of the first.
    first: u64,
}

pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) sizes: Sizes,
    pub(super) registers: u32,
    pub(super) times: Times,
    pub(super) cache: &'static str,
    pub(super) is_null: bool,
    pub(super) verdict: Option<Verdict>,
    pub(super) evidence: Option<Evidence>,
}

impl Report {
    pub(super) fn say(&self, as_json: bool) -> Result<(), Failure> {
        if !as_json {
            return self.print();
        }
        say_json(&self.json())
    }

    fn print(&self) -> Result<(), Failure> {
        if let (true, Some(verdict)) = (self.is_null, self.verdict) {
            say!("{}: null replay {verdict}", self.kernel);
            return Ok(());
        }
        say!(
            "{}: grid {}, block {}, {} registers",
            self.kernel,
            report::sizes(self.sizes.grid),
            report::sizes(self.sizes.block),
            self.registers
        );
        if self.times.runs() > 0 {
            say!(
                "  {} runs, {} caches: {}",
                self.times.runs(),
                self.cache,
                self.times
            );
        }
        match self.verdict {
            Some(verdict) => say!("  {verdict}"),
            None => say!("  not verified"),
        }
        match &self.evidence {
            Some(Evidence::Poison(poison)) => {
                say!(
                    "  memory held the results already: {} bytes were changed before the launch, of {} that the recorded kernel was seen to write",
                    poison.bytes(),
                    poison.written()
                );
            }
            Some(Evidence::Reaction(reaction)) => {
                say!(
                    "  the kernel writes nothing on recorded memory: {} bytes of its inputs were changed before another launch, upon which the recorded kernel writes {}",
                    reaction.bytes(),
                    reaction.written()
                );
            }
            None => {}
        }
        Ok(())
    }

    fn json(&self) -> RunReport<'_> {
        let bytes = self.evidence.as_ref().map(Evidence::bytes);
        RunReport {
            kernel: &self.kernel,
            grid: self.sizes.grid,
            block: self.sizes.block,
            registers: self.registers,
            null: self.is_null,
            verdict: self.verdict.map_or("unverified", |verdict| verdict.word()),
            times: TimesReport::of(&self.times, self.cache),
            difference: match self.verdict {
                Some(Verdict::Differs(difference)) => Some(DifferenceReport {
                    elements: difference.elements,
                    first: difference.first,
                }),
                _ => None,
            },
            changed: self.evidence.as_ref().map(Evidence::word),
            changed_bytes: bytes.map(|[changed, _]| changed),
            written_bytes: bytes.map(|[_, written]| written),
        }
    }
}
