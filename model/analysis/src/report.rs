// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings for text, JSON and pages. Bytes and lanes are sums over threads.

use serde::{Deserialize, Serialize};

use crate::map::AreaKind;

/// Changes when a field changes its meaning or goes away.
pub const FORMAT: &str = "gpureplay-analysis 1";

/// The analyses of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name and version of this structure: `gpureplay-analysis 1`.
    pub format: String,
    /// Name of the recording.
    pub recording: String,
    /// SHA-256 of the file in hexadecimal.
    pub recording_sha256: String,
    /// The GPU that was modelled.
    pub gpu: String,
    /// Lanes of a warp on this GPU.
    pub warp_lanes: u32,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Which analyses were asked for.
    pub what: Vec<String>,
    /// What each analysis that looks for errors found, over all jobs.
    pub verdicts: Vec<NamedVerdict>,
    /// Why the run ended before its end, if it did.
    pub ended_early: Option<String>,
    /// The jobs that were looked into, in the order in which they ran.
    pub jobs: Vec<Job>,
}

/// The verdict of one analysis.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVerdict {
    /// Name of the analysis.
    pub what: String,
    /// What it says.
    pub verdict: Verdict,
}

/// What an analysis that looks for errors says.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything was looked at, and nothing found.
    Clean,
    /// Nothing was found, but not everything was looked at.
    Incomplete,
    /// Something was found.
    Found,
}

impl Verdict {
    /// Verdict from finding and completeness.
    pub fn of(found: bool, complete: bool) -> Verdict {
        match (found, complete) {
            (true, _) => Verdict::Found,
            (false, false) => Verdict::Incomplete,
            (false, true) => Verdict::Clean,
        }
    }

    /// Word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Incomplete => "incomplete",
            Verdict::Found => "found",
        }
    }
}

/// One job.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number in the recording, from 0, set-up included.
    pub index: usize,
    /// Address of its descriptor.
    pub address: u64,
    /// Its type: `COMPUTE`, `WRITE_VALUE`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is called, where the manifest knows it.
    pub name: Option<String>,
    /// Its layer.
    pub layer: Option<String>,
    /// Address of its shader.
    pub shader: Option<u64>,
    /// Hash of its shader, 16 hexadecimal digits.
    pub kernel: Option<String>,
    /// Threads of a work group by dimension.
    pub local: Option<[u32; 3]>,
    /// Work groups by dimension.
    pub groups: Option<[u32; 3]>,
    /// Why not everything was looked at; empty if everything was.
    pub incomplete: Vec<String>,
    /// What the model counted by itself, without analysers.
    pub totals: Option<Totals>,
    /// Bytes of thread storage that were accessed, which the analyses leave out.
    pub thread_storage_bytes: u64,
    /// Bytes of storage of work groups that were accessed, which are not in the heat maps: where it lies is a matter of chance.
    pub group_storage_bytes: u64,
    /// Executions and accesses by clause, by ascending address.
    pub clauses: Vec<Clause>,
    /// Heat by area, in the order of the recording.
    pub heat: Vec<AreaHeat>,
    /// Heat by page, by ascending address: the first [`MOST_PAGES`].
    pub pages: Vec<PageHeat>,
    /// Pages behind those.
    pub pages_left_out: u64,
    /// Races.
    pub races: Vec<Race>,
    /// Reads of uninitialised memory.
    pub uninit: Vec<Unwritten>,
    /// Accesses outside of tensors.
    pub outside: Vec<Outside>,
    /// Races with earlier jobs of its chain that may run at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

impl Job {
    /// Touched lines, once per warp's access.
    pub fn lines(&self) -> u64 {
        let memory = self.clauses.iter().filter_map(|it| it.memory.as_ref());
        memory.fold(0, |sum, memory| sum.saturating_add(memory.lines))
    }
}

/// Pages of a job in a report.
pub const MOST_PAGES: usize = 1024;

/// Counts of the model.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Threads.
    pub threads: u64,
    /// Instructions of the FMA unit.
    pub fma: u64,
    /// Instructions of the ADD unit, without messages.
    pub add: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes that loads read.
    pub bytes_read: u64,
    /// Bytes that stores wrote.
    pub bytes_written: u64,
}

/// A clause.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clause {
    /// Its address.
    pub address: u64,
    /// Executions by warps.
    pub warps: u64,
    /// Executions by lanes: each of its instructions was executed as often.
    pub lanes: u64,
    /// Executions by warps of which lanes that had not ended were elsewhere.
    pub divergent: u64,
    /// Its instructions of the FMA unit.
    pub fma: u32,
    /// Its instructions of the ADD unit, without messages.
    pub add: u32,
    /// Its message, if it has one; of several, the first.
    pub message: Option<String>,
    /// How many messages it has: on Valhall, where a clause is a block of up to 16 instructions, there may be several.
    #[serde(default)]
    pub messages: u32,
    /// What its messages did to memory.
    pub memory: Option<Memory>,
}

/// Accesses of an instruction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Accesses of warps.
    pub accesses: u64,
    /// Bytes that lanes asked for.
    pub asked: u64,
    /// Those without what several lanes of a warp asked for.
    pub used: u64,
    /// Lines that were touched, once for each access of a warp.
    pub lines: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Memory {
    /// Adds another instruction's.
    pub fn add(&mut self, other: &Memory) {
        self.accesses = self.accesses.saturating_add(other.accesses);
        self.asked = self.asked.saturating_add(other.asked);
        self.used = self.used.saturating_add(other.used);
        self.lines = self.lines.saturating_add(other.lines);
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
    }

    /// Used share of its lines, 0 to 1.
    pub fn share(&self, line_bytes: u64) -> Option<f64> {
        let touched = self
            .lines
            .checked_mul(line_bytes)
            .filter(|&bytes| bytes > 0)?;
        Some(self.used as f64 / touched as f64)
    }
}

