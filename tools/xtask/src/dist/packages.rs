// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask packages`: uses the packages in fresh Debian.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::{
    build,
    checks::{Counts, End},
    digits::{digits, probabilities, same},
    output_of,
    packages::Made,
};

use super::{SONAME, VERSION, library::write_file};
use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

pub(super) const SUITE: &str = "trixie";

const CHECKS: [&str; 7] = [
    "apt install, the command",
    "the recorder in an app, on the model",
    "pip install, Python",
    "apt install, C by pkg-config",
    "C by pkg-config --static",
    "C with -fsanitize=address,undefined",
    "apt purge",
];

const DEBS: [&str; 3] = ["gpureplay", "libgpureplay0", "libgpureplay-dev"];

/// Installs what `cargo xtask dist` made in a fresh Debian root, by apt and by pip, and asks it which digits are in
/// ten pictures.
///
/// The root has a compiler, NumPy and pytest, and then no network. The command, the module and the C example (shared,
/// static, with sanitizers) must give the recorded stack's probabilities, bit for bit.
#[derive(Args)]
#[command(
    after_help = "Needs root, mmdebstrap, and a Debian mirror in apt's configuration (or in GPUREPLAY_DEBIAN_MIRROR).\n\
                  Examples:\n  cargo xtask dist && cargo xtask packages\n  cargo xtask packages --suite bookworm"
)]
pub(crate) struct Packages {
    /// Release of Debian
    #[arg(long, default_value = SUITE, value_parser = ["trixie", "bookworm"])]
    suite: String,
}

impl Packages {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        check(&self.suite)
    }
}

pub(super) fn check(suite: &str) -> Result<ExitCode> {
    let mut counts = Counts::default();
    if let Some(reason) = hindrance() {
        for name in CHECKS {
            counts.add(name, Ok(End::Skipped(reason.into())));
        }
        return Ok(counts.finish());
    }
    let top = root();
    let made = Made::find(&top, env::consts::ARCH, &DEBS)?;
    let debian = Debian::make(suite, &top, &made)?;
    let checks = [
        Debian::command,
        Debian::record,
        Debian::python,
        Debian::c_shared,
        Debian::c_static,
        Debian::c_sanitized,
        Debian::purge,
    ];
    for (name, check) in CHECKS.into_iter().zip(checks) {
        let name = format!("{suite}, {name}");
        counts.add(&name, check(&debian).map(End::Passed));
    }
    Ok(counts.finish())
}

fn hindrance() -> Option<&'static str> {
    let answers = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    if answers("id", "-u").is_none_or(|text| text.trim_ascii() != b"0") {
        return Some("a Debian root is made by root only");
    }
    answers("mmdebstrap", "--version")
        .is_none()
        .then_some("mmdebstrap is not there (apt-get install mmdebstrap)")
}

const ENTER: &str = "set -e; root=$1; shift; mount -t proc proc \"$root/proc\"; mount --rbind /dev \"$root/dev\"; \
                     exec chroot \"$root\" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
                     DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 GPUREPLAY_DIGITS=/digits \
                     GPUREPLAY_GENERATE=/generate \"$@\"";

struct Debian<'a> {
    folder: tempfile::TempDir,
    top: &'a Path,
    made: &'a Made,
}

impl<'a> Debian<'a> {
    fn make(suite: &str, top: &'a Path, made: &'a Made) -> Result<Self> {
        let folder = files::temporary()?;
        let built = build(top, &["--bin", "gpureplay-guest"])?;
        let mut sources = Command::new(built.join("gpureplay-guest"));
        sources.current_dir(top).arg("sources").arg(folder.path());
        output_of("finding the Debian mirror", &mut sources)?;
        let debian = Self { folder, top, made };
        let list = match suite {
            "bookworm" => "sources-old.list",
            _ => "sources.list",
        };
        let mut bootstrap = Command::new("mmdebstrap");
        bootstrap.args(["--quiet", "--variant=apt", "--mode=root"]);
        bootstrap
            .args(["--include=gcc,libc6-dev,pkgconf,python3-numpy,python3-venv,python3-pytest"]);
        let options = debian.folder.path().join("apt.conf");
        bootstrap.arg(format!("--aptopt={}", options.display()));
        bootstrap.arg(suite).arg(debian.root());
        bootstrap.arg(debian.folder.path().join(list));
        output_of("mmdebstrap", &mut bootstrap)?;

        for package in made.debs.iter().chain([&made.wheel]) {
            let to = debian.root().join("packages").join(super::name(package));
            write_file(&to, &files::read(package)?, 0o644)?;
        }
        for file in ["examples/digits.py", "python/tests/test_gpureplay.py"] {
            let from = top.join("replayer/c").join(file);
            let to = debian.root().join("try").join(super::name(&from));
            write_file(&to, &files::read(&from)?, 0o644)?;
        }
        let generate = top.join("recordings/generate-g52");
        for (recording, to) in [(digits(top), "digits"), (generate, "generate")] {
            let mut copy = Command::new("cp");
            copy.arg("-rL").arg(recording).arg(debian.root().join(to));
            output_of("copying a recording", &mut copy)?;
        }
        Ok(debian)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let mut enter = Command::new("unshare");
        enter.args(["--mount", "--net", "--propagation", "private"]);
        enter.args(["sh", "-c", ENTER, "sh"]);
        enter.arg(self.root()).args(words);
        output_of(&words.join(" "), &mut enter)
    }

