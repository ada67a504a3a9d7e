// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest networks`: records whole networks, replays them with another input, measures, and writes docs/networks.md.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    app::{self, App, SETS},
    folder::{Folder, create_dir},
    payload,
    record::{Recording, network_dir},
    run::report,
    session::{Driver, End},
    step::logged,
};
use crate::error::{Error, Result};

/// What a measured network leaves in its folder.
const MEASURED: &str = "measured.toml";

/// Records networks, compares their replays with a NumPy reference and with the live stack, and measures them.
///
/// Everything stays in target/guest/networks/NAME: traces, recording, outputs, and what was measured. Networks are recorded one
/// after another; the largest ones take an hour under emulation.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest networks lenet squeezenet-1.1\n  \
                        cargo xtask guest networks --reuse --write-doc    # again what is recorded already\n  \
                        cargo xtask guest networks --times --write-doc    # again the times of what is recorded"
)]
pub(crate) struct Networks {
    /// Networks; all if none is named.
    names: Vec<String>,
    /// Use traces that are there; without traces a network is left out.
    #[arg(long)]
    reuse: bool,
    /// Only measure times again, of recordings that are there: on a machine that has nothing else to do.
    #[arg(long, conflicts_with = "reuse")]
    times: bool,
    /// Write docs/networks.md from everything that was measured so far.
    #[arg(long)]
    write_doc: bool,
    /// Use the programs in target/guest/opt and target/release as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until the recording of a network is given up.
    #[arg(long, default_value_t = 7200, value_name = "SECONDS")]
    timeout: u64,
}

/// One line of the table; times in seconds.
#[derive(Debug, Deserialize, Serialize)]
struct Measured {
    /// Jobs of set-up and of one run.
    jobs: u64,
    /// Size of the recording.
    bytes: u64,
    /// Size of a recording of the same trace with its weights outside.
    bytes_without_weights: u64,
    /// GPU memory that it maps.
    memory: u64,
    /// The app in the guest while it was recorded.
    record: f64,
    /// Reading the file, from the page cache.
    read: f64,
    /// Reading and verifying it: checksums and rules.
    load: f64,
    /// Reset, memory and set-up jobs.
    open: f64,
    /// One run.
    run: f64,
    /// Largest difference from the reference, in the unit of the table.
    difference: f64,
    /// Every output is what the live stack wrote, bit for bit.
    identical: bool,
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

/// Fastest of some rounds.
#[derive(Deserialize)]
struct Loading {
    read_seconds: f64,
    load_seconds: f64,
}

impl Networks {
    /// Runs the command.
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
        if self.write_doc {
            let path = folder.repository.join("docs/networks.md");
            let text = document(&folder, &App::all(&folder)?)?;
            fs::write(&path, text).map_err(Error::io("write", path))?;
        }
        Ok(ExitCode::from(u8::from(failed > 0)))
    }

    /// Records, compiles, replays and measures one network; false without traces that could be used.
    fn one(&self, folder: &Folder, name: &str) -> Result<bool> {
        let app = App::find(folder, name)?;
        if !app.network {
            return Err(Error::Usage(format!("{name} is not a network")));
        }
        let work = network_dir(folder, name);
        create_dir(&work)?;
        let job = Recording {
            folder,
            name,
            app: &app,
            gpu: "g52",
            work: &work,
            timeout: Duration::from_secs(self.timeout),
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
            if outcome.end != End::Exit(0) || !outcome.faults.is_empty() {
                report(&outcome, false, self.timeout);
                return Err(Error::Usage("the guest could not record it".into()));
            }
        }
        save(&job, &measure(&job)?)?;
        Ok(true)
    }

    /// Measures the times of a recording that was measured before; false if there is none.
    fn times(&self, job: &Recording<'_>) -> Result<bool> {
        let output = job.default_output();
        let path = job.work.join(MEASURED);
        if !output.join("recording.gpr").is_file() || !path.is_file() {
            return Ok(false);
        }
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let measured: Measured = toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))?;
        let bench = bench(job, &output)?;
        save(
            job,
            &Measured {
                read: bench.loading.read_seconds,
                load: bench.loading.load_seconds,
                open: bench.open_seconds,
                run: bench.run_seconds.first().copied().unwrap_or_default(),
                ..measured
            },
        )?;
        Ok(true)
    }
}

/// Prints a row of the table, and keeps its numbers.
fn save(job: &Recording<'_>, measured: &Measured) -> Result<()> {
    println!("{}", row(job.name, job.app, measured));
    let text = toml::to_string(measured)
        .map_err(|error| Error::Usage(format!("{}: {error}", job.name)))?;
    let path = job.work.join(MEASURED);
    fs::write(&path, text).map_err(Error::io("write", path))
}

/// Loads, sets up and runs a recording once.
fn bench(job: &Recording<'_>, recording: &Path) -> Result<Bench> {
    let times = job.work.join("bench.json");
    let mut bench = Command::new(payload::release_command(job.folder));
    bench.arg("bench").arg(recording);
    bench.args(["--warmup", "0", "--runs", "1", "--export-json"]);
    bench.arg(&times);
    let log = job.folder.local.join("log/bench.log");
    logged(&mut bench, "measuring", &log)?;
    json(&times)
}

