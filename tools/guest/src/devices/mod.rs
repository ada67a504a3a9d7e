// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest devices`: replays on nano and /dev/mem.

pub(crate) mod panfrost;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use serde_json::json;

use crate::{
    build::{kernel, payload, step::logged},
    error::{Error, Result},
    files,
    folder::{Folder, copy_dir},
    run::driver::Driver,
    run::session::{self, Checked, Options},
};

const SCRIPT: &str = include_str!("devices.sh");
const RECORDINGS: [&str; 3] = ["digits-g52", "acl-gemm-g52", "acl-conv-g52"];

/// Replays on the nano driver (alone, shared) and on /dev/mem in the guest, without panfrost.
///
/// All outputs are compared with the model's, bit for bit. Processes are killed at random; a hostile client tries
/// what must be refused; two processes share the GPU; then panfrost runs OpenCL.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  cargo xtask guest devices\n  \
                        cargo xtask guest devices --runs 20 --kills 5 --seconds 10\n  \
                        cargo xtask guest devices --sanitized --runs 2 --kills 2 --seconds 10 --repeat 10\n  \
                        cargo xtask guest devices --runs 1 --kernel-option slub_debug=FZPU --kernel-option page_poison=1")]
pub(crate) struct Devices {
    /// Runs of each recording on each device.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) runs: u32,
    /// Processes that are killed while they replay.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) kills: u32,
    /// Seconds of random requests by the hostile client.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) seconds: u32,
    /// How often to test, each with its seed; the first failure ends it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u32,
    /// On a kernel with KASAN and lockdep, built if absent: a quarter of an hour.
    #[arg(long, conflicts_with = "linux")]
    pub(crate) sanitized: bool,
    /// On a kernel of this source tree, such as 6.6, built if absent.
    #[arg(long, value_name = "DIR")]
    pub(crate) linux: Option<PathBuf>,
    /// Further word of the kernel's command line; may be repeated.
    #[arg(long = "kernel-option", value_name = "WORD")]
    pub(crate) kernel_options: Vec<String>,
    /// Seed of moments and requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u32,
    /// Keep what was found in measurements/devices.json.
    #[arg(long)]
    pub(crate) write: bool,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Devices {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let folder = match &self.linux {
            Some(tree) => kernel::of_source(&folder, tree)?,
            None if self.sanitized => kernel::sanitized(&folder)?,
            None => folder,
        };
        if !self.no_build {
            payload::prepare(&folder, Driver::None)?;
            payload::build_host_command(&folder)?;
        }
        for round in 0..self.repeat {
            let begun = Instant::now();
            let devices = Self {
                seed: self.seed.wrapping_add(round),
                no_build: self.no_build || round > 0,
                ..self.clone()
            };
            if let Err(reason) = devices.test(&folder, true)? {
                eprintln!("round {} of {}: {reason}", round + 1, self.repeat);
                return Ok(ExitCode::FAILURE);
            }
            let seconds = begun.elapsed().as_secs();
            println!(
                "round {} of {} passed in {seconds} s",
                round + 1,
                self.repeat
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn summary(&self, said: &str) -> Table {
        const COUNTS: [&str; 4] = [" runs agree", " MiB: ", " processes killed", "hostile: "];
        let options = self.kernel_options.iter();
        let options: String = options
            .map(|word| format!(" --kernel-option {word}"))
            .collect();
        let Self {
            runs,
            kills,
            seconds,
            ..
        } = self;
        let about = format!(
            "`cargo xtask guest devices --runs {runs} --kills {kills} --seconds {seconds}{options}`"
        );
        let mut table = Table::new(about, "Result");
        let counts = |line: &&str| COUNTS.iter().any(|count| line.contains(count));
        for line in said.lines().filter(counts) {
            table.row(json!([line
                .trim_start_matches("# ")
                .replace("/recording.gpr", "")]));
        }
        table
    }

    pub(crate) fn test(&self, folder: &Folder, stream: bool) -> Result<Checked> {
        if !self.no_build {
            payload::nano_driver(folder)?;
        }
        let share = files::temporary()?;
        for name in RECORDINGS {
            expect(folder, name, share.path())?;
        }
        let options = Options {
            timeout: Duration::from_secs(
                900 * (1 + u64::from(self.sanitized))
                    + u64::from(self.seconds + 10 * (self.runs + self.kills)),
            ),
            environment: [
                ("RUNS", self.runs),
                ("KILLS", self.kills),
                ("SECONDS_OF_REQUESTS", self.seconds),
                ("SEED", self.seed),
                ("SANITIZED", u32::from(self.sanitized)),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .to_vec(),
            kernel_options: self.kernel_options.clone(),
            stream,
            ..Options::sharing(Driver::None, share.path())
        };
        let outcome = session::script(folder, &options, SCRIPT)?;
        let said = outcome.said();
        Ok(match outcome.clean() {
            Ok(()) if !said.ends_with("ALL DEVICES AGREE\n") => {
                Err(format!("ended early, logs: {}", outcome.logs.display()))
            }
            clean => {
                if clean.is_ok() && self.write {
                    measured::keep("devices", &[self.summary(&said)])?;
                }
                clean
            }
        })
    }
}

/// `input` and `output` hold NAME=FILE.
pub(crate) fn expect(folder: &Folder, name: &str, share: &Path) -> Result<()> {
    let recording = folder.repository.join("recordings").join(name);
    let to = share.join(name);
    copy_dir(&recording, &to)?;
    let text = files::text(recording.join("manifest.toml"))?;
    let manifest: toml::Table = text
        .parse()
        .map_err(|error| Error::Usage(format!("{name}/manifest.toml: {error}")))?;
    let first = manifest.get("case").and_then(|cases| cases.get(0));
    let names = |key: &str| -> Vec<(String, PathBuf)> {
        let table = first.and_then(|case| case.get(key)?.as_table());
        let files = table.into_iter().flatten();
        files
            .filter_map(|(name, file)| Some((name.clone(), PathBuf::from(file.as_str()?))))
            .collect()
    };
    let mut words = String::new();
    let mut replay = Command::new(payload::host_command(folder));
    replay.arg("run").arg("--force").arg(&recording);
    for (input, file) in names("inputs") {
        replay.arg("--input").arg(format!(
            "{input}={}",
            recording.join(&file).to_string_lossy()
        ));
        words += &format!("{input}={name}/{} ", file.display());
    }
    for (output, _) in names("expected") {
        let file = format!("by-model-{output}.npy");
        replay
            .arg("--output")
            .arg(format!("{output}={}", to.join(&file).to_string_lossy()));
        words += &format!("{output}={name}/{file} ");
    }
    let log = folder.local.join("log").join(format!("model-{name}.log"));
    logged(&mut replay, "replay on the model", &log)?;
    files::write(to.join("words"), words)
}
