// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses of a run as tables.

use std::io::Write;

use gpureplay_jobs::analysis::report::{Job, Memory, Report, Verdict};
use gpureplay_library::text;

use crate::Result;

const SHOWN: usize = 8;

pub(crate) fn print(out: &mut impl Write, report: &Report) -> Result<()> {
    writeln!(
        out,
        "{} on {}, {}, warps of {} lanes",
        report.recording,
        report.gpu,
        text::count(report.jobs.len() as u64, "job"),
        report.warp_lanes
    )?;
    for verdict in &report.verdicts {
        let note = match verdict.verdict {
            Verdict::Incomplete => " (nothing was found, but not everything was looked at)".into(),
            Verdict::Found => found_in(report, &verdict.what),
            Verdict::Clean => String::new(),
        };
        writeln!(out, "{:14} {}{note}", verdict.what, verdict.verdict.name())?;
    }
    for job in &report.jobs {
        if job.kind == "COMPUTE" || !job.incomplete.is_empty() {
            print_job(out, report, job)?;
        }
    }
    Ok(())
}

fn found_in(report: &Report, what: &str) -> String {
    let found = |job: &&Job| match what {
        "races" => !job.races.is_empty() || !job.conflicts.is_empty(),
        "uninit" => !job.uninit.is_empty(),
        _ => !job.outside.is_empty(),
    };
    let jobs: Vec<String> = report
        .jobs
        .iter()
        .filter(found)
        .map(|job| job.index.to_string())
        .collect();
    let more = if jobs.len() > SHOWN { ", …" } else { "" };
    let first = jobs.get(..SHOWN).unwrap_or(&jobs).join(", ");
    let count = text::count(jobs.len() as u64, "job");
    format!(" in {count}: {first}{more}")
}

fn asked(report: &Report, what: &str) -> bool {
    report.what.iter().any(|asked| asked == what)
}

fn print_job(out: &mut impl Write, report: &Report, job: &Job) -> Result<()> {
    let title = job.name.as_ref().or(job.kernel.as_ref());
    let layer = job.layer.as_deref().unwrap_or("-");
    let shape = |shape: Option<[u32; 3]>| {
        shape.map_or_else(|| "-".into(), |[x, y, z]| format!("{x}x{y}x{z}"))
    };
    writeln!(out)?;
    writeln!(
        out,
        "job {:<4} {layer}  {}  {} groups of {}",
        job.index,
        title.map_or(job.kind.as_str(), String::as_str),
        shape(job.groups),
        shape(job.local)
    )?;
    for why in &job.incomplete {
        writeln!(out, "  not complete: {why}")?;
    }
    let sum = |of: fn(&gpureplay_jobs::analysis::report::Clause) -> u64| -> u64 {
        job.clauses.iter().map(of).sum()
    };
    let (warps, lanes, divergent) = (
        sum(|clause| clause.warps),
        sum(|clause| clause.lanes),
        sum(|clause| clause.divergent),
    );
    if warps > 0 && asked(report, "counts") {
        let instructions = sum(|clause| {
            let own = u64::from(clause.fma) + u64::from(clause.add);
            clause.lanes * (own + u64::from(clause.messages))
        });
        writeln!(
            out,
            "  counts      {} clauses, {warps} executions by warps, {lanes} by lanes, {instructions} instructions",
            job.clauses.len()
        )?;
    }
    if warps > 0 {
        writeln!(
            out,
            "  divergence  {:.2} of {} lanes active, {:.1} % of executions divergent",
            lanes as f64 / warps as f64,
            report.warp_lanes,
            100.0 * divergent as f64 / warps as f64
        )?;
    }
    let mut memory = Memory::default();
    let with_memory = job.clauses.iter().filter_map(|clause| clause.memory);
    with_memory.for_each(|one| memory.add(&one));
    if let Some(share) = memory.share(report.line_bytes) {
        writeln!(
            out,
            "  lines       {:.1} % used: {} of {} in {} lines; {:.2} lines for each access of a warp",
            100.0 * share,
            text::bytes(memory.used),
            text::bytes(memory.lines * report.line_bytes),
            memory.lines,
            memory.lines as f64 / memory.accesses.max(1) as f64
        )?;
    }
    for area in &job.heat {
        writeln!(
            out,
            "  heat        {:24} {:>9} read, {:>9} written, {} of {} lines",
            area.name,
            text::bytes(area.read),
            text::bytes(area.written),
            area.lines,
            area.bytes.div_ceil(report.line_bytes)
        )?;
    }
    print_findings(out, job)
}

fn print_findings(out: &mut impl Write, job: &Job) -> Result<()> {
    let line = |clause: u64, text: &Option<String>| {
        format!("{clause:#x}  {}", text.as_deref().unwrap_or("?"))
    };
    for race in job.races.iter().take(SHOWN) {
        let [first, second] = &race.instructions;
        writeln!(
            out,
            "  race        {} at {} of threads {} and {} ({}{}), {} times",
            race.kind.name(),
            race.at,
            race.threads[0],
            race.threads[1],
            match race.across_groups {
                true => "of different groups",
                false => "of one group",
            },
            match race.group_storage {
                true => ", in its storage",
                false => "",
            },
            race.times
        )?;
        for (clause, text) in race.clauses.into_iter().zip([first, second]) {
            writeln!(out, "              {}", line(clause, text))?;
        }
    }
    for race in job.conflicts.iter().take(SHOWN) {
        let [first, second] = &race.instructions;
        writeln!(
            out,
            "  race        {} at {} with job {}, which may run at the same time, {} words",
            race.kind.name(),
            race.at,
            race.with,
            race.words
        )?;
        for (job, clause, text) in [
            (race.with, race.clauses[0], first),
            (job.index, race.clauses[1], second),
        ] {
            writeln!(out, "              job {job} {}", line(clause, text))?;
        }
    }
    for found in job.uninit.iter().take(SHOWN) {
        writeln!(
            out,
            "  unwritten   {} read uninitialised, first at {} by thread {}",
            text::bytes(found.bytes),
            found.at,
            found.thread
        )?;
        let at = line(found.clause, &found.instruction);
        writeln!(out, "              {at}")?;
    }
    for found in job.outside.iter().take(SHOWN) {
        writeln!(
            out,
            "  outside     {} {} outside of tensors, {:#x} to {:#x}, first at {} by thread {}",
            text::bytes(found.bytes),
            if found.writes { "written" } else { "read" },
            found.address,
            found.last,
            found.at,
            found.thread
        )?;
        let at = line(found.clause, &found.instruction);
        writeln!(out, "              {at}")?;
    }
    let lists = [
        job.races.len(),
        job.conflicts.len(),
        job.uninit.len(),
        job.outside.len(),
    ];
    let more: usize = lists.iter().map(|count| count.saturating_sub(SHOWN)).sum();
    if more > 0 {
        writeln!(out, "  … and {more} more, which --json lists")?;
    }
    Ok(())
}
