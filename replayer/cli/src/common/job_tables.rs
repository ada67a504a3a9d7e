// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of jobs as text, JSON and CSV.

use std::collections::HashMap;
use std::io::Write;

use gpureplay_host::csv;
use gpureplay_host::statistics::Spread;
use gpureplay_jobs::Report;
use gpureplay_jobs::report::{ChainReport, JobReport, KernelReport, Work};

use crate::common::cells::{dash, short};
use crate::common::job_order::Sum;
use crate::common::terminal;
use crate::{Result, text};

/// Characters. A wider cell shifts only its own line, so padding stays bounded.
const WIDEST: usize = 96;

/// One by one; more become ranges, such as `0-13999`.
const LISTED: usize = 32;

pub(crate) fn json(out: &mut impl Write, report: &Report) -> Result<()> {
    terminal::json(out, report)?;
    Ok(out.flush()?)
}

type Columns<T> = &'static [(&'static str, fn(&T) -> String)];

const JOB_COLUMNS: Columns<JobReport> = &[
    ("job", |job| job.index.to_string()),
    ("chain", |job| job.chain.to_string()),
    ("phase", |job| job.phase.clone()),
    ("layer", |job| optional(job.layer.as_ref())),
    ("type", |job| job.kind.clone()),
    ("name", |job| optional(job.name.as_ref())),
    ("launch", |job| optional(job.launch)),
    ("kernel", |job| optional(job.kernel.as_ref())),
    ("occurrences", |job| job.occurrences.to_string()),
    ("local", |job| optional(job.local.map(sizes))),
    ("groups", |job| optional(job.groups.map(sizes))),
    ("global", |job| optional(job.global.map(sizes))),
    ("registers", |job| optional(job.registers)),
    ("registers_allocated", |job| {
        optional(job.registers_allocated)
    }),
    ("thread_storage_bytes", |job| {
        optional(job.thread_storage_bytes)
    }),
    ("group_storage_bytes", |job| {
        optional(job.group_storage_bytes)
    }),
    ("barrier", |job| optional(job.barrier)),
    ("uniform_bytes", |job| optional(job.uniform_bytes)),
    ("threads", |job| {
        counted(job.work.as_ref(), |work| work.threads)
    }),
    ("instructions", |job| {
        counted(job.work.as_ref(), |work| work.instructions)
    }),
    ("fma", |job| counted(job.work.as_ref(), |work| work.fma)),
    ("add", |job| counted(job.work.as_ref(), |work| work.add)),
    ("messages", |job| counted(job.work.as_ref(), messages)),
    ("bytes_read", |job| {
        counted(job.work.as_ref(), |work| work.bytes_read)
    }),
    ("bytes_written", |job| {
        counted(job.work.as_ref(), |work| work.bytes_written)
    }),
    ("model_seconds_median", |job| {
        optional(job.seconds.map(|it| it.median))
    }),
];

const KERNEL_COLUMNS: Columns<KernelReport> = &[
    ("kernel", |kernel| kernel.hash.clone()),
    ("names", |kernel| kernel.names.join(" ")),
    ("jobs", |kernel| numbers(&kernel.jobs)),
    ("occurrences", |kernel| kernel.jobs.len().to_string()),
    ("bytes", |kernel| kernel.bytes.to_string()),
    ("clauses", |kernel| kernel.clauses.to_string()),
    ("code_instructions", |kernel| {
        kernel.instructions.to_string()
    }),
    ("registers", |kernel| kernel.registers.to_string()),
    ("threads", |kernel| {
        counted(kernel.work.as_ref(), |work| work.threads)
    }),
    ("instructions", |kernel| {
        counted(kernel.work.as_ref(), |work| work.instructions)
    }),
    ("messages", |kernel| counted(kernel.work.as_ref(), messages)),
    ("bytes_read", |kernel| {
        counted(kernel.work.as_ref(), |work| work.bytes_read)
    }),
    ("bytes_written", |kernel| {
        counted(kernel.work.as_ref(), |work| work.bytes_written)
    }),
    ("model_seconds_median", |kernel| optional(kernel.seconds)),
    ("memory_lines", |kernel| optional(kernel.memory_lines)),
];

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn counted(work: Option<&Work>, of: fn(&Work) -> u64) -> String {
    optional(work.map(of))
}