/// Heat of an area: a tensor, or what of a region belongs to no tensor.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaHeat {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: AreaKind,
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Its lines that were read or written.
    pub lines: u64,
    /// Bytes of each cell.
    pub cell_bytes: u64,
    /// Bytes read and written by cell.
    pub cells: Vec<[u64; 2]>,
}

/// Heat of a page.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageHeat {
    /// Its address.
    pub address: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// How two accesses race.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceKind {
    /// Both write, different values.
    WriteWrite,
    /// One reads, the other writes.
    ReadWrite,
    /// One of them is an atomic operation, the other is none.
    Atomic,
    /// Both write the same value.
    SameValue,
}

impl RaceKind {
    /// Words in reports.
    pub fn name(self) -> &'static str {
        match self {
            RaceKind::WriteWrite => "two writes",
            RaceKind::ReadWrite => "a read and a write",
            RaceKind::Atomic => "an atomic operation and another access",
            RaceKind::SameValue => "two writes of the same value",
        }
    }
}

/// Two instructions that race.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Race {
    /// How.
    pub kind: RaceKind,
    /// Addresses of their clauses: whose access came first, whose came second.
    pub clauses: [u64; 2],
    /// Their text, where the shader is known.
    pub instructions: [Option<String>; 2],
    /// In storage of a work group.
    pub group_storage: bool,
    /// The threads are of different work groups.
    pub across_groups: bool,
    /// How often a byte or word was raced for.
    pub times: u64,
    /// The first.
    pub address: u64,
    /// What is there.
    pub at: String,
    /// The threads of the first.
    pub threads: [u64; 2],
}

/// Instructions of two jobs that race.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Number of the earlier job.
    pub with: usize,
    /// How. Whether two writes are of the same value is not looked at.
    pub kind: RaceKind,
    /// Addresses of their clauses: of the earlier job, of this one.
    pub clauses: [u64; 2],
    /// Their text, where the shader is known.
    pub instructions: [Option<String>; 2],
    /// Words of memory that they race for.
    pub words: u64,
    /// The first.
    pub address: u64,
    /// What is there.
    pub at: String,
}

/// Reads of uninitialised memory by one instruction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    /// Address of its clause.
    pub clause: u64,
    /// Its text, where the shader is known.
    pub instruction: Option<String>,
    /// In storage of a work group.
    pub group_storage: bool,
    /// Reads by lanes.
    pub lanes: u64,
    /// Bytes that were not written.
    pub bytes: u64,
    /// The first of them.
    pub address: u64,
    /// What is there.
    pub at: String,
    /// The thread that read it.
    pub thread: u64,
}

/// Accesses of one instruction outside of tensors.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Address of its clause.
    pub clause: u64,
    /// Its text, where the shader is known.
    pub instruction: Option<String>,
    /// It writes.
    pub writes: bool,
    /// Accesses by lanes.
    pub lanes: u64,
    /// Bytes outside.
    pub bytes: u64,
    /// The lowest address.
    pub address: u64,
    /// The highest address.
    pub last: u64,
    /// What is at the lowest.
    pub at: String,
    /// The thread that accessed the lowest.
    pub thread: u64,
}

impl Report {
    /// Completes the verdicts from the jobs.
    pub fn judge(&mut self) {
        type Finds = fn(&Job) -> bool;
        let kinds: [(&str, Finds); 3] = [
            ("races", |job| {
                !job.races.is_empty() || !job.conflicts.is_empty()
            }),
            ("uninit", |job| !job.uninit.is_empty()),
            ("out-of-tensor", |job| !job.outside.is_empty()),
        ];
        let complete =
            self.ended_early.is_none() && self.jobs.iter().all(|job| job.incomplete.is_empty());
        let asked = |what: &str| self.what.iter().any(|asked| asked == what);
        let judged = kinds.into_iter().filter(|(what, _)| asked(what));
        self.verdicts = judged
            .map(|(what, finds)| NamedVerdict {
                what: what.into(),
                verdict: Verdict::of(self.jobs.iter().any(finds), complete),
            })
            .collect();
    }

    /// Of an analysis that was asked for.
    pub fn verdict(&self, what: &str) -> Option<Verdict> {
        let verdict = self.verdicts.iter().find(|verdict| verdict.what == what);
        verdict.map(|verdict| verdict.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stopped_early_is_never_clean() {
        let mut report = Report {
            what: vec!["races".into(), "heat".into()],
            jobs: vec![Job::default()],
            ..Report::default()
        };
        report.judge();
        assert_eq!(report.verdict("races"), Some(Verdict::Clean));
        assert_eq!(report.verdict("heat"), None, "it looks for no errors");
        report.ended_early = Some("a job failed".into());
        report.judge();
        assert_eq!(report.verdict("races"), Some(Verdict::Incomplete));
        report.ended_early = None;
        report.jobs[0].incomplete.push("textures".into());
        report.judge();
        assert_eq!(report.verdict("races"), Some(Verdict::Incomplete));
    }
}
