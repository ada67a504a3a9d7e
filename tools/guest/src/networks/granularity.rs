// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest granularity`: one trace, compiled into parts of each size; what that costs the file and the device.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use serde::Deserialize;

use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    folder::{Folder, create_dir},
    record::{Recording, app::App, network_dir},
    run::{driver::Driver, report, session::End},
};

/// Compiles one trace as one part, by layers and by jobs, and counts what replays of each ask of the device.
///
/// Traces are those in target/guest/networks/NAME; where there are none, the guest records them first.
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask guest granularity digits\n  \
                        cargo xtask guest granularity digits squeezenet-1.1 --write-doc    # the table in docs/embedding.md")]
pub(crate) struct Granularity {
    /// Names of programs in tools/guest/recordable.toml.
    #[arg(default_value = "digits")]
    names: Vec<String>,
    /// Write the table into docs/embedding.md.
    #[arg(long)]
    write_doc: bool,
    /// Seconds until a recording is given up.
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    timeout: u64,
}

#[derive(Deserialize)]
struct Info {
    file_bytes: u64,
    segments: Vec<Segment>,
}

#[derive(Deserialize)]
struct Segment {
    kind: String,
}

#[derive(Deserialize)]
struct Bench {
    register_accesses_per_run: f64,
    bytes_moved_per_run: f64,
}

/// How the table begins.
const COLUMNS: &str = "\
| Network | Granularity | Parts that run | Recording, bytes | Register accesses per run | Moved per run |
| --- | --- | --: | --: | --: | --: |
";

impl Granularity {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        payload::build_host_command(&folder)?;
        let mut table = String::from(COLUMNS);
        for name in &self.names {
            table += &self.rows(&folder, &App::named(&folder, name)?)?;
        }
        print!("{table}");
        if self.write_doc {
            let path = folder.repository.join("docs/embedding.md");
            let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            let text = replaced(&text, &table).ok_or_else(|| Error::Missing {
                what: format!("a table of granularities in {}", path.display()),
                remedy: "it begins with \"| Network\"".into(),
            })?;
            fs::write(&path, text).map_err(Error::io("write", path))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Records a program unless its traces are there, and compiles it with each granularity.
    fn rows(&self, folder: &Folder, name: &str) -> Result<String> {
        let app = App::find(folder, name)?;
        let work = network_dir(folder, name);
        create_dir(&work)?;
        let job = Recording {
            folder,
            name,
            app: &app,
            gpu: "g52",
            work: &work,
            timeout: Duration::from_secs(self.timeout),
            non_coherent: false,
        };
        if !work.join("trace2").is_file() {
            folder.require_built()?;
            payload::prepare(folder, Driver::Patched)?;
            let outcome = job.trace(true)?;
            if outcome.end != End::Exit(0) || !outcome.faults.is_empty() {
                report(&outcome, false, self.timeout);
                return Err(Error::Usage(format!("the guest could not record {name}")));
            }
        }
        let layers = work.join("layers").is_dir();
        let mut rows = String::new();
        for size in ["network", "layer", "job"] {
            let mut options = vec![format!("--granularity={size}")];
            if size == "layer" && app.layers.is_empty() {
                if !layers {
                    continue;
                }
                options.push("--intermediates=layers".into());
            }
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            rows += &format!("| {name} | {size} {}", row(&job, size, &options)?);
        }
        Ok(rows)
    }
}

/// Compiles with one granularity and counts; the last columns of a row.
fn row(job: &Recording<'_>, size: &str, options: &[&str]) -> Result<String> {
    let program = payload::host_command(job.folder);
    let output = job.work.join(format!("granularity-{size}"));
    job.compile_with(&program, &output, options)?;
    let log = |name: &str| job.folder.local.join("log").join(name);
    let mut info = Command::new(&program);
    info.args(["info", "--json"]).arg(&output);
    logged(&mut info, "information", &log("info.json"))?;
    let info: Info = json(&log("info.json"))?;
    let counts = output.join("bench.json");
    let mut bench = Command::new(&program);
    bench.arg("bench").arg(&output);
    bench.args(["--warmup", "0", "--runs", "2", "--force", "--export-json"]);
    bench.arg(&counts);
    logged(&mut bench, "counting", &log("bench.log"))?;
    let bench: Bench = json(&counts)?;
    let parts = info.segments.iter().filter(|s| s.kind == "run").count();
    Ok(format!(
        "| {parts} | {} | {:.0} | {:.1} kB |\n",
        info.file_bytes,
        bench.register_accesses_per_run,
        bench.bytes_moved_per_run / 1e3
    ))
}

fn json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(Error::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

/// A page with another table of granularities.
fn replaced(page: &str, table: &str) -> Option<String> {
    let begin = page.find("| Network | Granularity")?;
    let (before, old) = page.split_at_checked(begin)?;
    let length: usize = old
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('|'))
        .map(str::len)
        .sum();
    Some(format!("{before}{table}{}", old.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_table_is_replaced_and_nothing_else() {
        let page = "a\n\n| Network | Granularity | x |\n| --- | --- |\n| job | 1 |\n\nb | c\n";
        let found = replaced(page, "| Network |\n| 2 |\n").unwrap();
        assert_eq!(found, "a\n\n| Network |\n| 2 |\n\nb | c\n");
        assert_eq!(replaced("no table", "x"), None);
    }
}
