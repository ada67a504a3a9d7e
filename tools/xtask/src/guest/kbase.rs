// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest kbase`: Arm's own driver, from a source that the user has, in a guest whose kernel it builds for: a client
//! runs a recording's job chains through it, with the recorder loaded, and what was recorded replays.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;

use super::{
    app, build,
    folder::{Folder, create_dir},
    payload, registers,
    run::report,
    session::{self, Driver, End, Options, Outcome},
    step::logged,
};
use crate::error::{Error, Result};

/// Environment variable that names a source of kbase; tests of it are skipped without.
pub(crate) const SOURCE_VARIABLE: &str = "GPUREPLAY_KBASE";
/// Where the driver lies inside Arm's packages and vendors' kernels.
const PLACES: [&str; 4] = [
    ".",
    "driver/product/kernel/drivers/gpu/arm/midgard",
    "kernel/drivers/gpu/arm/midgard",
    "drivers/gpu/arm/midgard",
];

/// Runs saxpy's recorded job chain on Arm's kernel driver, records that, and replays the new recording.
///
/// The driver is not part of this repository: --source, or GPUREPLAY_KBASE, names a folder with it (releases r9p0 to
/// r44p1 take the hooks; r25p0 and later have been seen to build for the guest's Linux 5.10).
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask guest kbase --source ~/r44p1/driver/product/kernel/drivers/gpu/arm/midgard
  cargo xtask guest kbase --source ~/r44p1 --keep /tmp/kbase     traces and the recording stay there
  cargo xtask guest kbase --source ~/r25p0 --grow                memory that grows while the job runs")]
pub(crate) struct Kbase {
    /// The driver's folder, or a package or kernel tree that has it.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Memory that the CPU does not write grows when the GPU touches it.
    #[arg(long)]
    grow: bool,
    /// Keep traces, outputs and the recording in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 900, value_name = "SECONDS")]
    timeout: u64,
}

