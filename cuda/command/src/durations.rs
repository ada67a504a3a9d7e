// SPDX-License-Identifier: MIT OR Apache-2.0
//! `durations`: every kernel of a program with its time.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use gpureplay_host::csv;
use serde::Serialize;

use crate::app::App;
use crate::attempt::private_folder;
use crate::failure::{Failure, Outcome, file, json};
use crate::report::say;
use crate::strict::{self, Strict};

/// Runs a program and says how long each of its kernels took.
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
#[derive(Serialize)]
pub(crate) struct RowReport<'a> {
    kernel: &'a str,
    grid: &'a str,
    block: &'a str,
    occurrences: u64,
    total_us: f64,
    least_us: f64,
    most_us: f64,
}

type Table = BTreeMap<[String; 3], Row>;

impl Durations {
    pub(crate) fn execute(&self) -> Outcome {
        let folder = private_folder("durations")?;
        self.run(folder.path())
    }

    fn run(&self, folder: &Path) -> Outcome {
        let mut command = self.app.command("durations")?;
        command
            .env("GPUREPLAY_CUDA_OUTPUT", folder)
            .env_remove("GPUREPLAY_CUDA_CUPTI");
        if !self.events {
            command.env("GPUREPLAY_CUDA_CUPTI", self.strict.cupti());
        }
        let counted = self.strict.prepare(&mut command)?;
        let code = self.app.run(command)?;
        let mut table = Table::new();
        for entry in std::fs::read_dir(folder).map_err(file(folder))? {
            let path = entry.map_err(file(folder))?.path();
            let text = std::fs::read_to_string(&path).map_err(file(&path))?;
            text.lines().for_each(|line| add(&mut table, line));
        }
        self.print(&table)?;
        strict::conclude(counted.as_ref(), code)
    }

    fn print(&self, table: &Table) -> Result<(), Failure> {
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_by(|a, b| b.1.total.total_cmp(&a.1.total));
        if self.json {
            let rows = rows.iter().map(|([kernel, grid, block], row)| RowReport {
                kernel,
                grid,
                block,
                occurrences: row.occurrences,
                total_us: row.total,
                least_us: row.least,
                most_us: row.most,
            });
            let text = serde_json::to_string(&rows.collect::<Vec<_>>());
            say!("{}", text.map_err(json)?);
            return Ok(());
        }
        let mean = |row: &Row| row.total / row.occurrences.max(1) as f64;
        if self.csv {
            say!("kernel,grid,block,occurrences,total_us,mean_us,least_us,most_us");
        } else {
            say!(
                "{:>12} {:>10} {:>8}  {:<18} {:<12} kernel",
                "total us",
                "mean us",
                "times",
                "grid",
                "block"
            );
        }
        for ([kernel, grid, block], row) in rows {
            let mean = mean(row);
            if self.csv {
                let times = [row.total, mean, row.least, row.most];
                let times = times.map(|time| format!("{time:.3}"));
                let head = [kernel, grid, block].into_iter().cloned();
                let head = head.chain([row.occurrences.to_string()]);
                say!("{}", csv::line(head.chain(times)).trim_end());
            } else {
                say!(
                    "{:>12.2} {mean:>10.2} {:>8}  {grid:<18} {block:<12} {kernel}",
                    row.total,
                    row.occurrences
                );
            }
        }
        Ok(())
    }
}

/// A line that the library wrote: kernel, grid, block, occurrences, total, least, most.
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
