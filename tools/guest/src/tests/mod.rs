// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest test`: the full-system tests, one line each, and a sum.

mod around;
mod barriers;
mod caches;
mod cases;
mod complaints;
mod gles;
mod linked;
mod opencl;
mod page;
mod pairs;
mod recorder;
mod state;
mod twins;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use tempfile::TempDir;

use crate::{
    build::payload,
    conformance::{operators, piglit},
    devices::Devices,
    error::{Error, Result},
    firmware::checks,
    folder::Folder,
    foreign, kbase, optee,
    record::{
        Recording,
        app::{self, App, SETS},
        registers,
    },
    run::driver::Driver,
    run::session::{self, End, Options, Outcome},
};

/// Runs the full-system tests: the stock driver on the model, recording and replay, and failures of the guest.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest test\n  cargo xtask guest test record\n  \
                        cargo xtask guest test --list"
)]
pub(crate) struct Test {
    /// Only tests whose name contains this; one that takes long runs only if this is its whole name.
    filter: Option<String>,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    no_build: bool,
    /// Guests that run at the same time, for tests that build nothing; the others run alone, after them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    jobs: u32,
    /// Print the tests' names.
    #[arg(long)]
    list: bool,
}

/// What a test found.
#[derive(Default)]
struct Verdict {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// Why it failed or was skipped.
    reason: String,
}

impl Verdict {
    fn pass() -> Verdict {
        Verdict {
            passed: 1,
            ..Verdict::default()
        }
    }

    fn fail(reason: impl Into<String>) -> Verdict {
        Verdict {
            failed: 1,
            reason: reason.into(),
            ..Verdict::default()
        }
    }

    fn skip(reason: impl Into<String>) -> Verdict {
        Verdict {
            skipped: 1,
            reason: reason.into(),
            ..Verdict::default()
        }
    }

    /// Counts what another test found; its reason is printed by then.
    fn add(&mut self, other: &Verdict) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    fn of(result: std::result::Result<(), String>) -> Verdict {
        result.map_or_else(Verdict::fail, |()| Verdict::pass())
    }
}

type TestFunction = fn(&Folder) -> Result<Verdict>;