    fn install(&self, name: &str) -> Result<()> {
        let begin = format!("{name}_");
        for path in &self.made.debs {
            let file = super::name(path);
            if file.starts_with(&begin) {
                // The recommended OpenCL runtime would need a network.
                let file = format!("./packages/{file}");
                self.run(&["apt-get", "install", "-y", "--no-install-recommends", &file])?;
            }
        }
        Ok(())
    }

    /// `ask` takes a picture's path; its answer names the digit and ends with probabilities.
    fn ten(&self, ask: impl Fn(&str) -> Result<String>) -> Result<String> {
        for digit in 0..10 {
            let text = ask(&format!("/digits/inputs/{digit}.npy"))?;
            let expected = digits(self.top).join(format!("expected/{digit}.npy"));
            same(&text, digit, &probabilities(&expected)?)
                .map_err(|text| Error::Usage(format!("digit {digit}: {text}")))?;
        }
        Ok(
            "answers 3 to the picture of a three; 10 digits, 100 probabilities as the recorded stack's, bit for bit"
                .into(),
        )
    }

    fn command(&self) -> Result<String> {
        self.install("gpureplay")?;
        let version = self.run(&["gpureplay", "--version"])?;
        if !version.contains(VERSION) {
            return Err(Error::Usage(format!(
                "version {VERSION} was expected in {version:?}"
            )));
        }
        self.ten(|picture| {
            let mut words = vec!["gpureplay", "run", "/digits", "--input", picture];
            words.extend(["--force", "--output", "probabilities=/try/answer.npy"]);
            let mut text = self.run(&words)?;
            for probability in probabilities(&self.root().join("try/answer.npy"))? {
                text += &format!(" {probability:e}");
            }
            Ok(text)
        })
    }

    fn record(&self) -> Result<String> {
        let script = "OCL_ICD_VENDORS=/none gpureplay record --recorder model -o /try/none -- \
                      /bin/sh -c 'exec 3<>/dev/dri/renderD128 && echo opened' 2>&1; echo $?";
        let text = self.run(&["sh", "-c", script])?;
        let wanted = ["opened", "the app gave the GPU no job", "\n3"];
        if !wanted.iter().all(|words| text.contains(words)) {
            return Err(Error::Usage(format!("expected {wanted:?}, got: {text}")));
        }
        let script = "gpureplay doctor --report /try/report.txt; cat /try/report.txt";
        let text = self.run(&["sh", "-c", script])?;
        let is_right = text.matches("-g52 on model: right").count() == 2;
        let has_bits = text.contains(": the same") && !text.contains(" differ\n");
        match is_right && has_bits {
            true => Ok("the app opens the model's render node, and is recorded; doctor's self test and bits are right".into()),
            false => Err(Error::Usage(format!("doctor's report: {text}"))),
        }
    }

    fn python(&self) -> Result<String> {
        self.run(&["python3", "-m", "venv", "--system-site-packages", "/venv"])?;
        let wheel = format!("/packages/{}", super::name(&self.made.wheel));
        self.run(&["/venv/bin/pip", "install", &wheel])?;
        let text = self
            .ten(|picture| self.run(&["/venv/bin/python", "/try/digits.py", "/digits", picture]))?;
        let tests = "/try/test_gpureplay.py";
        let tested = self.run(&["/venv/bin/python", "-m", "pytest", "-q", tests])?;
        let tested = tested.lines().last().unwrap_or_default();
        if !tested.contains(" passed") || tested.contains("skipped") {
            return Err(Error::Usage(format!(
                "pytest should pass all and skip none, it says {tested:?}"
            )));
        }
        Ok(format!("{text}; pytest: {tested}"))
    }

    fn c_shared(&self) -> Result<String> {
        self.install("libgpureplay0")?;
        self.install("libgpureplay-dev")?;
        let text = self.compiled("", "/try/shared")?;
        let needs = self.run(&["readelf", "-d", "/try/shared"])?;
        match needs.contains(SONAME) {
            true => Ok(text),
            false => Err(Error::Usage(format!("the program does not need {SONAME}"))),
        }
    }

    fn c_static(&self) -> Result<String> {
        let text = self.compiled("-static", "/try/static")?;
        let needs = self.run(&["readelf", "-d", "/try/static"])?;
        match needs.contains("(NEEDED)") {
            true => Err(Error::Usage(format!(
                "the program needs a library:\n{needs}"
            ))),
            false => Ok(text),
        }
    }

    fn c_sanitized(&self) -> Result<String> {
        let options = "-g -fsanitize=address,undefined -fno-sanitize-recover=all";
        self.compiled(options, "/try/sanitized")
    }

    fn compiled(&self, option: &str, program: &str) -> Result<String> {
        let example = "/usr/share/doc/libgpureplay-dev/examples/digits.c";
        let pkg_config = match option {
            "-static" => "pkg-config --static",
            _ => "pkg-config",
        };
        let compile =
            format!("cc {option} {example} -o {program} $({pkg_config} --cflags --libs gpureplay)");
        self.run(&["sh", "-c", &compile])?;
        self.ten(|picture| self.run(&[program, "/digits", picture]))
    }

    fn purge(&self) -> Result<String> {
        let purge: Vec<&str> = ["apt-get", "purge", "-y"].into_iter().chain(DEBS).collect();
        self.run(&purge)?;
        let left = self.run(&["find", "/usr", "/etc", "/var", "-name", "*gpureplay*"])?;
        match left.is_empty() {
            true => Ok("no file is left".into()),
            false => Err(Error::Usage(format!("files are left:\n{left}"))),
        }
    }
}