fn messages(work: &Work) -> u64 {
    work.messages.values().sum()
}

fn sizes<T: ToString>(sizes: [T; 3]) -> String {
    sizes.map(|size| size.to_string()).join("x")
}

fn numbers(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(" ")
}

/// `all` ascends.
fn listed(all: &[usize]) -> String {
    if all.len() <= LISTED {
        return numbers(all);
    }
    let follows = |before: &usize, after: &usize| before.checked_add(1) == Some(*after);
    let range = |run: &[usize]| match run {
        [first, .., last] => Some(format!("{first}-{last}")),
        [only] => Some(only.to_string()),
        [] => None,
    };
    let ranges: Vec<String> = all.chunk_by(follows).filter_map(range).collect();
    ranges.join(" ")
}

/// A chain's time is in the line of its first listed job.
pub(crate) fn comma_separated(
    out: &mut impl Write,
    report: &Report,
    by_kernel: bool,
) -> Result<()> {
    if by_kernel {
        let names = KERNEL_COLUMNS.iter().map(|(name, _)| *name);
        write!(out, "{}", csv::line(names))?;
        for kernel in &report.kernels {
            let cells = KERNEL_COLUMNS.iter().map(|(_, of)| of(kernel));
            write!(out, "{}", csv::line(cells))?;
        }
        return Ok(out.flush()?);
    }
    let names = JOB_COLUMNS.iter().map(|(name, _)| *name);
    let times = [
        "chain_seconds_min",
        "chain_seconds_median",
        "chain_seconds_max",
        "chain_seconds_deviation",
        "clock",
        "memory_lines",
    ];
    write!(out, "{}", csv::line(names.chain(times)))?;
    let clock = report.measurement.as_ref().map(|it| it.clock.as_str());
    let chains = Chains::of(report);
    for job in &report.jobs {
        let times = chains.time(job);
        let times = times.map_or_else(Default::default, |it| {
            [it.min, it.median, it.max, it.deviation].map(|time| time.to_string())
        });
        let clock = clock.unwrap_or_default().to_owned();
        let cells = JOB_COLUMNS.iter().map(|(_, of)| of(job));
        let last = [clock, optional(job.memory_lines)];
        write!(out, "{}", csv::line(cells.chain(times).chain(last)))?;
    }
    Ok(out.flush()?)
}

struct Chains<'a> {
    chains: HashMap<usize, &'a ChainReport>,
    first: HashMap<usize, usize>,
}

impl<'a> Chains<'a> {
    fn of(report: &'a Report) -> Self {
        let mut first = HashMap::new();
        for job in &report.jobs {
            first.entry(job.chain).or_insert(job.index);
        }
        let chains = report.chains.iter().map(|chain| (chain.number, chain));
        Self {
            chains: chains.collect(),
            first,
        }
    }

    fn chain(&self, job: &JobReport) -> Option<&'a ChainReport> {
        self.chains.get(&job.chain).copied()
    }

    fn time(&self, job: &JobReport) -> Option<Spread> {
        let first = self.first.get(&job.chain)?;
        self.chain(job)?.seconds.filter(|_| *first == job.index)
    }
}

pub(crate) fn text(
    out: &mut impl Write,
    report: &Report,
    by_kernel: bool,
    sum: &Sum,
) -> Result<()> {
    let selected = match &report.selection {
        Some(selection) => format!(", selected by {selection}"),
        None => String::new(),
    };
    let of = match by_kernel {
        true => text::count(report.kernels.len() as u64, "kernel") + " of ",
        false => String::new(),
    };
    writeln!(
        out,
        "{}, {}: {of}{}{selected}",
        report.recording,
        report.gpu,
        text::count(report.jobs.len() as u64, "job"),
    )?;
    if let Some(measurement) = &report.measurement {
        let work = match &measurement.work {
            Some(work) => format!("work as the {work} counts it"),
            None => "work is counted on the model only".into(),
        };
        writeln!(
            out,
            "{}; {work}; times by the clock of the {}, median of {}",
            measurement.device,
            measurement.clock,
            text::count(measurement.runs.into(), "run")
        )?;
    }
    match by_kernel {
        true => kernels(out, report, sum)?,
        false => jobs(out, report, sum)?,
    }
    Ok(out.flush()?)
}