fn measure(job: &Recording<'_>) -> Result<Measured> {
    let program = payload::release_command(job.folder);
    let output = job.default_output();
    job.live_is_recorded()?;
    job.compile_with(&program, &output, &[])?;
    job.complete(&output)?;
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
        // 8-bit outputs differ by whole steps.
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
    let info: Info = json(&log)?;
    let bench = bench(job, &output)?;
    let path = job.work.join("times");
    let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let guest: Times = toml::from_str(&text)
        .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))?;
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
    })
}

fn json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(Error::io("read", path))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

/// The columns of the table.
const COLUMNS: &str = "\
| Network | Jobs | Recording | Without weights | GPU memory | Recording it | Reading | Loading | Set-up | One run | From the reference | As the live stack |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |
";

fn row(name: &str, app: &App, m: &Measured) -> String {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let difference = if app.exact {
        format!("{} steps", m.difference)
    } else {
        format!("{:.1e}", m.difference)
    };
    format!(
        "| {name} | {} | {} | {} | {} | {:.0} s | {:.1} ms | {:.1} ms ({:.0} %) | {:.2} s | {:.2} s | {difference} | {} |",
        m.jobs,
        megabytes(m.bytes),
        megabytes(m.bytes_without_weights),
        megabytes(m.memory),
        m.record,
        m.read * 1e3,
        m.load * 1e3,
        m.read / m.load * 100.0,
        m.open,
        m.run,
        if m.identical {
            "bit for bit"
        } else {
            "differs"
        },
    )
}

/// The page for people, from what lies in the networks' folders.
fn document(folder: &Folder, apps: &std::collections::BTreeMap<String, App>) -> Result<String> {
    let mut out = String::from(HEAD);
    out += COLUMNS;
    let mut missing = Vec::new();
    for (name, app) in apps.iter().filter(|(_, app)| app.network) {
        let path: PathBuf = network_dir(folder, name).join(MEASURED);
        let Ok(text) = fs::read_to_string(&path) else {
            missing.push(name.as_str());
            continue;
        };
        let measured: Measured = toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))?;
        out += &row(name, app, &measured);
        out.push('\n');
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "\nNot measured yet: {}.", missing.join(", "));
    }
    out += TAIL;
    Ok(out)
}

const HEAD: &str = "\
# Networks

Whole networks by Arm Compute Library's graph API on Mesa's OpenCL, recorded in the guest and replayed on the GPU model with an
input that was not recorded. `cargo xtask guest networks --write-doc` makes this page; `cargo xtask guest record NAME` makes one recording.

The layers are in `tools/networks/networks.py`; `tools/guest/apps/acl_network.cpp` builds them for the library, `tools/networks/layers.py`
computes them in NumPy, in double precision. Weights come from a seed: the networks are not trained, their answers mean nothing, and
every number of them can be checked.

";

const TAIL: &str = "
Jobs: of set-up (weights into the library's own form, once) and of one run together. Recording it: the app's wall-clock time in the
guest, on an emulated CPU, with the recorder on and compiled shaders in the cache (inception-v3's takes 440 s without the recorder). Set-up: reset, memory, set-up jobs. Set-up and one run are on
the GPU model. All times are from a machine that had other work.

vgg-16 does not fit into the guest, which has 2 GB: its 138 million weights (553 MB), the library's own forms of them and its other buffers
are 1.6 GB of GPU memory at the peak. The app alone runs; with the recorder's log beside it the kernel ends it for want of memory.

Reading: the file from the page cache into new memory (`std::fs::read`). Loading: reading it, its checksums, and every rule of the verifier; in
brackets the speed of that as a part of the speed of reading. Both are CPU time, the fastest of some, in turns, in one process (`gpureplay bench DIR`),
into memory that the process did not have before. Rules cost time for each action, and LZ4 blocks are walked to their ends: the part is smaller where a
file is small for what it does (squeezenet-1.0 has 26 822 actions in 6 MB) or mostly compressed (mobilenet-v1-u8).

From the reference: the largest difference of an output element, relative to the larger of its magnitude and the mean magnitude; for 8 bits, in steps of
the output's scale, from a reference that rounds to 8 bits after every layer but not in the library's way. 1e-4 is allowed for 32-bit floats, 1e-2
for 16. inception-v3 alone exceeds that: its generated weights give scores that are 33 apart, and the softmax turns a rounding of 1e-5 in a score of 25 into
2.5e-4 of a probability; three of its 1000 elements are beyond 1e-4. As the live stack: the replay's outputs
against those of the app in the guest, unrecorded, for the same input.

Each recording was checked against a second one with another input. The compiler refuses a recording if the two do not do the same work, as in a network
whose shapes depend on values of its input (`job 7 computes 1024 x 1 x 1 and 512 x 1 x 1 work-items`), or if anything that the app wrote differs and belongs to no tensor.

Weights are tensors of the recording by the names of their layers (`gpureplay info`). They can be replaced (`gpureplay run --bind conv1.weight=w.npy`) or kept
outside the recording (`gpureplay compile --external-weights`): the column without weights is the size of what remains, which serves every model of that shape.
[Replays inside other programs](embedding.md) says what layers and jobs as segments cost.
";
