// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask foreign`: others' programs, recorded on the model.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::{
    checks::{Counts, End},
    output, target,
};

use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

const SCRIPT: &str = "tools/foreign/cases.py";
/// Its tuner has a queue with times, which a stream would store.
const TIMED: (&str, &str) = ("g610", "leela-zero");
const TIME: &str = "STORE_STATE";

/// Records cases of PyOpenCL and programs of others on the model and replays them; NumPy says what is right
///
/// Each case runs live with two inputs in `record --twice` (or one file), and replays a third. What depends on values
/// must be refused, with the reason. Cases whose program is missing are skipped; all without NumPy or Mesa with
/// panfrost.
#[derive(Args)]
#[command(
    after_help = "Needs python3 with numpy, what cargo xtask mesa makes, and the programs: python3-pyopencl python3-gpyfft\n\
                        python3-silx python3-opencv libviennacl-dev libclblast-dev ffmpeg leela-zero, and for VkFFT\n\
                        pip install --target target/foreign/python --no-deps pyvkfft.\n\
                        Examples:\n  cargo xtask foreign\n  cargo xtask foreign --gpu g57 half typedef three-turns"
)]
pub(crate) struct Foreign {
    /// Cases; all if none is named
    cases: Vec<String>,
    /// The interpreter
    #[arg(long, default_value = "/usr/bin/python3", value_name = "FILE")]
    python: PathBuf,
    /// The GPU's model
    #[arg(long, default_value = "g52")]
    gpu: String,
    /// List the cases
    #[arg(long)]
    list: bool,
}

impl Foreign {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let mut counts = Counts::default();
        if let Some(reason) = crate::node::missing().or_else(|| self.missing()) {
            counts.add("programs of others", Ok(End::Skipped(reason)));
            return Ok(counts.finish());
        }
        let listed = output(self.script().arg("list"))?;
        let mut cases: Vec<(&str, &str)> = listed
            .lines()
            .map(|line| line.split_once(' ').unwrap_or((line, "")))
            .collect();
        if self.list {
            cases.iter().for_each(|(name, _)| println!("{name}"));
            return Ok(ExitCode::SUCCESS);
        }
        let unknown = |name: &&String| cases.iter().all(|(case, _)| case != name);
        if let Some(name) = self.cases.iter().find(unknown) {
            return Err(Error::missing(
                format!("the case {name}"),
                "--list says which there are",
            ));
        }
        cases.retain(|(case, _)| self.cases.is_empty() || self.cases.iter().any(|it| it == case));
        crate::node::build()?;
        for (case, refusal) in cases {
            let refusal = match (self.gpu.as_str(), case) {
                TIMED if refusal.is_empty() => TIME,
                _ => refusal,
            };
            let found = match refusal.strip_prefix('(') {
                Some(missing) => Ok(End::Skipped(missing.trim_end_matches(')').to_owned())),
                None => self.case(case, refusal.trim()),
            };
            counts.add(case, found);
        }
        Ok(counts.finish())
    }

    fn script(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(root().join(SCRIPT));
        command
    }

    fn missing(&self) -> Option<String> {
        let mut python = Command::new(&self.python);
        let found = output(python.args(["-c", "import numpy"]));
        let text = "no NumPy (apt-get install python3-numpy)";
        found.is_err().then(|| text.to_owned())
    }

    fn app(&self, here: &Path, case: &str, set: &str) -> Result<Vec<String>> {
        let mut script = self.script();
        script.current_dir(here).args(["app", case]);
        let words = output(script.args([&format!("{set}.bin"), "live.bin"]))?;
        Ok(words.lines().map(str::to_owned).collect())
    }

    fn case(&self, case: &str, refusal: &str) -> Result<End> {
        let work = files::temporary()?;
        let here = work.path();
        output(self.script().arg("make").arg(here))?;
        let third = here.join("c.bin");
        let options = output(self.script().args(["given", case]).arg(&third))?;
        let (recording, running) = options
            .split_once("\n\n")
            .unwrap_or(("", options.trim_start()));
        let command = || {
            let mut command = Command::new(target(&root()).join("debug/gpureplay"));
            command.current_dir(here);
            command
        };
        let options = |set: &str| -> Vec<String> {
            let words = recording.lines().filter(|word| !word.is_empty());
            words.map(|word| word.replace("{s}", set)).collect()
        };
        let mut record = command();
        record.args(["record", "--recorder", "model", "-o", "recorded"]);
        record.args(["--gpu", &self.gpu]);
        record.args(options("a"));
        // For settings of the app; the cache with Mesa stays.
        record
            .env("HOME", here)
            .env("XDG_CACHE_HOME", crate::mesa::caches());
        let app = self.app(here, case, "a")?;
        let stdin = fs::File::open(here.join("a.stdin"));
        // Once for a named file, or for standard input, which runs would share.
        let once = options("a") != options("b") || stdin.is_ok();
        if let Ok(stdin) = stdin {
            record.stdin(stdin);
        }
        if !once {
            record.arg("--twice");
        }
        record.arg("--").args(app);
        if !once {
            record.arg("--").args(self.app(here, case, "b")?);
        }
        let recorded = output(&mut record);
        let fell_short = |remedy: String| Err(Error::fell_short(case, remedy));
        match (recorded, refusal) {
            (Err(error), "") => return Err(error),
            (Err(error), words) => {
                return match error.to_string().contains(words) {
                    true => Ok(End::Passed("refused, with the reason".into())),
                    false => fell_short(format!(
                        "refused, but not because it is said that: {words}: {error}"
                    )),
                };
            }
            (Ok(_), "") => {}
            (Ok(_), words) => return fell_short(format!("recorded, though: {words}")),
        }
        let words: Vec<&str> = running.lines().filter(|word| !word.is_empty()).collect();
        output(command().args(["run", "recorded"]).args(&words))?;
        let outputs = words.windows(2).filter(|pair| pair[0] == "--output");
        let files = outputs.map(|pair| pair[1].rsplit('=').next().unwrap_or_default());
        output(self.script().args(["judge", case]).arg(&third).args(files))?;
        let size = fs::metadata(here.join("recorded/recording.gpr"));
        let size = size.map_err(Error::io("look at", here))?.len();
        Ok(End::Passed(format!(
            "the third input's answer is NumPy's; {size} bytes"
        )))
    }
}
