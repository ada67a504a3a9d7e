// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest networks`: records and measures networks.

pub(crate) mod granularity;
mod others;
pub(crate) mod recording;

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::others::Others;
use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    files,
    folder::Folder,
    record::{
        Recording,
        app::{self, App, SETS},
        network_dir,
    },
    run::{driver::Driver, report},
};

const MEASURED: &str = "measured.toml";
const TIMED: &str = "g52";

/// Records networks, compares replays with NumPy and the live stack, and measures them.
///
/// Traces, recordings, outputs and measurements stay in target/guest/networks/NAME: several times a recording's size.
/// Each takes minutes to half an hour.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest networks lenet squeezenet-1.1\n  \
                        cargo xtask guest networks --reuse --write-doc    # again what is recorded already\n  \
                        cargo xtask guest networks --times --write-doc    # again the times of what is recorded"
)]
pub(crate) struct Networks {
    /// Networks, by their names in docs/measurements.md; hyphens may be left out. All if none is named.
    names: Vec<String>,
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Compile, replay and measure again with traces that are there; a network without traces is left out.
    #[arg(long)]
    reuse: bool,
    /// Only measure times of recordings that are there; best on an idle machine.
    #[arg(long, conflicts_with = "reuse")]
    times: bool,
    /// Keep what was measured in measurements/networks.json, without times in networks-GPU.json for other GPUs than
    /// g52; other rows stay.
    #[arg(long)]
    write_doc: bool,
    /// Use the programs in target/guest/opt and target/release as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until the recording of a network is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
}

/// Times in seconds.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Measured {
    /// Of set-up and one run.
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_without_weights: u64,
    pub(crate) memory: u64,
    /// The recorded app's, in the guest.
    pub(crate) record: f64,
    /// With the file in the page cache.
    pub(crate) read: f64,
    /// Reading and verifying.
    pub(crate) load: f64,
    /// Reset, memory and set-up jobs.
    pub(crate) open: f64,
    pub(crate) run: f64,
    /// Largest relative error; with `exact` the largest difference, in steps.
    pub(crate) difference: f64,
    /// To the live stack, bit for bit.
    pub(crate) identical: bool,
    /// Other programs' share of processor time, 0 to 1.
    #[serde(default)]
    pub(crate) others: Option<f64>,
}

/// Milliseconds in the guest.
#[derive(Deserialize)]
struct Times {
    record: u64,
}

#[derive(Deserialize)]
struct Info {
    jobs: u64,
    file_bytes: u64,
    gpu_memory_bytes: u64,
}

#[derive(Deserialize)]
struct Bench {
    loading: Loading,
    open_seconds: f64,
    run_seconds: Vec<f64>,
}

#[derive(Deserialize)]
struct Loading {
    read_seconds: f64,
    load_seconds: f64,
}

impl Networks {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let apps = App::all(&folder)?;
        let names: Vec<String> = if self.names.is_empty() {
            let networks = apps.iter().filter(|(_, app)| app.network);
            networks.map(|(name, _)| name.clone()).collect()
        } else {
            let named = self.names.iter().map(|name| App::named(&folder, name));
            named.collect::<Result<_>>()?
        };
        if !self.no_build {
            if !self.reuse && !self.times {
                payload::prepare(&folder, Driver::Patched)?;
            }
            payload::build_release_command(&folder)?;
        }
        let program = payload::release_command(&folder);
        if !program.exists() {
            return Err(Error::Usage(format!(
                "{} is missing, which compiles and replays: leave --no-build out",
                program.display()
            )));
        }
        let mut failed = 0;
        for name in &names {
            match self.one(&folder, name) {
                Ok(true) => {}
                Ok(false) => eprintln!(
                    "{name}: no {}",
                    if self.times { "recording" } else { "traces" }
                ),
                Err(error) => {
                    eprintln!("{name}: {error}");
                    failed += 1;
                }
            }
        }
        if self.write_doc && failed < names.len() {
            let file = match self.gpu.as_str() {
                TIMED => "networks".to_owned(),
                gpu => format!("networks-{gpu}"),
            };
            let mut all = table(&self.gpu);
            let kept = measured::kept(&file).unwrap_or_default();
            let kept = kept.into_iter().find(|old| old.columns == all.columns);
            for (name, app) in apps.iter().filter(|(_, app)| app.network) {
                let path = network_dir(&folder, name, &self.gpu).join(MEASURED);
                if path.is_file() {
                    all.row(row(name, app, &self.gpu, &files::from_toml(&path)?));
                } else if let Some(old) = kept.as_ref().and_then(|old| row_of(old, name)) {
                    all.row(json!(old));
                }
            }
            measured::keep(&file, &[all])?;
        }
        Ok(ExitCode::from(u8::from(failed > 0)))
    }

    /// False without usable traces.
    fn one(&self, folder: &Folder, name: &str) -> Result<bool> {
        let app = App::find(folder, name)?;
        if !app.network {
            return Err(Error::Usage(format!("{name} is not a network")));
        }
        let work = network_dir(folder, name, &self.gpu);
        files::create_dir(&work)?;
        let job = Recording {
            folder,
            name,
            app: &app,
            gpu: &self.gpu,
            work: &work,
            timeout: Duration::from_secs(self.timeout),
            non_coherent: false,
        };
        if self.times {
            return self.times(&job);
        }
        if self.reuse && !work.join("trace2").is_file() {
            return Ok(false);
        }
        if !self.reuse {
            folder.require_built()?;
            let outcome = job.trace(false)?;
            if outcome.clean().is_err() {
                report(&outcome, false, self.timeout);
                return Err(Error::Usage("the guest could not record it".into()));
            }
        }
        save(&job, &measure(&job)?)?;
        Ok(true)
    }

    fn times(&self, job: &Recording<'_>) -> Result<bool> {
        let output = job.default_output();
        let path = job.work.join(MEASURED);
        if !output.join("recording.gpr").is_file() || !path.is_file() {
            return Ok(false);
        }
        let measured: Measured = files::from_toml(&path)?;
        let (bench, others) = bench(job, &output)?;
        save(
            job,
            &Measured {
                read: bench.loading.read_seconds,
                load: bench.loading.load_seconds,
                open: bench.open_seconds,
                run: bench.run_seconds.first().copied().unwrap_or_default(),
                others,
                ..measured
            },
        )?;
        Ok(true)
    }
}