impl Kbase {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let temporary = tempfile::tempdir().map_err(Error::io("create", env::temp_dir()))?;
        let work = match &self.keep {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None => temporary.path().to_path_buf(),
        };
        create_dir(&work)?;
        let trial = Trial {
            gpu: &self.gpu,
            grow: self.grow,
            timeout: Duration::from_secs(self.timeout),
            ..Trial::new(&folder, &work)
        };
        let named = env::var_os(SOURCE_VARIABLE).map(PathBuf::from);
        let source = self.source.clone().or(named).ok_or_else(|| {
            Error::Usage(format!(
                "--source DIR, or {SOURCE_VARIABLE}, must name a source of the driver"
            ))
        })?;
        let outcome = trial.run(&driver(&source)?)?;
        if outcome.end != End::Exit(0) {
            return Ok(ExitCode::from(report(&outcome, true, self.timeout)));
        }
        match trial.check() {
            Ok(text) => {
                print!("{text}");
                Ok(ExitCode::SUCCESS)
            }
            Err(text) => {
                eprintln!("error: {text}\n  logs: {}", outcome.logs.display());
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

/// The driver's own folder.
pub(crate) fn driver(source: &Path) -> Result<PathBuf> {
    let found = PLACES
        .iter()
        .map(|place| source.join(place))
        .find(|dir| dir.join("mali_kbase_core_linux.c").is_file());
    let found = found.ok_or_else(|| {
        Error::Usage(format!(
            "--source {}: no mali_kbase_core_linux.c there",
            source.display()
        ))
    })?;
    found.canonicalize().map_err(Error::io("find", found))
}

/// One release in the guest.
pub(crate) struct Trial<'a> {
    folder: &'a Folder,
    gpu: &'a str,
    grow: bool,
    work: &'a Path,
    timeout: Duration,
}

impl<'a> Trial<'a> {
    /// A trial that leaves its files in `work`.
    pub(crate) fn new(folder: &'a Folder, work: &'a Path) -> Trial<'a> {
        Trial {
            folder,
            gpu: "g52",
            grow: false,
            work,
            timeout: Duration::from_secs(900),
        }
    }

    /// Builds the driver and runs the client under the recorder, once per set of inputs.
    pub(crate) fn run(&self, driver: &Path) -> Result<Outcome> {
        let folder = self.folder;
        build::kbase_kernel(folder)?;
        payload::kbase(folder, driver)?;
        let recording = folder.repository.join("recordings/saxpy-g52");
        let to = self.work.join("saxpy-g52");
        create_dir(&to)?;
        copy(&recording.join("recording.gpr"), &to.join("recording.gpr"))?;
        app::write_files(folder, "saxpy", self.work)?;
        let guest = Folder {
            guest: folder.guest.join("linux-5.10"),
            ..folder.clone()
        };
        let options = Options {
            gpu: self.gpu.to_owned(),
            driver: Driver::None,
            timeout: self.timeout,
            share: Some(self.work.to_path_buf()),
            model_options: vec![
                "--register-log".into(),
                self.work.join("registers").display().to_string(),
            ],
            ..Options::default()
        };
        let grow = if self.grow { "--grow" } else { "" };
        let script = SCRIPT.replace("GROW", grow);
        session::run(
            &guest,
            &options,
            Some(&["bash", "-c", &script].map(String::from)),
        )
    }

    /// Compares outputs with the reference and the trace with the model's log, compiles, and replays.
    pub(crate) fn check(&self) -> std::result::Result<String, String> {
        let mut text = String::new();
        for set in app::SETS {
            let expected = app::file(self.work, "expected", "out", set);
            let found = self.work.join(format!("out{set}.npy"));
            let error = app::check(&found, &expected, app::TOLERANCE)?;
            text += &format!(
                "on kbase, inputs {}: relative error {error:.1e}\n",
                name(set)
            );
        }
        registers::same_writes(&self.work.join("trace"), &self.work.join("registers"))?;
        text += "register writes of the trace equal those that the model saw\n";
        let recording = self.work.join("saxpy-kbase");
        let mut compile = Command::new(payload::host_command(self.folder));
        compile
            .current_dir(self.work)
            .args(["compile", "trace", "--force", "-o"])
            .arg(&recording)
            .args(["--input=x=inputs/x.npy", "--input=y=inputs/y.npy"])
            .arg("--output=out=out.npy");
        let log = self.folder.local.join("log");
        logged(&mut compile, "compiling", &log.join("kbase-compile.log"))
            .map_err(|error| error.to_string())?;
        let replayed = self.work.join("replayed.npy");
        let mut replay = Command::new(payload::host_command(self.folder));
        replay
            .current_dir(self.work)
            .args(["run", "saxpy-kbase"])
            .args(["--input=x=inputs/x2.npy", "--input=y=inputs/y2.npy"])
            .arg("--output=out=replayed.npy");
        logged(&mut replay, "replaying", &log.join("kbase-replay.log"))
            .map_err(|error| error.to_string())?;
        let expected = app::file(self.work, "expected", "out", app::SETS[1]);
        let error = app::check(&replayed, &expected, app::TOLERANCE)?;
        text += &format!("replayed with the other inputs: relative error {error:.1e}\n");
        Ok(text)
    }
}

fn name(set: &str) -> &str {
    if set.is_empty() { "1" } else { set }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .map_err(Error::io("copy", from))
}

/// Each recording begins with the driver's probe, so the driver is loaded for each.
const SCRIPT: &str = "set -e
modules=/opt/gpureplay/kbase
insmod $modules/gpureplay_recorder.ko
for set in '' 2; do
  cat /dev/gpureplay > trace$set & reader=$!
  until ls -l /proc/$reader/fd | grep -q gpureplay; do sleep 0.1; done
  insmod $modules/mali_kbase.ko
  kbase-client saxpy-g52 GROW --input x=inputs/x$set.npy --input y=inputs/y$set.npy --output out=out$set.npy
  echo stop > /dev/gpureplay
  wait $reader
  rmmod mali_kbase
done";