fn jobs(out: &mut impl Write, report: &Report, sum: &Sum) -> Result<()> {
    let before = [
        "job", "layer", "kernel", "times", "global", "local", "regs", "storage", "instr.",
    ];
    let after = ["read", "written", "chain", "time"];
    let mut rows = vec![sum.heading(&before, &after)];
    let chains = Chains::of(report);
    for job in &report.jobs {
        let kernel = job.name.as_ref().or(job.kernel.as_ref());
        let work = job.work.as_ref();
        let storage = match (job.thread_storage_bytes, job.group_storage_bytes) {
            (Some(0) | None, Some(0) | None) => "-".into(),
            (thread, group) => format!("{}+{}", thread.unwrap_or(0), group.unwrap_or(0)),
        };
        let mut row = vec![
            job.index.to_string(),
            job.layer.clone().unwrap_or_else(|| job.phase.clone()),
            kernel.unwrap_or(&job.kind).clone(),
            job.occurrences.to_string(),
            job.global.map_or_else(dash, sizes),
            job.local.map_or_else(dash, sizes),
            job.registers.map_or_else(dash, |it| it.to_string()),
            storage,
            work.map_or_else(dash, |work| short(work.instructions)),
        ];
        row.extend(sum.cells(work, job.memory_lines));
        row.extend([
            work.map_or_else(dash, |work| text::bytes(work.bytes_read)),
            work.map_or_else(dash, |work| text::bytes(work.bytes_written)),
            job.chain.to_string(),
            chains.time(job).map_or_else(dash, spread),
        ]);
        rows.push(row);
    }
    table(out, &rows, &[1, 2])?;
    if report
        .measurement
        .as_ref()
        .is_some_and(|it| it.work.is_some())
    {
        writeln!(
            out,
            "sum: {} instructions, {} read, {} written",
            short(sum.work.instructions),
            text::bytes(sum.work.bytes_read),
            text::bytes(sum.work.bytes_written)
        )?;
    }
    Ok(())
}

fn kernels(out: &mut impl Write, report: &Report, sum: &Sum) -> Result<()> {
    let before = ["kernel", "name", "jobs", "clauses", "regs", "instr."];
    let after = ["read", "written", "on the model"];
    let mut rows = vec![sum.heading(&before, &after)];
    for kernel in &report.kernels {
        let work = kernel.work.as_ref();
        let mut row = vec![
            kernel.hash.clone(),
            match kernel.names.is_empty() {
                true => dash(),
                false => kernel.names.join(" "),
            },
            listed(&kernel.jobs),
            kernel.clauses.to_string(),
            kernel.registers.to_string(),
            work.map_or_else(dash, |work| short(work.instructions)),
        ];
        row.extend(sum.cells(work, kernel.memory_lines));
        row.extend([
            work.map_or_else(dash, |work| text::bytes(work.bytes_read)),
            work.map_or_else(dash, |work| text::bytes(work.bytes_written)),
            kernel.seconds.map_or_else(dash, text::seconds),
        ]);
        rows.push(row);
    }
    table(out, &rows, &[0, 1, 2])
}

/// Median, and distance of half of the runs.
fn spread(spread: Spread) -> String {
    match spread.deviation == 0.0 {
        true => text::seconds(spread.median),
        false => format!(
            "{} ± {}",
            text::seconds(spread.median),
            text::seconds(spread.deviation)
        ),
    }
}

