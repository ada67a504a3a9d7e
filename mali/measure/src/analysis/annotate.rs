// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader's text with findings.

use std::collections::BTreeMap;
use std::fmt::Write;

use gpureplay_analysis::report::{Clause, Memory, Report};

use crate::Shown;

/// Findings in all jobs of one shader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// Indices.
    pub jobs: Vec<usize>,
    clauses: BTreeMap<u64, Clause>,
    findings: BTreeMap<(u64, Finding), Found>,
    line_bytes: u64,
    warp_lanes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    Race,
    Unwritten,
    WrittenOutside,
    ReadOutside,
}

#[derive(Clone, Debug, PartialEq)]
struct Found {
    text: String,
    /// Bytes, or how often.
    sum: u64,
    jobs: Vec<usize>,
}

impl Notes {
    /// `None` if no reported job ran it.
    pub fn of(report: &Report, code: Shown<'_>) -> Option<Notes> {
        let kernel = format!("{:016x}", code.hash());
        let mut notes = Notes {
            line_bytes: report.line_bytes,
            warp_lanes: report.warp_lanes,
            ..Notes::default()
        };
        for job in &report.jobs {
            let (Some(hash), Some(shader)) = (&job.kernel, job.shader) else {
                continue;
            };
            if *hash != kernel {
                continue;
            }
            notes.jobs.push(job.index);
            for clause in &job.clauses {
                let at = clause.address.wrapping_sub(shader);
                match notes.clauses.get_mut(&at) {
                    Some(sum) => add(sum, clause),
                    None => {
                        notes.clauses.insert(at, clause.clone());
                    }
                }
            }
            for race in &job.races {
                let [first, second] = race.clauses.map(|clause| clause.wrapping_sub(shader));
                let places = [first, second].into_iter();
                for at in places.take(if first == second { 1 } else { 2 }) {
                    let text = format!(
                        "race: {} of {} and {}, first at {}",
                        race.kind.name(),
                        code.place(first),
                        code.place(second),
                        race.at
                    );
                    notes.note(at, Finding::Race, race.times, job.index, text);
                }
            }
            for found in &job.uninit {
                let text = format!("reads uninitialised bytes, first at {}", found.at);
                let at = found.clause.wrapping_sub(shader);
                notes.note(at, Finding::Unwritten, found.bytes, job.index, text);
            }
            for found in &job.outside {
                let (verb, kind) = match found.writes {
                    true => ("writes", Finding::WrittenOutside),
                    false => ("reads", Finding::ReadOutside),
                };
                let text = format!("{verb} bytes outside of tensors, first at {}", found.at);
                let at = found.clause.wrapping_sub(shader);
                notes.note(at, kind, found.bytes, job.index, text);
            }
        }
        (!notes.jobs.is_empty()).then_some(notes)
    }

    fn lines(&self, offset: u64) -> Vec<String> {
        let mut lines = Vec::new();
        match self.clauses.get(&offset) {
            Some(clause) => {
                if clause.warps > 0 {
                    lines.push(format!(
                        "{} warps, {} lanes, {:.1} of {} lanes active, {:.1} % divergent",
                        clause.warps,
                        clause.lanes,
                        clause.lanes as f64 / clause.warps as f64,
                        self.warp_lanes,
                        100.0 * clause.divergent as f64 / clause.warps as f64
                    ));
                }
                lines.extend(clause.memory.map(|memory| self.memory(&memory)));
            }
            None if !self.clauses.is_empty() => lines.push("never executed".into()),
            None => {}
        }
        let here = (offset, Finding::Race)..=(offset, Finding::ReadOutside);
        for ((_, kind), found) in self.findings.range(here) {
            let unit = if *kind == Finding::Race {
                "times"
            } else {
                "bytes"
            };
            let jobs = match found.jobs.as_slice() {
                [one] => format!("job {one}"),
                [first, .., last] => format!("{} jobs, {first} to {last}", found.jobs.len()),
                [] => String::new(),
            };
            lines.push(format!("{} ({} {unit}, {jobs})", found.text, found.sum));
        }
        lines
    }

    fn note(&mut self, at: u64, kind: Finding, sum: u64, job: usize, text: String) {
        let found = self.findings.entry((at, kind)).or_insert(Found {
            text,
            sum: 0,
            jobs: Vec::new(),
        });
        found.sum = found.sum.saturating_add(sum);
        if found.jobs.last() != Some(&job) {
            found.jobs.push(job);
        }
    }

    fn memory(&self, memory: &Memory) -> String {
        let mut text = format!(
            "{} B read, {} B written, {} lines in {} accesses of warps",
            memory.read, memory.written, memory.lines, memory.accesses
        );
        if let Some(share) = memory.share(self.line_bytes) {
            let _ = write!(text, ", {:.0} % of their bytes used", 100.0 * share);
        }
        text
    }

    /// Clauses or blocks, with notes.
    pub fn pieces(&self, code: Shown<'_>) -> Vec<(Vec<String>, String)> {
        let found = self.findings.keys().map(|(at, _)| *at);
        let pieces = code.pieces(self.clauses.keys().copied().chain(found));
        pieces
            .into_iter()
            .map(|(at, text)| (self.lines(at), text))
            .collect()
    }

    /// Shader's text with notes.
    pub fn text(&self, code: Shown<'_>) -> String {
        let mut text = String::new();
        for (number, (lines, piece)) in self.pieces(code).into_iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            for line in lines {
                let _ = writeln!(text, "# {line}");
            }
            text += &piece;
        }
        text
    }
}

fn add(sum: &mut Clause, clause: &Clause) {
    sum.warps = sum.warps.saturating_add(clause.warps);
    sum.lanes = sum.lanes.saturating_add(clause.lanes);
    sum.divergent = sum.divergent.saturating_add(clause.divergent);
    match (&mut sum.memory, &clause.memory) {
        (Some(sum), Some(memory)) => sum.add(memory),
        (sum @ None, memory) => *sum = *memory,
        (Some(_), None) => {}
    }
}
