// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest packages`: uses the packages for aarch64 in Debian.

mod root;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use gpureplay_task::{
    checks::{Counts, End as Ended},
    digits::{digits, probabilities, same},
    output,
    packages::Made,
};

use crate::{
    build::{payload, step::last_lines},
    error::{Error, Result},
    files,
    folder::{Folder, copy_dir},
    run::driver::Driver,
    run::session::{self, End, Options, Outcome},
};

const USE: &str = include_str!("../../packages/use.sh");
const MACHINE: &str = "aarch64";
const DEBS: [&str; 5] = [
    "gpureplay",
    "libgpureplay0",
    "libgpureplay-dev",
    "gpureplay-nano-dkms",
    "gpureplay-recorder-dkms",
];

struct Part {
    name: &'static str,
    what: &'static str,
    answers: Answers,
}

enum Answers {
    Said,
    InFiles,
    None,
}

const PARTS: [Part; 6] = [
    Part {
        name: "command",
        what: "apt install, the command on the model",
        answers: Answers::InFiles,
    },
    Part {
        name: "nano",
        what: "nano driver by DKMS, udev rule, group, preset; the command on it as a member of the group",
        answers: Answers::InFiles,
    },
    Part {
        name: "library",
        what: "apt install, C by pkg-config",
        answers: Answers::Said,
    },
    Part {
        name: "wheel",
        what: "pip install, Python",
        answers: Answers::Said,
    },
    Part {
        name: "recorder",
        what: "recorder by DKMS, loaded and unloaded",
        answers: Answers::None,
    },
    Part {
        name: "purge",
        what: "apt purge leaves no file",
        answers: Answers::None,
    },
];

/// Installs the packages for aarch64 in a Debian root in the guest, and uses each.
///
/// The root has apt, a compiler, DKMS and the kernel's headers, but no network. The command, the C example and the
/// Python module classify ten pictures on the model; as an ordinary user also on the nano driver that DKMS built.
/// Probabilities must be the recorded stack's, bit for bit. Then everything is purged.
#[derive(Args)]
#[command(after_help = "\
The root is made once, beside the guest, with packages of the Debian mirror in apt's configuration (GPUREPLAY_DEBIAN_MIRROR names another one); that
needs root, mmdebstrap, and 2 GB of disk for a while.

Exit codes: 0 when all passed; 1 otherwise; 2 for packages that are missing or of another commit, and for wrong usage.

Examples:
  cargo xtask dist --machine aarch64 && cargo xtask guest packages
  cargo xtask guest packages command nano --keep target/tried")]
pub(crate) struct Packages {
    /// Parts: command, nano (needs command), library, wheel, recorder, purge (last); all if none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(PARTS.iter().map(|part| part.name)))]
    names: Vec<String>,
    /// Take packages that were made of another commit.
    #[arg(long)]
    any_commit: bool,
    /// Keep logs and answers in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Use the model server in target/release as it is.
    #[arg(long)]
    no_build: bool,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    timeout: u64,
}

impl Packages {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let made = Made::find(&folder.repository, MACHINE, &DEBS).map_err(|error| match error {
            Error::Missing { .. } => Error::Usage(error.to_string()),
            other => other,
        })?;
        if !self.any_commit {
            of_this_commit(&folder.repository, &made)?;
        }
        if !self.no_build {
            payload::prepare(&folder, Driver::None)?;
        }
        let parts: Vec<&Part> = PARTS
            .iter()
            .filter(|part| self.names.is_empty() || self.names.iter().any(|n| n == part.name))
            .collect();
        let temporary = files::temporary()?;
        let work = match &self.keep {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None => temporary.path().to_path_buf(),
        };
        let extra = root::root(&folder)?;
        prepare(&folder, &made, &work)?;
        let options = Options {
            driver: Driver::None,
            memory: 3072,
            share: Some(work.clone()),
            extra: Some(extra),
            timeout: Duration::from_secs(self.timeout),
            ..Options::default()
        };
        let mut command: Vec<String> = ["bash", "-c", USE, "packages"].map(String::from).into();
        command.extend(parts.iter().map(|part| part.name.to_owned()));
        let outcome = session::run(&folder, &options, Some(&command))?;
        let mut counts = Counts::default();
        for part in parts {
            let end = part.judge(&folder.repository, &work.join("out"), &outcome);
            counts.add(part.what, end.map(Ended::Passed));
        }
        counts.add("the guest's kernel log", kernel_log(&outcome));
        Ok(counts.finish())
    }
}

