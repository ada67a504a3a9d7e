// SPDX-License-Identifier: MIT OR Apache-2.0
//! One HTML file that loads nothing. The script shows data, which are JSON, as text: a recording's names cannot
//! become part of the page.

use crate::{Jobs, Report as JobReport};
use gpureplay_analysis::report::{AreaHeat, Job, NamedVerdict, Outside, Race, Report, Unwritten};
use serde::Serialize;

use crate::analysis::annotate::Notes;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The GPU's peaks, which only the user knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peaks {
    /// Of threads, per second.
    pub instructions: Option<f64>,
    /// Of memory, per second.
    pub bytes: Option<f64>,
}

#[derive(Serialize)]
struct Data<'a> {
    report: &'a JobReport,
    peaks: Peaks,
    analysis: Option<Analysis<'a>>,
    shaders: Vec<Shader>,
}

#[derive(Serialize)]
struct Analysis<'a> {
    what: &'a [String],
    warp_lanes: u32,
    line_bytes: u64,
    ended_early: Option<&'a str>,
    verdicts: &'a [NamedVerdict],
    jobs: Vec<AnalysedJob<'a>>,
}

#[derive(Serialize)]
struct AnalysedJob<'a> {
    index: usize,
    incomplete: &'a [String],
    /// Executions by warps, by lanes, by warps that had parted.
    warps: u64,
    lanes: u64,
    divergent: u64,
    used: u64,
    lines: u64,
    accesses: u64,
    heat: Vec<Heat<'a>>,
    findings: usize,
    races: &'a [Race],
    uninit: &'a [Unwritten],
    outside: &'a [Outside],
}

#[derive(Serialize)]
struct Heat<'a> {
    name: &'a str,
    kind: gpureplay_analysis::AreaKind,
    address: u64,
    bytes: u64,
    read: u64,
    written: u64,
    cell_bytes: u64,
    /// Per cell, 0 to 9 and a to z: a logarithm of its bytes' average reads.
    reads: String,
    writes: String,
}

#[derive(Serialize)]
struct Shader {
    hash: String,
    names: Vec<String>,
    jobs: Vec<usize>,
    clauses: Vec<ShaderClause>,
}

#[derive(Serialize)]
struct ShaderClause {
    notes: Vec<String>,
    text: String,
}

/// Two steps per doubling, from an eighth of a read per byte: 0 is none, 35 more than sixteen thousand.
fn level(bytes: u64, cell: u64) -> char {
    if bytes == 0 {
        return '0';
    }
    let times = bytes as f64 / cell.max(1) as f64;
    let level = (2.0 * (times.log2() + 3.0)).round().clamp(0.0, 34.0) as u32 + 1;
    char::from_digit(level, 36).unwrap_or('z')
}

fn heat(area: &AreaHeat) -> Heat<'_> {
    let levels = |which: usize| {
        let cells = area.cells.iter();
        cells
            .map(|cell| level(cell[which], area.cell_bytes))
            .collect()
    };
    Heat {
        name: &area.name,
        kind: area.kind,
        address: area.address,
        bytes: area.bytes,
        read: area.read,
        written: area.written,
        cell_bytes: area.cell_bytes,
        reads: levels(0),
        writes: levels(1),
    }
}

const MOST: usize = 6;

fn some<T>(all: &[T]) -> &[T] {
    all.get(..MOST).unwrap_or(all)
}

fn analysed(job: &Job) -> AnalysedJob<'_> {
    let sum =
        |of: &dyn Fn(&gpureplay_analysis::report::Clause) -> u64| job.clauses.iter().map(of).sum();
    let memory = |of: fn(&gpureplay_analysis::report::Memory) -> u64| -> u64 {
        let clauses = job.clauses.iter();
        clauses
            .filter_map(|clause| clause.memory.as_ref().map(of))
            .sum()
    };
    AnalysedJob {
        index: job.index,
        incomplete: &job.incomplete,
        warps: sum(&|clause| clause.warps),
        lanes: sum(&|clause| clause.lanes),
        divergent: sum(&|clause| clause.divergent),
        used: memory(|memory| memory.used),
        lines: memory(|memory| memory.lines),
        accesses: memory(|memory| memory.accesses),
        heat: job.heat.iter().map(heat).collect(),
        findings: job.races.len() + job.uninit.len() + job.outside.len(),
        races: some(&job.races),
        uninit: some(&job.uninit),
        outside: some(&job.outside),
    }
}

fn shaders(report: &JobReport, jobs: &Jobs, analysis: Option<&Report>) -> Vec<Shader> {
    let shader = |kernel: &crate::report::KernelReport| {
        let first = jobs.jobs.get(*kernel.jobs.first()?)?;
        let code = first.code()?.1.ok()?;
        let notes = analysis.and_then(|analysis| Notes::of(analysis, code));
        let pieces = match notes {
            Some(notes) => notes.pieces(code),
            None => {
                let pieces = code.pieces([]).into_iter();
                pieces.map(|(_, text)| (Vec::new(), text)).collect()
            }
        };
        let clauses = pieces.into_iter();
        let clauses = clauses.map(|(notes, text)| ShaderClause { notes, text });
        Some(Shader {
            hash: kernel.hash.clone(),
            names: kernel.names.clone(),
            jobs: kernel.jobs.clone(),
            clauses: clauses.collect(),
        })
    };
    report.kernels.iter().filter_map(shader).collect()
}

/// HTML of a report, with analyses if any.
///
/// # Errors
/// Data are no JSON, which never happens.
pub fn page(
    report: &JobReport,
    jobs: &Jobs,
    analysis: Option<&Report>,
    peaks: Peaks,
) -> Result<String, serde_json::Error> {
    let data = Data {
        report,
        peaks,
        analysis: analysis.map(|analysis| Analysis {
            what: &analysis.what,
            warp_lanes: analysis.warp_lanes,
            line_bytes: analysis.line_bytes,
            ended_early: analysis.ended_early.as_deref(),
            verdicts: &analysis.verdicts,
            jobs: analysis.jobs.iter().map(analysed).collect(),
        }),
        shaders: shaders(report, jobs, analysis),
    };
    Ok(fill(&embedded(&serde_json::to_string(&data)?)))
}

/// Escapes starts of tags and entities, and line ends that only scripts know.
fn embedded(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text
}

fn fill(data: &str) -> String {
    let mut text = String::with_capacity(HTML.len() + STYLE.len() + SCRIPT.len() + data.len());
    let mut rest = HTML;
    for (mark, with) in [
        ("/*STYLE*/", STYLE),
        ("/*DATA*/", data),
        ("/*SCRIPT*/", SCRIPT),
    ] {
        if let Some((before, after)) = rest.split_once(mark) {
            text.push_str(before);
            text.push_str(with);
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_no_element() {
        let json = serde_json::to_string("</script><b>&\u{2028}").unwrap();
        let text = embedded(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: String = serde_json::from_str(&text).unwrap();
        assert_eq!(back, "</script><b>&\u{2028}");
    }

    #[test]
    fn marks_in_data_are_data() {
        let page = fill("\"/*SCRIPT*/\"");
        assert_eq!(page.matches("/*SCRIPT*/").count(), 1);
        assert!(page.ends_with("</html>\n") && page.contains(SCRIPT) && page.contains(STYLE));
    }

    #[test]
    fn levels_are_logarithms() {
        assert_eq!(
            [level(0, 64), level(8, 64), level(64, 64), level(1, 64)],
            ['0', '1', '7', '1']
        );
        assert_eq!(level(u64::MAX, 1), 'z');
    }
}