/// All tests. Those that only ask about the guest itself come first: they are quick.
const TESTS: &[(&str, TestFunction)] = &[
    ("exit code and output of a command arrive", exit_code),
    ("a panic is seen", panic),
    ("a hang is ended", hang),
    ("clinfo names the GPU", clinfo),
    ("kernels give the right values", own_kernels),
    ("sample kernels give the right values", shared_kernels),
    ("kernels give the right values on a G31", |folder| {
        kernels(folder, "g31", "kernels", None)
    }),
    ("kernels give the right values on a G76", |folder| {
        kernels(folder, "g76", "kernels", None)
    }),
    ("kernels give the right values on a G72", |folder| {
        kernels(folder, "g72", "kernels", None)
    }),
    ("kernels give the right values on a G71", |folder| {
        kernels(folder, "g71", "kernels", None)
    }),
    ("what kernels print arrives", |folder| {
        kernels(folder, "g52", "kernel_printf", None)
    }),
    ("OpenGL ES compute is right on a G52", |folder| {
        kernels(folder, "g52", "gles_compute", None)
    }),
    ("OpenGL ES compute is right on a G72", |folder| {
        kernels(folder, "g72", "gles_compute", None)
    }),
    ("images of all formats are read and written", |folder| {
        kernels(folder, "g52", "image_formats", None)
    }),
    ("images of all formats on a G72", |folder| {
        kernels(folder, "g72", "image_formats", None)
    }),
    ("filled images hold the colour on a G52", |folder| {
        kernels(folder, "g52", "image_fill", None)
    }),
    ("filled images hold the colour on a G72", |folder| {
        kernels(folder, "g72", "image_fill", None)
    }),
    ("image samplers of every kind", |folder| {
        kernels(folder, "g52", "image_samplers", None)
    }),
    ("image samplers of every kind on a G72", |folder| {
        kernels(folder, "g72", "image_samplers", None)
    }),
    ("a sample of piglit's OpenCL tests passes", |folder| {
        Ok(sample(piglit::run_subset(folder, "g52")?))
    }),
    (
        "a sample of Arm Compute Library's operators is right",
        |folder| Ok(sample(operators::run_subset(folder, "g52")?)),
    ),
    ("saxpy is right on the stock driver", |folder| {
        stock(folder, "saxpy")
    }),
    ("acl-gemm is right on the stock driver", |folder| {
        stock(folder, "acl-gemm")
    }),
    ("acl-conv is right on the stock driver", |folder| {
        stock(folder, "acl-conv")
    }),
    ("record and replay saxpy", |folder| record(folder, "saxpy")),
    ("record and replay acl-gemm", |folder| {
        record(folder, "acl-gemm")
    }),
    ("record and replay acl-conv", |folder| {
        record(folder, "acl-conv")
    }),
    ("record and replay digits", |folder| {
        record(folder, "digits")
    }),
    ("record and replay lenet", |folder| record(folder, "lenet")),
    ("record and replay decode", |folder| {
        record(folder, "decode")
    }),
    ("launches that depend on the step are named", |folder| {
        Ok(Verdict::of(state::names_launches(folder)?))
    }),
    (
        "OpenCL calls name LeNet's kernels and tensors, and change nothing",
        |folder| Ok(Verdict::of(opencl::names(folder)?)),
    ),
    (
        "a page that changes behind the recorder's back fails the recording",
        |folder| Ok(Verdict::of(recorder::notices(folder)?)),
    ),
    (
        "hard cases of OpenCL are recorded with the right tensors or refused",
        cases::all,
    ),
    (
        "kernels of equal code keep their names, which change nothing else",
        |folder| Ok(Verdict::of(twins::all(folder)?)),
    ),
    (
        "an app for OpenGL ES is recorded by two traces and replayed with a third picture",
        |folder| Ok(Verdict::of(gles::unnoted(folder)?)),
    ),
    ("the page about your own app does what it says", |folder| {
        Ok(Verdict::of(page::own_app(folder)?))
    }),
    ("two replaced kernels are the re-recorded ones", |folder| {
        Ok(Verdict::of(pairs::replaced(folder, pairs::SAMPLE, false)?))
    }),
    (
        "the nano driver compiles for three kernels without a complaint",
        |folder| Ok(silence(&complaints::nano(folder)?)),
    ),
    (
        "recorder and probes compile for three kernels without a complaint",
        |folder| Ok(silence(&complaints::recorder(folder)?)),
    ),
    (
        "replays, kills and a hostile client on the nano driver and /dev/mem, then panfrost again",
        devices,
    ),
    (
        "linked chains are one submission on the nano driver, /dev/mem and bare metal",
        |folder| Ok(Verdict::of(linked::one_submission(folder)?)),
    ),
    (
        "non-coherent caches: panfrost computes, saxpy is recorded and replays",
        caches::panfrost,
    ),
    (
        "the nano driver has a barrier at every access to a register",
        |folder| Ok(Verdict::of(barriers::nano(folder)?)),
    ),
    (
        "a job on Arm's own driver is recorded and replays",
        own_driver,
    ),
    ("firmware answers", |folder| {
        Ok(Verdict::of(checks::answers(folder)?))
    }),
    (
        "firmware writes a thousand characters from its own state",
        |folder| Ok(Verdict::of(checks::writes(folder)?)),
    ),
    (
        "firmware keeps its state after faults at some calls",
        |folder| Ok(Verdict::of(checks::recovers(folder, SOME_CALLS)?)),
    ),
    ("firmware refuses what is damaged or foreign", |folder| {
        Ok(Verdict::of(checks::refuses(folder)?))
    }),
    ("firmware of others embeds the replayer", |folder| {
        Ok(Verdict::of(checks::embedding(folder)?))
    }),
    ("firmware takes signed recordings only", |folder| {
        Ok(Verdict::of(checks::signature(folder)?))
    }),
    ("a secure world replays what is signed", |folder| {
        Ok(Verdict::of(optee::checks::short(folder)?))
    }),
];