fn table(out: &mut impl Write, rows: &[Vec<String>], left: &[usize]) -> Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells: Vec<String> = cells
            .map(|(at, (cell, &width))| match left.contains(&at) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            })
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// A chain's time is in its first job's line; the model also knows each job's.
pub(crate) fn durations(out: &mut impl Write, report: &Report) -> Result<()> {
    let Some(measurement) = &report.measurement else {
        return Ok(());
    };
    writeln!(
        out,
        "durations by the clock of the {} on {}, {} after {}: median ± half of the runs, least to most",
        measurement.clock,
        measurement.device,
        text::count(measurement.runs.into(), "run"),
        measurement.warmup
    )?;
    let names = [
        "job", "layer", "kernel", "chain", "time", "least", "most", "alone",
    ];
    let counted = report.chains.iter().any(|chain| chain.gpu_cycles.is_some());
    let mut names = names.map(str::to_owned).to_vec();
    if counted {
        names.extend(["GPU cycles", "GPU ticks"].map(str::to_owned));
    }
    let mut rows = vec![names];
    let chains = Chains::of(report);
    for job in &report.jobs {
        let kernel = job.name.as_ref().or(job.kernel.as_ref());
        let chain = chains.time(job);
        let mut row = vec![
            job.index.to_string(),
            job.layer.clone().unwrap_or_else(|| job.phase.clone()),
            kernel.unwrap_or(&job.kind).clone(),
            job.chain.to_string(),
            chain.map_or_else(dash, spread),
            chain.map_or_else(dash, |it| text::seconds(it.min)),
            chain.map_or_else(dash, |it| text::seconds(it.max)),
            job.seconds.map_or_else(dash, |it| text::seconds(it.median)),
        ];
        if counted {
            let chain = chains.chain(job);
            let counts = [
                chain.and_then(|it| it.gpu_cycles),
                chain.and_then(|it| it.gpu_ticks),
            ];
            let text = |it: Spread| format!("{:.0} ± {:.0}", it.median, it.deviation);
            row.extend(counts.map(|count| count.map_or_else(dash, text)));
        }
        rows.push(row);
    }
    table(out, &rows, &[1, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(jobs: usize, names: &[&str]) -> Report {
        Report {
            jobs: (0..jobs)
                .map(|index| JobReport {
                    index,
                    chain: index / 2,
                    ..JobReport::default()
                })
                .collect(),
            chains: (0..jobs.div_ceil(2))
                .map(|number| ChainReport {
                    number,
                    seconds: Some(Spread {
                        median: 0.25,
                        ..Spread::default()
                    }),
                    ..ChainReport::default()
                })
                .collect(),
            kernels: vec![KernelReport {
                hash: "98aa".into(),
                names: names.iter().map(|&name| name.into()).collect(),
                jobs: (0..jobs).collect(),
                ..KernelReport::default()
            }],
            ..Report::default()
        }
    }

    fn shown(report: &Report, by_kernel: bool) -> String {
        let mut out = Vec::new();
        text(&mut out, report, by_kernel, &Sum::of(report)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn jobs_are_listed_one_by_one_or_as_ranges() {
        let all: Vec<usize> = (0..=LISTED).collect();
        assert_eq!(listed(&all[..LISTED]), numbers(&all[..LISTED]));
        assert_eq!(listed(&all), format!("0-{LISTED}"));
        let parts: Vec<usize> = [3].into_iter().chain(7..50).chain([60, 61]).collect();
        assert_eq!(listed(&parts), "3 7-49 60-61");
        assert_eq!(listed(&[]), "");
    }

    #[test]
    fn a_cell_as_wide_as_no_column_is_printed_whole() {
        // Wider than a format string's largest width.
        let many = shown(&report(14_000, &["a"]), true);
        assert!(many.contains(" 0-13999 "), "{many}");
        let long = "k".repeat(70_000);
        let named = shown(&report(3, &[&long]), true);
        assert!(
            named.contains(&format!("98aa    {long}  0 1 2")),
            "{}",
            &named[..400]
        );
    }

    #[test]
    fn a_wide_cell_widens_its_own_line_only() {
        let lines = |width: usize| {
            let wide = "k".repeat(width);
            let rows = [[&wide, "1"], ["b", "2"]].map(|row| row.map(str::to_owned).to_vec());
            let mut out = Vec::new();
            table(&mut out, &rows, &[0]).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().map(str::len).collect::<Vec<_>>()
        };
        assert_eq!(lines(WIDEST), [WIDEST + 3, WIDEST + 3]);
        assert_eq!(lines(WIDEST + 1), [WIDEST + 4, 4]);
    }

    #[test]
    fn a_chain_has_its_time_at_its_first_job() {
        let report = report(5, &[]);
        let chains = Chains::of(&report);
        let times: Vec<bool> = report
            .jobs
            .iter()
            .map(|job| chains.time(job).is_some())
            .collect();
        assert_eq!(times, [true, false, true, false, true]);
    }
}
