// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest granularity`: what parts of each size cost.

use std::{
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    files,
    folder::Folder,
    record::{Recording, app::App, network_dir},
    run::{driver::Driver, report},
};

/// Compiles one trace as one part, by layers and by jobs, and counts what replays ask of the device.
///
/// Traces are those in target/guest/networks/NAME, or recorded first.
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask guest granularity digits\n  \
                        cargo xtask guest granularity digits squeezenet-1.1 --write-doc")]
pub(crate) struct Granularity {
    /// Names of programs in tools/guest/recordable.toml.
    #[arg(default_value = "digits")]
    names: Vec<String>,
    /// Keep the table in measurements/granularity.json.
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

impl Granularity {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        payload::build_host_command(&folder)?;
        let mut table = Table::new(
            "",
            "Network | Granularity | Parts that run | Recording, B | Register accesses per run | Moved per run, B",
        );
        for name in &self.names {
            self.rows(&folder, &App::named(&folder, name)?, &mut table)?;
        }
        print!("{table}");
        if self.write_doc {
            measured::keep("granularity", &[table])?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn rows(&self, folder: &Folder, name: &str, table: &mut Table) -> Result<()> {
        let app = App::find(folder, name)?;
        let work = network_dir(folder, name, "g52");
        files::create_dir(&work)?;
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
            if outcome.clean().is_err() {
                report(&outcome, false, self.timeout);
                return Err(Error::Usage(format!("the guest could not record {name}")));
            }
        }
        let layers = work.join("layers").is_dir();
        for size in ["network", "layer", "job"] {
            let mut options = vec![format!("--granularity={size}")];
            if size == "layer" && app.layers.is_empty() {
                if !layers {
                    continue;
                }
                options.push("--intermediates=layers".into());
            }
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            table.row(row(&job, size, &options)?);
        }
        Ok(())
    }
}

fn row(job: &Recording<'_>, size: &str, options: &[&str]) -> Result<Value> {
    let program = payload::host_command(job.folder);
    let output = job.work.join(format!("granularity-{size}"));
    job.compile_with(&program, &output, options)?;
    let log = |name: &str| job.folder.local.join("log").join(name);
    let mut info = Command::new(&program);
    info.args(["info", "--json"]).arg(&output);
    logged(&mut info, "information", &log("info.json"))?;
    let info: Info = files::from_json(log("info.json"))?;
    let counts = output.join("bench.json");
    let mut bench = Command::new(&program);
    bench.arg("bench").arg(&output);
    bench.args(["--warmup", "0", "--runs", "2", "--force", "--export-json"]);
    bench.arg(&counts);
    logged(&mut bench, "counting", &log("bench.log"))?;
    let bench: Bench = files::from_json(&counts)?;
    let parts = info.segments.iter().filter(|s| s.kind == "run").count();
    let (accesses, moved) = (bench.register_accesses_per_run, bench.bytes_moved_per_run);
    Ok(json!([
        job.name,
        size,
        parts,
        info.file_bytes,
        accesses,
        moved
    ]))
}
