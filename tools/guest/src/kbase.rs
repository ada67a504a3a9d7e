// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest kbase`: recording and replay on Arm's driver.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;

use crate::{
    build::{self, payload, step::logged},
    devices::panfrost,
    error::{Error, Result},
    files,
    folder::Folder,
    record::{app, registers},
    run::{
        driver::Driver,
        report,
        session::{self, Checked, End, Options, Outcome},
    },
};

pub(crate) const SOURCE_VARIABLE: &str = "GPUREPLAY_KBASE";
const PLACES: [&str; 4] = [
    ".",
    "driver/product/kernel/drivers/gpu/arm/midgard",
    "kernel/drivers/gpu/arm/midgard",
    "drivers/gpu/arm/midgard",
];

/// Replays saxpy through Arm's kernel driver, records that, and replays the new recording; then all recordings as an
/// ordinary user, compared with the model. Or runs one recording.
///
/// --source, or GPUREPLAY_KBASE, names a folder with the driver (releases r9p0 to r44p1 take the hooks; r25p0 and
/// later build for Linux 5.10).
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask guest kbase --source ~/r44p1/driver/product/kernel/drivers/gpu/arm/midgard
  cargo xtask guest kbase --source ~/r44p1 --keep /tmp/kbase     traces and recordings stay there
  cargo xtask guest kbase --source ~/r25p0 --gpu g71 --recording mnist-g71 --values DIR --output probabilities")]
pub(crate) struct Kbase {
    /// The driver's folder, or a package or kernel tree that has it.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Which GPU the model is.
    #[arg(
        long,
        default_value = "g52",
        value_name = "NAME",
        requires = "recording"
    )]
    gpu: String,
    /// Run this recording instead, once.
    #[arg(long, value_name = "DIR", requires = "values", requires = "output")]
    recording: Option<PathBuf>,
    /// A directory with NAME.npy for each input and weight of that recording.
    #[arg(long, value_name = "DIR", requires = "recording")]
    values: Option<PathBuf>,
    /// An output of that recording to compare; may be repeated.
    #[arg(long, value_name = "NAME", requires = "recording")]
    output: Vec<String>,
    /// Keep traces, outputs and the recording in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 2400, value_name = "SECONDS")]
    timeout: u64,
}

impl Kbase {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let temporary = files::temporary()?;
        let work = match &self.keep {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None => temporary.path().to_path_buf(),
        };
        files::create_dir(&work)?;
        let job = match (&self.recording, &self.values) {
            (Some(recording), Some(values)) => {
                Some(Job::new(recording, values, &self.output, &work)?)
            }
            _ => None,
        };
        let trial = Trial {
            gpu: &self.gpu,
            timeout: Duration::from_secs(self.timeout),
            job,
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

pub(crate) struct Trial<'a> {
    folder: &'a Folder,
    gpu: &'a str,
    work: &'a Path,
    timeout: Duration,
    job: Option<Job>,
}

struct Job {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Job {
    fn new(recording: &Path, values: &Path, outputs: &[String], work: &Path) -> Result<Job> {
        let to = work.join("job");
        files::create_dir(&to)?;
        files::copy(recording.join("recording.gpr"), to.join("recording.gpr"))?;
        files::create_dir(work.join("values"))?;
        let mut inputs = Vec::new();
        for path in files::entries(values)? {
            if let (Some(name), true) = (
                path.file_stem().and_then(|stem| stem.to_str()),
                path.extension().is_some_and(|end| end == "npy"),
            ) {
                files::copy(&path, work.join("values").join(format!("{name}.npy")))?;
                inputs.push(format!("--input={name}=values/{name}.npy"));
            }
        }
        inputs.sort();
        Ok(Job {
            inputs,
            outputs: outputs.to_vec(),
        })
    }

    fn arguments(&self, prefix: &str) -> Vec<String> {
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|name| format!("--output={name}={prefix}-{name}.npy"));
        self.inputs.iter().cloned().chain(outputs).collect()
    }
}

impl<'a> Trial<'a> {
    pub(crate) fn new(folder: &'a Folder, work: &'a Path) -> Trial<'a> {
        Trial {
            folder,
            gpu: "g52",
            work,
            timeout: Duration::from_secs(2400),
            job: None,
        }
    }