fn table(gpu: &str) -> Table {
    let columns = match gpu {
        TIMED => {
            "Network | Jobs | Recording, B | Without weights, B | GPU memory, B | Recording it, s | Reading, s | Loading, s | Set-up, s | \
             One run, s | From the reference | As the live stack | Other programs' part of the processors"
        }
        _ => {
            "Network | Jobs | Recording, B | Without weights, B | GPU memory, B | From the reference | As the live stack"
        }
    };
    Table::new("", columns)
}

fn row_of<'a>(table: &'a Table, name: &str) -> Option<&'a Vec<Value>> {
    let mut rows = table.rows.iter();
    rows.find(|row| row.first().and_then(Value::as_str) == Some(name))
}

fn row(name: &str, app: &App, gpu: &str, m: &Measured) -> Value {
    let unit = if app.exact { "steps" } else { "relative" };
    let difference = format!("{:.1e} {unit}", m.difference);
    let live = if m.identical {
        "bit for bit"
    } else {
        "differs"
    };
    let (jobs, bytes, outside, memory) = (m.jobs, m.bytes, m.bytes_without_weights, m.memory);
    match gpu {
        TIMED => json!([
            name, jobs, bytes, outside, memory, m.record, m.read, m.load, m.open, m.run,
            difference, live, m.others
        ]),
        _ => json!([name, jobs, bytes, outside, memory, difference, live]),
    }
}

fn save(job: &Recording<'_>, measured: &Measured) -> Result<()> {
    let mut one = table(job.gpu);
    one.row(row(job.name, job.app, job.gpu, measured));
    println!("{one}");
    let text = toml::to_string(measured)
        .map_err(|error| Error::Usage(format!("{}: {error}", job.name)))?;
    files::write(job.work.join(MEASURED), text)
}

fn bench(job: &Recording<'_>, recording: &Path) -> Result<(Bench, Option<f64>)> {
    let times = job.work.join("bench.json");
    let mut bench = Command::new(payload::release_command(job.folder));
    bench.arg("bench").arg(recording);
    bench.args(["--warmup", "0", "--runs", "1", "--force", "--export-json"]);
    bench.arg(&times);
    let log = job.folder.local.join("log/bench.log");
    let begin = Others::now();
    logged(&mut bench, "measuring", &log)?;
    let others = begin.and_then(|begin| begin.until_now());
    Ok((files::from_json(&times)?, others))
}

fn measure(job: &Recording<'_>) -> Result<Measured> {
    let program = payload::release_command(job.folder);
    let output = job.default_output();
    job.live_is_recorded()?;
    job.compile_with(&program, &output, &[])?;
    job.complete(&output)?;
    match job.compare_noted(&program, &output)? {
        Ok(noted) => eprintln!("  OpenCL calls show the same tensors: {noted}"),
        Err(text) => {
            return Err(Error::Usage(format!(
                "OpenCL calls show other tensors than files do: {text}"
            )));
        }
    }
    let outside = job.work.join("without-weights");
    job.compile_with(&program, &outside, &["--external-weights"])?;
    let file = outside.join("recording.gpr");
    let bytes_without_weights = fs::metadata(&file).map_err(Error::io("read", file))?.len();
    job.replay_with(&program, &output)?;

    let (mut difference, mut identical) = (0f64, true);
    for name in &job.app.outputs {
        let replayed = job.replayed(name);
        let expected = app::file(job.work, "expected", name, SETS[1]);
        let compared =
            app::compare_files(&replayed, &expected, job.app.tolerance).map_err(Error::Usage)?;
        difference = difference.max(if job.app.exact {
            compared.max_absolute
        } else {
            compared.max_relative
        });
        identical &= app::identical(&replayed, &job.live(name)).map_err(Error::Usage)?;
        if !job.app.exact && !compared.within() {
            return Err(Error::Usage(format!(
                "{name} differs from the reference by {difference:.1e}, more than {:.0e}",
                job.app.tolerance
            )));
        }
    }
    if job.app.exact && !identical {
        return Err(Error::Usage("not what the recorded stack answers".into()));
    }

    let log = job.folder.local.join("log/info.json");
    let mut info = Command::new(&program);
    info.args(["info", "--json"]).arg(&output);
    logged(&mut info, "information", &log)?;
    let info: Info = files::from_json(&log)?;
    let (bench, others) = bench(job, &output)?;
    let guest: Times = files::from_toml(job.work.join("times"))?;
    Ok(Measured {
        jobs: info.jobs,
        bytes: info.file_bytes,
        bytes_without_weights,
        memory: info.gpu_memory_bytes,
        record: guest.record as f64 / 1000.0,
        read: bench.loading.read_seconds,
        load: bench.loading.load_seconds,
        open: bench.open_seconds,
        run: bench.run_seconds.first().copied().unwrap_or_default(),
        difference,
        identical,
        others,
    })
}
