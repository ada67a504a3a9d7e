// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run --trace-lines` and `--trace -`.

use std::collections::BTreeMap;
use std::io::Write;

use mali_model::JobReport;
use serde::Serialize;

use crate::common::cells::short;
use crate::common::failure::Failure;
use crate::common::terminal;
use crate::{Result, text};

pub(crate) type Numbered<'a> = (usize, &'a JobReport);

/// One job, as a line of the file.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Line {
    job: usize,
    slot: u32,
    address: String,
    #[serde(rename = "type")]
    kind: &'static str,
    status: String,
    status_code: u32,
    seconds: f64,
    kernel: Option<Kernel>,
    workgroup_count: Option<[u32; 3]>,
    workgroup_size: Option<[u32; 3]>,
    work: Option<Work>,
}

/// Which shader a job ran.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Kernel {
    address: String,
    hash: Option<String>,
    bytes: Option<u64>,
    clauses: Option<u32>,
}

/// What the shader cores did for a job that succeeded.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Work {
    workgroups: u64,
    threads: u64,
    fma: u64,
    add: u64,
    messages: BTreeMap<&'static str, u64>,
    bytes_read: u64,
    bytes_written: u64,
}

pub(crate) fn lines(jobs: &[Numbered<'_>]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for job in jobs {
        serde_json::to_writer(&mut text, &line(job))
            .map_err(|error| Failure::Output(error.to_string()))?;
        text.push(b'\n');
    }
    Ok(text)
}

pub(crate) fn print(jobs: &[Numbered<'_>]) -> Result<()> {
    let lines: Vec<Line> = jobs.iter().map(line).collect();
    table(&mut terminal::stdout(), &lines)
}

fn line(&(job, report): &Numbered<'_>) -> Line {
    let compute = report.compute.as_ref();
    Line {
        job,
        slot: report.slot,
        address: format!("{:#x}", report.address),
        kind: report.kind,
        status: report.status.to_string(),
        status_code: report.status.0,
        seconds: report.duration.as_secs_f64(),
        kernel: compute.map(|compute| Kernel {
            address: format!("{:#x}", compute.shader),
            hash: compute
                .kernel
                .map(|identity| format!("{:016x}", identity.hash)),
            bytes: compute.kernel.map(|identity| identity.bytes),
            clauses: compute.kernel.map(|identity| identity.clauses),
        }),
        workgroup_count: compute.map(|compute| compute.workgroup_count),
        workgroup_size: compute.map(|compute| compute.workgroup_size),
        work: compute
            .and_then(|compute| compute.statistics)
            .map(|counts| Work {
                workgroups: counts.workgroups,
                threads: counts.threads,
                fma: counts.fma,
                add: counts.add,
                messages: counts.messages_by_kind().collect(),
                bytes_read: counts.bytes_read,
                bytes_written: counts.bytes_written,
            }),
    }
}

fn table(out: &mut impl Write, lines: &[Line]) -> Result<()> {
    writeln!(
        out,
        "{:>4} {:16} {:>16} {:>14} {:>11} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}  status",
        "job",
        "kernel",
        "address",
        "work groups",
        "local size",
        "FMA",
        "ADD",
        "messages",
        "read",
        "written",
        "time"
    )?;
    let shape = |shape: Option<[u32; 3]>| {
        shape.map_or_else(|| "-".into(), |[x, y, z]| format!("{x}x{y}x{z}"))
    };
    let dash = || "-".to_owned();
    for line in lines {
        let kernel = line.kernel.as_ref();
        let count = |of: fn(&Work) -> u64| line.work.as_ref().map_or_else(dash, |w| short(of(w)));
        let bytes =
            |of: fn(&Work) -> u64| line.work.as_ref().map_or_else(dash, |w| text::bytes(of(w)));
        writeln!(
            out,
            "{:>4} {:16} {:>16} {:>14} {:>11} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}  {}",
            line.job,
            kernel
                .and_then(|kernel| kernel.hash.clone())
                .unwrap_or_else(|| line.kind.to_owned()),
            kernel.map_or(&line.address, |kernel| &kernel.address),
            shape(line.workgroup_count),
            shape(line.workgroup_size),
            count(|work| work.fma),
            count(|work| work.add),
            count(|work| work.messages.values().sum()),
            bytes(|work| work.bytes_read),
            bytes(|work| work.bytes_written),
            text::duration(std::time::Duration::from_secs_f64(line.seconds)),
            line.status
        )?;
    }
    let sum = |of: fn(&Work) -> u64| -> u64 {
        lines
            .iter()
            .filter_map(|line| line.work.as_ref())
            .map(of)
            .sum()
    };
    let mut messages = BTreeMap::new();
    for (kind, count) in lines
        .iter()
        .filter_map(|line| line.work.as_ref())
        .flat_map(|work| &work.messages)
    {
        *messages.entry(*kind).or_insert(0) += count;
    }
    let messages: Vec<String> = messages
        .iter()
        .map(|(kind, &count)| format!("{} {kind}", short(count)))
        .collect();
    writeln!(
        out,
        "sum: {} FMA, {} ADD, messages: {}; {} read, {} written",
        short(sum(|work| work.fma)),
        short(sum(|work| work.add)),
        messages.join(", "),
        text::bytes(sum(|work| work.bytes_read)),
        text::bytes(sum(|work| work.bytes_written))
    )?;
    Ok(())
}
