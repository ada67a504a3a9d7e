// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shader as text with what analyses found beside its clauses.

use std::collections::BTreeMap;
use std::fmt::Write;

use mali_analysis::report::{Clause, Memory, Report};
use mali_isa::{ClauseText, Shader};

/// What analyses found in all jobs of a report that run one shader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// The jobs.
    pub jobs: Vec<usize>,
    /// Clauses by offset in the shader.
    clauses: BTreeMap<u64, Clause>,
    /// Findings by offset of the clause, as text.
    findings: BTreeMap<u64, Vec<String>>,
    line_bytes: u64,
    warp_lanes: u32,
}

impl Notes {
    /// The notes on the shader with this hash; `None` if no job of the report ran it.
    pub fn of(report: &Report, kernel: &str) -> Option<Notes> {
        let mut notes = Notes {
            line_bytes: report.line_bytes,
            warp_lanes: report.warp_lanes,
            ..Notes::default()
        };
        for job in &report.jobs {
            let (Some(hash), Some(shader)) = (&job.kernel, job.shader) else {
                continue;
            };
            if hash != kernel {
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
            let mut note = |clause: u64, text: String| {
                let findings = notes.findings.entry(clause.wrapping_sub(shader));
                findings.or_default().push(text);
            };
            for race in &job.races {
                let other = race.clauses.map(|clause| clause.wrapping_sub(shader) / 16);
                for clause in race.clauses {
                    note(
                        clause,
                        format!(
                            "race in job {}: {} of clause_{} and clause_{}, {} times, first at {}",
                            job.index,
                            race.kind.name(),
                            other[0],
                            other[1],
                            race.times,
                            race.at
                        ),
                    );
                    if race.clauses[0] == race.clauses[1] {
                        break;
                    }
                }
            }
            for found in &job.uninit {
                note(
                    found.clause,
                    format!(
                        "job {} reads {} bytes that nobody wrote, first at {}",
                        job.index, found.bytes, found.at
                    ),
                );
            }
            for found in &job.outside {
                let verb = if found.writes { "writes" } else { "reads" };
                note(
                    found.clause,
                    format!(
                        "job {} {verb} {} bytes outside of tensors, first at {}",
                        job.index, found.bytes, found.at
                    ),
                );
            }
        }
        (!notes.jobs.is_empty()).then_some(notes)
    }

    /// The lines for the clause at an offset.
    pub fn lines(&self, offset: u64) -> Vec<String> {
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
        lines.extend(self.findings.get(&offset).into_iter().flatten().cloned());
        lines
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

    /// The shader with these notes.
    pub fn text(&self, shader: &Shader) -> String {
        let mut text = String::new();
        for (number, placed) in shader.clauses.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            for line in self.lines(placed.offset.into()) {
                let _ = writeln!(text, "# {line}");
            }
            let _ = write!(
                text,
                "{}",
                ClauseText {
                    clause: &placed.clause,
                    offset: placed.offset,
                }
            );
        }
        text
    }
}

fn add(sum: &mut Clause, clause: &Clause) {
    sum.warps += clause.warps;
    sum.lanes += clause.lanes;
    sum.divergent += clause.divergent;
    match (&mut sum.memory, &clause.memory) {
        (Some(sum), Some(memory)) => sum.add(memory),
        (sum @ None, memory) => *sum = *memory,
        (Some(_), None) => {}
    }
}
