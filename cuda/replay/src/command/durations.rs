// SPDX-License-Identifier: MIT OR Apache-2.0
//! `durations`: a program's kernels with their times.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_host::csv;
use serde::{Deserialize, Serialize};

use crate::command::app::App;
use crate::command::attempt::private_folder;
use crate::command::failure::{self, Failure, Outcome, file, json, texts, write};
use crate::command::report::say;
use crate::command::setting::set;
use crate::command::strict::{self, Strict};

/// Run a program and time each of its kernels
#[derive(Args)]
pub(crate) struct Durations {
    /// Comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// JSON.
    #[arg(long)]
    json: bool,
    /// Pairs of events instead of CUPTI: no library is needed, but a short kernel looks some microseconds longer.
    #[arg(long, conflicts_with_all = ["strict", "cupti"])]
    events: bool,
    #[command(flatten)]
    strict: Strict,
    /// Where the table goes, beside the program's own output otherwise.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A line for each launch with its time, in this file; - is standard output.
    #[arg(long, value_name = "FILE|-")]
    log: Option<PathBuf>,
    #[command(flatten)]
    app: App,
}

#[derive(Default)]
struct Row {
    occurrences: u64,
    total: f64,
    least: f64,
    most: f64,
}

/// A kernel with one size, for `--json`: times in microseconds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize, Deserialize)]
pub(crate) struct RowReport<'a> {
    pub(crate) kernel: Cow<'a, str>,
    pub(crate) grid: Cow<'a, str>,
    pub(crate) block: Cow<'a, str>,
    pub(crate) occurrences: u64,
    pub(crate) total_us: f64,
    least_us: f64,
    most_us: f64,
}

const LOG_HEADER: &str = "process,kernel,grid,block,us\n";

type Table = BTreeMap<[String; 3], Row>;

impl Durations {
    pub(crate) fn execute(&self) -> Outcome {
        let folder = private_folder("durations")?;
        self.run(folder.path())
    }

    fn run(&self, folder: &Path) -> Outcome {
        let mut command = self.app.command("durations")?;
        let log = match &self.log {
            Some(log) if log.as_os_str() == "-" => Some("/dev/stdout".into()),
            Some(log) => {
                write(log, LOG_HEADER)?;
                Some(log.canonicalize().map_err(file(log))?)
            }
            None => None,
        };
        set(&mut command, "OUTPUT", Some(folder));
        set(&mut command, "LOG", log);
        set(
            &mut command,
            "CUPTI",
            (!self.events).then(|| self.strict.cupti()),
        );
        let counted = self.strict.prepare(&mut command)?;
        let code = self.app.run(command)?;
        let mut table = Table::new();
        for text in texts(folder)? {
            text.lines().for_each(|line| add(&mut table, line));
        }
        self.print(&table)?;
        strict::conclude(counted.as_ref(), code)
    }

    fn print(&self, table: &Table) -> Result<(), Failure> {
        let text = self.text(table)?;
        if let Some(path) = &self.output {
            return write(path, &text);
        }
        for line in text.lines() {
            say!("{line}");
        }
        Ok(())
    }

    fn text(&self, table: &Table) -> Result<String, Failure> {
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_by(|a, b| b.1.total.total_cmp(&a.1.total));
        if self.json {
            let rows = rows.iter().map(|([kernel, grid, block], row)| RowReport {
                kernel: kernel.into(),
                grid: grid.into(),
                block: block.into(),
                occurrences: row.occurrences,
                total_us: row.total,
                least_us: row.least,
                most_us: row.most,
            });
            let text = serde_json::to_string(&rows.collect::<Vec<_>>());
            return Ok(text.map_err(json)? + "\n");
        }
        let mean = |row: &Row| row.total / row.occurrences.max(1) as f64;
        let mut text = if self.csv {
            "kernel,grid,block,occurrences,total_us,mean_us,least_us,most_us\n".to_owned()
        } else {
            format!(
                "{:>12} {:>10} {:>8}  {:<18} {:<12} kernel\n",
                "total us", "mean us", "times", "grid", "block"
            )
        };
        for ([kernel, grid, block], row) in rows {
            let mean = mean(row);
            if self.csv {
                let times = [row.total, mean, row.least, row.most];
                let times = times.map(|time| format!("{time:.3}"));
                let head = [kernel, grid, block].into_iter().cloned();
                let head = head.chain([row.occurrences.to_string()]);
                text += &csv::line(head.chain(times));
            } else {
                text += &format!(
                    "{:>12.2} {mean:>10.2} {:>8}  {grid:<18} {block:<12} {kernel}\n",
                    row.total, row.occurrences
                );
            }
        }
        Ok(text)
    }
}

fn add(table: &mut Table, line: &str) {
    let fields: Vec<&str> = line.split('\t').collect();
    let [kernel, grid, block, occurrences, total, least, most] = fields.as_slice() else {
        return;
    };
    let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    let key = [kernel, grid, block].map(|text| (*text).to_owned());
    let row = table.entry(key).or_insert_with(|| Row {
        least: f64::INFINITY,
        ..Row::default()
    });
    row.occurrences += occurrences.parse::<u64>().unwrap_or(0);
    row.total += number(total);
    row.least = row.least.min(number(least));
    row.most = row.most.max(number(most));
}

const MOST_BYTES: u64 = 1 << 28;

pub(crate) fn read(path: &Path) -> Result<Vec<RowReport<'static>>, Failure> {
    serde_json::from_slice(&failure::read(path, MOST_BYTES)?).map_err(|error| {
        Failure::Usage(format!(
            "{}: {error}; durations --json -o FILE writes such a table",
            path.display()
        ))
    })
}