    pub(crate) fn run(&self, driver: &Path) -> Result<Outcome> {
        let folder = self.folder;
        build::kbase_kernel(folder)?;
        payload::kbase(folder, driver)?;
        let recording = folder.repository.join("recordings/saxpy-g52");
        let to = self.work.join("saxpy-g52");
        files::create_dir(&to)?;
        files::copy(recording.join("recording.gpr"), to.join("recording.gpr"))?;
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
            environment: vec![("KILLS".into(), KILLS.to_string())],
            model_options: vec![
                "--register-log".into(),
                self.work.join("registers").display().to_string(),
                // One of the wrong chains must take longer than the driver permits.
                "--job-limit".into(),
                panfrost::JOB_LIMIT.to_string(),
            ],
            ..Options::default()
        };
        let runs = match &self.job {
            Some(job) => {
                let quoted = job.arguments("kbase").into_iter();
                let quoted = quoted.map(|text| format!(" '{}'", text.replace('\'', r"'\''")));
                format!(
                    "record job gpureplay run --force --device kbase job{}",
                    quoted.collect::<String>()
                )
            }
            None => {
                panfrost::expect(folder, self.work, self.gpu, &[])?;
                format!("{SAXPY}\n(\n{REPLAYS})")
            }
        };
        let script = format!("{SCRIPT}{runs}");
        let command = ["bash", "-c", &script].map(String::from);
        session::run(&guest, &options, Some(&command))
    }

    pub(crate) fn check(&self) -> std::result::Result<String, String> {
        if let Some(job) = &self.job {
            return self.check_job(job);
        }
        let mut text = String::new();
        for (run, set) in RUNS {
            let expected = app::file(self.work, "expected", "out", set);
            let found = self.work.join(format!("out-{run}.npy"));
            let error = app::check(&found, &expected, app::TOLERANCE)?;
            let trace = self.work.join(format!("trace-{run}"));
            registers::same_writes(&trace, &self.work.join("registers"))?;
            let faults = registers::page_faults(&trace)?;
            if faults > 0 {
                return Err(format!("{}: {faults} page faults", trace.display()));
            }
            text += &format!(
                "{run}: relative error {error:.1e}, register writes as the model saw them\n"
            );
            let error = self.replay(run, set)?;
            text += &format!("{run}, replayed with other inputs: relative error {error:.1e}\n");
        }
        text += &self.check_growth()?;
        text += &self.check_user()?;
        Ok(text)
    }

    fn check_user(&self) -> std::result::Result<String, String> {
        let [first, other] = app::SETS;
        let mut arguments = vec!["run".into(), "--force".into(), "user-recording".into()];
        arguments.extend(values("input", "output", other, "replayed-user.npy"));
        self.gpureplay(&arguments, "replay")?;
        let mut text = String::new();
        for (file, set) in [
            ("user.npy", first),
            ("user2.npy", other),
            ("replayed-user.npy", other),
        ] {
            let expected = app::file(self.work, "expected", "out", set);
            let error = app::check(&self.work.join(file), &expected, app::TOLERANCE)?;
            text += &format!("user space, {file}: relative error {error:.1e}\n");
        }
        for (name, words) in [("atoms", 16), ("grow", 32)] {
            let file = |end: &str| self.work.join(format!("user-{name}.{end}"));
            self.compares(&file("trace"), &file("bin"), words)?;
            text += &format!("user space, {name}: replayed\n");
        }
        Ok(text)
    }

    /// Pages come at GPU faults while recording; a replay has them from the start.
    fn check_growth(&self) -> std::result::Result<String, String> {
        let trace = self.work.join("trace-grow");
        registers::same_writes(&trace, &self.work.join("registers"))?;
        let faults = registers::page_faults(&trace)?;
        if faults == 0 {
            return Err(format!("{}: no page fault", trace.display()));
        }
        self.compares(&trace, &self.work.join("said-grow"), 32)?;
        Ok(format!("growing memory: {faults} page faults, replayed\n"))
    }

    fn compares(&self, trace: &Path, said: &Path, words: usize) -> Checked {
        let compile = format!(
            "compile {} --force -o said --writes=out=said.bin:u32[{words}]",
            trace.display()
        );
        let replay = "run --force said --output=out=replayed-said.bin".to_owned();
        files::copy(said, self.work.join("said.bin")).map_err(|error| error.to_string())?;
        for (what, line) in [("compile", compile), ("replay", replay)] {
            let words: Vec<String> = line.split(' ').map(String::from).collect();
            self.gpureplay(&words, what)?;
        }
        let bytes = |name: &str| {
            let path = self.work.join(name);
            fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        match bytes("said.bin")? == bytes("replayed-said.bin")? {
            true => Ok(()),
            false => Err(format!(
                "{}: what the replay gives differs from what the app said",
                trace.display()
            )),
        }
    }

    fn check_job(&self, job: &Job) -> std::result::Result<String, String> {
        let trace = self.work.join("trace-job");
        registers::same_writes(&trace, &self.work.join("registers"))?;
        let mut arguments = vec!["run".into(), "--force".into(), "job".into()];
        arguments.extend(job.arguments("replay"));
        self.gpureplay(&arguments, "replay")?;
        for name in &job.outputs {
            let file = |prefix: &str| self.work.join(format!("{prefix}-{name}.npy"));
            if !app::identical(&file("kbase"), &file("replay"))? {
                return Err(format!("{name} differs from what the replay gives"));
            }
        }
        Ok("outputs as the replay gives them, register writes as the model saw them\n".into())
    }

    fn gpureplay(&self, arguments: &[String], what: &str) -> Checked {
        let log = self.folder.local.join("log");
        let mut command = Command::new(payload::host_command(self.folder));
        command.current_dir(self.work).args(arguments);
        logged(&mut command, what, &log.join(format!("kbase-{what}.log")))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn replay(&self, run: &str, set: &str) -> std::result::Result<f64, String> {
        let recording = format!("saxpy-{run}");
        let mut compile = vec!["compile".into(), format!("trace-{run}")];
        compile.extend(["--force".into(), "-o".into(), recording.clone()]);
        compile.extend(values("reads", "writes", set, &format!("out-{run}.npy")));
        self.gpureplay(&compile, "compile")?;
        let other = app::SETS[usize::from(set == app::SETS[0])];
        let replayed = format!("replayed-{run}.npy");
        let mut replay = vec!["run".into(), "--force".into(), recording];
        replay.extend(values("input", "output", other, &replayed));
        self.gpureplay(&replay, "replay")?;
        let expected = app::file(self.work, "expected", "out", other);
        app::check(&self.work.join(replayed), &expected, app::TOLERANCE)
    }
}

fn values(given: &str, gives: &str, set: &str, out: &str) -> [String; 3] {
    [
        format!("--{given}=x=inputs/x{set}.npy"),
        format!("--{given}=y=inputs/y{set}.npy"),
        format!("--{gives}=out={out}"),
    ]
}

const RUNS: [(&str, &str); 2] = [("first", ""), ("second", "2")];
const KILLS: u32 = 10;
const REPLAYS: &str = concat!(include_str!("devices/user.sh"), include_str!("kbase.sh"));

/// Recordings begin with the driver's probe, so it is loaded for each. In QEMU an interrupt line stays up until the
/// next register access, and kbase's handlers make none while the GPU is off: it stays on until the driver goes, and
/// from before the first job, because r25p0 dies if it goes while the GPU powers up. The tracer shows whether
/// interrupts are off while a page is logged.
const SCRIPT: &str = "set -e
PATH=/opt/gpureplay/shared:$PATH
modules=/opt/gpureplay/kbase
insmod $modules/gpureplay_recorder.ko
tracing=/sys/kernel/tracing
mountpoint -q $tracing || mount -t tracefs none $tracing
echo log_page > $tracing/set_ftrace_filter
echo function > $tracing/current_tracer
record() { # NAME COMMAND
  name=$1; shift
  echo > $tracing/trace
  cat /dev/gpureplay > trace-$name & reader=$!
  until ls -l /proc/$reader/fd | grep -q gpureplay; do sleep 0.1; done
  insmod $modules/mali_kbase.ko
  echo always_on > /sys/class/misc/mali0/device/power_policy
  \"$@\" > said-$name
  echo stop > /dev/gpureplay
  wait $reader
  rmmod mali_kbase
  grep ' log_page <-' $tracing/trace > logged-$name
  if grep '\\] d' logged-$name; then
    echo 'pages are logged with interrupts off'; exit 9
  fi
}
";

const SAXPY: &str = "
saxpy() { # NAME SET
  record $1 gpureplay run --force --device kbase saxpy-g52 \
    --input x=inputs/x$2.npy --input y=inputs/y$2.npy --output out=out-$1.npy
}
saxpy first ''
saxpy second 2
record grow kbase-grow
";