/// Tests that take long: only those that `guest test NAME` names in full run.
const LONG: &[(&str, TestFunction)] = &[
    ("record and replay train-perceptron", |folder| {
        record(folder, "train-perceptron")
    }),
    (
        "a transformer with a cache writes a thousand characters",
        |folder| Ok(Verdict::of(state::decodes(folder)?)),
    ),
    (
        "training live, by replay and by NumPy agrees for some steps",
        |folder| Ok(Verdict::of(state::learns_a_little(folder)?)),
    ),
    (
        "states on the nano driver: runs without end, and faults at some calls",
        |folder| Ok(Verdict::of(state::nano(folder, SOME_CALLS)?)),
    ),
    (
        "programs of others are recorded with two inputs and replayed with a third",
        |folder| Ok(sample(foreign::run_sample(folder)?)),
    ),
    (
        "non-coherent caches: the nano driver is right, and wrong without any one of its calls",
        |folder| Ok(Verdict::of(caches::nano(folder)?)),
    ),
    (
        "the nano driver with a power domain, little memory, locked down, asleep",
        |folder| Ok(Verdict::of(around::nano(folder)?)),
    ),
    (
        "long: all pairs of replaced kernels, and binaries that do not fit",
        |folder| Ok(Verdict::of(pairs::replaced(folder, usize::MAX, true)?)),
    ),
    (
        "long: training live, by replay and by NumPy agrees for all steps",
        |folder| {
            Ok(match state::learns(folder)? {
                Some(result) => Verdict::of(result),
                None => Verdict::skip(
                    "GPUREPLAY_BATCHES names no folder with what tools/training/data.py writes, for each network",
                ),
            })
        },
    ),
    (
        "long: states on the nano driver: faults at every call",
        |folder| Ok(Verdict::of(state::nano(folder, 1)?)),
    ),
    (
        "long: firmware keeps its state after faults at every call",
        |folder| Ok(Verdict::of(checks::recovers(folder, 1)?)),
    ),
    ("record and replay train-clblast", |folder| {
        record(folder, "train-clblast")
    }),
];

/// Calls between two faults of a short test.
const SOME_CALLS: u32 = 40;

/// Beginnings and ends of the names of tests that only boot a guest: they may run beside others.
const BESIDE_OTHERS: [&str; 11] = [
    "kernels give",
    "sample kernels",
    "what kernels print",
    "OpenGL ES",
    "images of",
    "filled images",
    "image samplers",
    "a sample of",
    "record and replay",
    "launches that depend",
    "on the stock driver",
];

fn beside_others(name: &str) -> bool {
    let mut known = BESIDE_OTHERS.iter();
    known.any(|part| name.starts_with(part) || name.ends_with(part))
}

/// Runs one test and prints its line.
fn run(folder: &Folder, name: &str, test: TestFunction) -> Verdict {
    let start = Instant::now();
    let verdict = test(folder).unwrap_or_else(|error| Verdict::fail(error.to_string()));
    let word = match &verdict {
        Verdict { failed: 1.., .. } => "FAIL",
        Verdict { passed: 0, .. } => "skip",
        _ => "ok  ",
    };
    let seconds = start.elapsed().as_secs_f64();
    let reason = if verdict.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", verdict.reason)
    };
    println!("{word} {name} ({seconds:.0} s){reason}");
    verdict
}