fn of_this_commit(top: &Path, made: &Made) -> Result<()> {
    let mut git = std::process::Command::new("git");
    git.current_dir(top)
        .args(["rev-parse", "--short=12", "HEAD"]);
    let commit = output(&mut git)?;
    let commit = commit.trim();
    let bytes = files::read(&made.command)?;
    let mut places = bytes.windows(commit.len());
    if places.any(|place| place == commit.as_bytes()) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} is not of commit {commit}: run `cargo xtask dist --machine {MACHINE}`, or say --any-commit",
        made.command.display()
    )))
}

fn prepare(folder: &Folder, made: &Made, work: &Path) -> Result<()> {
    for name in ["packages", "out"] {
        let path = work.join(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", path)(error));
            }
            _ => files::create_dir(&path)?,
        }
    }
    for package in made.debs.iter().chain([&made.wheel]) {
        let to = work
            .join("packages")
            .join(package.file_name().unwrap_or_default());
        files::copy(package, &to)?;
    }
    copy_dir(&digits(&folder.repository), &work.join("digits"))?;
    files::copy(
        folder.repository.join("replayer/c/examples/digits.py"),
        work.join("digits.py"),
    )
}

impl Part {
    fn judge(&self, top: &Path, out: &Path, outcome: &Outcome) -> Result<String> {
        let said = outcome.said();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let lines = said.lines().map(words);
        let mut line = lines.filter(|words| words.len() == 3 && words[0] == self.name);
        let log = out.join(format!("{}.log", self.name));
        let failed = |what: String| Error::Usage(format!("{what}:\n{}", last_lines(&log, 12)));
        let Some(line) = line.next_back() else {
            return Err(failed(format!(
                "it did not end ({:?}, logs: {})",
                outcome.end,
                outcome.logs.display()
            )));
        };
        if line[1] != "0" {
            return Err(failed(format!("exit code {}", line[1])));
        }
        let seconds = &line[2];
        let written = match self.answers {
            Answers::Said => false,
            Answers::InFiles => true,
            Answers::None => return Ok(format!("done ({seconds} s)")),
        };
        for digit in 0..10 {
            let file = |end: &str| out.join(format!("{}-{digit}.{end}", self.name));
            let mut text = files::text(file("txt"))?;
            if written {
                for probability in probabilities(&file("npy"))? {
                    text += &format!(" {probability:e}");
                }
            }
            let expected = probabilities(&digits(top).join(format!("expected/{digit}.npy")))?;
            same(&text, digit, &expected)
                .map_err(|text| Error::Usage(format!("digit {digit}: {text}")))?;
        }
        Ok(format!(
            "10 digits, 100 probabilities as the recorded stack's, bit for bit ({seconds} s)"
        ))
    }
}

fn kernel_log(outcome: &Outcome) -> Result<Ended> {
    let logs = outcome.logs.display();
    match (&outcome.end, outcome.faults.first()) {
        (End::Exit(0), None) => Ok(Ended::Passed("no complaint".into())),
        (End::Exit(0), Some(fault)) => Err(Error::Usage(format!("{fault}, logs: {logs}"))),
        (end, _) => Err(Error::Usage(format!(
            "the run ended with {end:?}, logs: {logs}"
        ))),
    }
}