/// Runs tests, so many at a time, and adds up what they found.
fn run_all(folder: &Folder, tests: &[&(&str, TestFunction)], jobs: u32) -> Verdict {
    let waiting = Mutex::new(tests.iter());
    let work = || {
        let mut sum = Verdict::default();
        loop {
            let Some((name, test)) = waiting.lock().ok().and_then(|mut them| them.next()) else {
                return sum;
            };
            sum.add(&run(folder, name, *test));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut sum = Verdict::default();
        for worker in workers {
            match worker.join() {
                Ok(part) => sum.add(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        sum
    })
}

impl Test {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let wanted = |name: &str| self.filter.as_ref().is_none_or(|part| name.contains(part));
        if self.list {
            for (name, _) in TESTS.iter().chain(LONG) {
                println!("{name}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        let folder = Folder::find()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
            payload::build_host_command(&folder)?;
        }
        let long = LONG
            .iter()
            .filter(|(name, _)| self.filter.as_deref() == Some(*name));
        let tests = TESTS.iter().filter(|(name, _)| wanted(name)).chain(long);
        let (beside, alone): (Vec<_>, Vec<_>) =
            tests.partition(|(name, _)| self.jobs > 1 && beside_others(name));
        let mut sum = run_all(&folder, &beside, self.jobs);
        sum.add(&run_all(&folder, &alone, 1));
        println!(
            "{} passed, {} failed, {} skipped",
            sum.passed, sum.failed, sum.skipped
        );
        Ok(ExitCode::from(u8::from(sum.failed > 0)))
    }
}

/// Runs a shell script in the guest.
fn script(folder: &Folder, options: &Options, text: &str) -> Result<Outcome> {
    session::run(
        folder,
        options,
        Some(&["bash", "-c", text].map(String::from)),
    )
}

/// A run that must end with code 0 and a clean kernel log.
fn clean(outcome: &Outcome) -> std::result::Result<(), String> {
    if outcome.end != End::Exit(0) {
        return Err(format!(
            "{:?}, logs: {}",
            outcome.end,
            outcome.logs.display()
        ));
    }
    match outcome.faults.first() {
        Some(fault) => Err(format!("{fault}, logs: {}", outcome.logs.display())),
        None => Ok(()),
    }
}

fn exit_code(folder: &Folder) -> Result<Verdict> {
    let options = Options {
        driver: Driver::None,
        environment: vec![("WORD".into(), "it's $HOME".into())],
        ..Options::default()
    };
    let outcome = script(
        folder,
        &options,
        "printf '%s\\n\\0\\377' \"$WORD\"; exit 37",
    )?;
    Ok(Verdict::of(
        if outcome.end == End::Exit(37) && outcome.stdout == b"it's $HOME\n\0\xff" {
            Ok(())
        } else {
            Err(format!("{:?}, output {:?}", outcome.end, outcome.stdout))
        },
    ))
}

fn panic(folder: &Folder) -> Result<Verdict> {
    let options = Options {
        driver: Driver::None,
        ..Options::default()
    };
    let outcome = script(folder, &options, "echo c > /proc/sysrq-trigger; sleep 60")?;
    let seen = outcome
        .faults
        .iter()
        .any(|line| line.contains("Kernel panic"));
    Ok(Verdict::of(if outcome.end == End::GuestDied && seen {
        Ok(())
    } else {
        Err(format!("{:?}, faults {:?}", outcome.end, outcome.faults))
    }))
}

fn hang(folder: &Folder) -> Result<Verdict> {
    let options = Options {
        driver: Driver::None,
        timeout: Duration::from_secs(3),
        ..Options::default()
    };
    let outcome = script(folder, &options, "sleep 1000")?;
    Ok(Verdict::of(if outcome.end == End::Timeout {
        Ok(())
    } else {
        Err(format!("{:?}", outcome.end))
    }))
}

fn clinfo(folder: &Folder) -> Result<Verdict> {
    let outcome = script(folder, &Options::default(), "clinfo --list")?;
    let output = String::from_utf8_lossy(&outcome.stdout);
    let named = output.contains("Mali-G52");
    Ok(Verdict::of(clean(&outcome).and_then(|()| {
        named
            .then_some(())
            .ok_or_else(|| format!("clinfo says: {}", output.trim()))
    })))
}

fn own_kernels(folder: &Folder) -> Result<Verdict> {
    kernels(folder, "g52", "kernels", None)
}

fn shared_kernels(folder: &Folder) -> Result<Verdict> {
    let shared = env::var_os("GPUREPLAY_SHARED")
        .map(PathBuf::from)
        .or_else(|| Some(folder.repository.parent()?.join("shared")))
        .map(|shared| shared.join("reference/shader-samples/kernels"))
        .filter(|dir| dir.join("basic.cl").is_file());
    let Some(dir) = shared else {
        return Ok(Verdict::skip("the samples are not beside the repository"));
    };
    let copy = temporary()?;
    for name in ["basic.cl", "nn.cl", "sync.cl"] {
        let from = dir.join(name);
        std::fs::copy(&from, copy.path().join(name)).map_err(Error::io("copy", from))?;
    }
    kernels(
        folder,
        "g52",
        "kernels --shared --dir /share",
        Some(copy.path()),
    )
}

/// Runs the kernel checker and takes its counts.
fn kernels(folder: &Folder, gpu: &str, command: &str, share: Option<&Path>) -> Result<Verdict> {
    let options = Options {
        gpu: gpu.into(),
        share: share.map(Path::to_path_buf),
        ..Options::default()
    };
    kernels_with(folder, options, command)
}

/// The same with other options.
fn kernels_with(folder: &Folder, options: Options, command: &str) -> Result<Verdict> {
    let outcome = script(folder, &options, command)?;
    let output = String::from_utf8_lossy(&outcome.stdout);
    let counts = output.lines().next_back().and_then(|line| {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some((passed.parse().ok()?, failed.parse().ok()?))
    });
    let (passed, mut failed): (u32, u32) = counts.unwrap_or((0, 1));
    let mut reason: Vec<String> = output
        .lines()
        .filter(|line| line.starts_with("FAIL"))
        .map(str::to_owned)
        .collect();
    if let Err(text) = clean(&outcome) {
        failed = failed.max(1);
        reason.push(text);
    }
    Ok(Verdict {
        passed,
        failed,
        skipped: 0,
        reason: reason.join("; "),
    })
}

/// The verdict on a sample of a larger set: how many were right, and what was wrong.
fn sample((passed, wrong): (usize, Vec<String>)) -> Verdict {
    Verdict {
        passed: u32::try_from(passed).unwrap_or(u32::MAX),
        failed: u32::try_from(wrong.len()).unwrap_or(u32::MAX),
        skipped: 0,
        reason: wrong.join("; "),
    }
}

/// An example program on the stock driver, both sets of inputs.
fn stock(folder: &Folder, name: &str) -> Result<Verdict> {
    let app = App::find(folder, name)?;
    let work = temporary()?;
    app::write_files(folder, name, work.path())?;
    let options = Options {
        share: Some(work.path().to_path_buf()),
        ..Options::default()
    };
    let both = SETS.map(|set| app.command(set)).join(" && ");
    let outcome = script(folder, &options, &both)?;
    Ok(Verdict::of(clean(&outcome).and_then(|()| {
        for (set, output) in SETS
            .iter()
            .flat_map(|set| app.outputs.iter().map(move |output| (set, output)))
        {
            let found = work.path().join(format!("{output}{set}.npy"));
            let expected = app::file(work.path(), "expected", output, set);
            app::check(&found, &expected, app.tolerance)?;
        }
        Ok(())
    })))
}

/// An example program recorded on the patched driver and replayed with another input; and the recorder's register
/// writes are the model's, one for one.
fn record(folder: &Folder, name: &str) -> Result<Verdict> {
    record_on(folder, name, false)
}

/// The same, on a machine that is coherent or not.
fn record_on(folder: &Folder, name: &str, non_coherent: bool) -> Result<Verdict> {
    let app = App::find(folder, name)?;
    let work = temporary()?;
    let recording = Recording {
        folder,
        name,
        app: &app,
        gpu: "g52",
        work: work.path(),
        timeout: Duration::from_secs(1800),
        non_coherent,
    };
    let outcome = recording.trace(false)?;
    if let Err(text) = clean(&outcome) {
        return Ok(Verdict::fail(text));
    }
    let mut verdict = Verdict::of(registers::same_writes(
        &work.path().join("trace"),
        &recording.register_log(),
    ));
    let output = work.path().join("recording");
    recording.compile(&output)?;
    if let Err(text) = recording.compare_noted(&payload::host_command(folder), &output)? {
        verdict.failed += 1;
        verdict.reason += &text;
    }
    for name in &app.outputs {
        match recording.replay(&output, name) {
            Ok(_) => verdict.passed += 1,
            Err(text) => {
                verdict.failed += 1;
                verdict.reason += &text;
            }
        }
    }
    Ok(verdict)
}

/// A short pass; `cargo xtask guest devices` is the long one.
fn devices(folder: &Folder) -> Result<Verdict> {
    let short = Devices {
        runs: 20,
        kills: 5,
        seconds: 10,
        seed: 1,
        repeat: 1,
        kernel_options: Vec::new(),
        write: false,
        no_build: false,
    };
    Ok(Verdict::of(short.test(folder, false)?))
}

fn silence(complaints: &[String]) -> Verdict {
    Verdict::of(if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("; "))
    })
}

/// Needs a source of kbase, which is not ours to have here.
fn own_driver(folder: &Folder) -> Result<Verdict> {
    let Some(source) = std::env::var_os(kbase::SOURCE_VARIABLE) else {
        let reason = format!("{} names no source of Arm's driver", kbase::SOURCE_VARIABLE);
        return Ok(Verdict::skip(reason));
    };
    let work = temporary()?;
    let trial = kbase::Trial::new(folder, work.path());
    let outcome = trial.run(&kbase::driver(Path::new(&source))?)?;
    Ok(if outcome.end == End::Exit(0) {
        Verdict::of(trial.check().map(drop))
    } else {
        let logs = outcome.logs.display();
        Verdict::fail(format!("{:?}, logs: {logs}", outcome.end))
    })
}

fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(Error::io("create", env::temp_dir()))
}

#[cfg(test)]
mod names {
    use super::*;

    #[test]
    fn tests_that_run_beside_others_exist_and_build_nothing() {
        for part in BESIDE_OTHERS {
            let mut names = TESTS.iter().map(|(name, _)| name);
            assert!(
                names.any(|name| name.starts_with(part) || name.ends_with(part)),
                "{part}"
            );
        }
        let builds = [
            "firmware",
            "compile",
            "nano driver",
            "own app",
            "secure world",
        ];
        for (name, _) in TESTS.iter().filter(|(name, _)| beside_others(name)) {
            assert!(!builds.iter().any(|word| name.contains(word)), "{name}");
        }
    }
}
