// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest panfrost`: replays through panfrost or panthor.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use gpureplay_task::measured::{self, Table};
use mali_facts::StreamGpu;
use serde_json::json;

use crate::{
    build::{kernel, payload, step::logged},
    error::{Error, Result},
    files,
    folder::{Folder, copy_dir},
    run::board::Board,
    run::driver::Driver,
    run::kernel_log,
    run::session::{self, Checked, Options},
};

const SCRIPT: &str = concat!(include_str!("user.sh"), include_str!("panfrost.sh"));
const STEPS: u32 = 10;
/// The last takes longer than the driver permits.
const CHAIN_TWISTS: &str = "type loop outside pointer above code long";
const STREAM_TWISTS: &str =
    "stream-unknown stream-draw stream-jump stream-store stream-program stream-wait stream-endless";
/// Host seconds of a job before the driver's time goes on.
pub(crate) const JOB_LIMIT: u32 = 1;

/// Replays through the kernel's own driver in the guest (panfrost, or panthor with --gpu g610), as a user of the
/// group render.
///
/// All outputs and states are compared with the model's, bit for bit. Processes are killed at random; chains are made
/// wrong behind the verifier's back; an OpenCL program runs beside replays.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  cargo xtask guest panfrost\n  \
                        cargo xtask guest panfrost --kernel old\n  \
                        cargo xtask guest panfrost --gpu g610\n  \
                        cargo xtask guest panfrost --non-coherent --runs 1 --kills 0 --apps 0")]
pub(crate) struct Panfrost {
    /// Debian's kernel: of the release before (old), of the release (stock), of backports (new).
    #[arg(long, value_name = "WHICH", default_value = "stock", value_parser = ["old", "stock", "new"])]
    pub(crate) kernel: String,
    /// Which GPU the model is; its recordings are replayed.
    #[arg(long, value_name = "NAME", default_value = "g52")]
    pub(crate) gpu: String,
    /// Runs of each case of each recording.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) runs: u32,
    /// Recordings, by the beginnings of their names; all if none is named.
    #[arg(long, value_name = "NAME")]
    pub(crate) recording: Vec<String>,
    /// Processes that are killed while they load or replay.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) kills: u32,
    /// Times that each wrong chain is submitted.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) wrong: u32,
    /// Runs of an OpenCL program beside two that replay.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) apps: u32,
    /// With the changes of driver-patch/upstream: no fault is found by a time-out, buffers lie at chosen addresses.
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) repaired: bool,
    /// Caches that are not coherent with the GPU.
    #[arg(long)]
    pub(crate) non_coherent: bool,
    /// Seed of moments.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u32,
    /// Keep what was found in measurements/panfrost.json.
    #[arg(long)]
    pub(crate) write: bool,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Panfrost {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Stock)?;
            payload::build_host_command(&folder)?;
        }
        Ok(match self.test(&folder, true)? {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        })
    }

    pub(crate) fn short(kernel: &str, gpu: &str) -> Self {
        Self {
            kernel: kernel.into(),
            gpu: gpu.into(),
            runs: 1,
            recording: Vec::new(),
            kills: 6,
            wrong: 1,
            apps: 3,
            repaired: false,
            non_coherent: false,
            seed: 1,
            write: false,
            no_build: false,
        }
    }

    pub(crate) fn test(&self, folder: &Folder, stream: bool) -> Result<Checked> {
        if !self.no_build {
            payload::replayer(folder)?;
            if self.non_coherent {
                payload::board_modules(folder)?;
            }
            if self.repaired {
                payload::repaired_driver(folder)?;
            }
        }
        let share = files::temporary()?;
        copy_dir(
            &folder.repository.join("recordings/saxpy-g52/inputs"),
            &share.path().join("saxpy"),
        )?;
        let cases = expect(folder, share.path(), &self.gpu, &self.recording)?;
        let streams = StreamGpu::by_name(&self.gpu).is_some();
        let (device, twists) = match streams {
            false => ("panfrost", CHAIN_TWISTS),
            true => ("panthor", STREAM_TWISTS),
        };
        let (guest, driver) = match self.kernel.as_str() {
            "stock" if self.repaired => (folder.clone(), Driver::None),
            "stock" => (folder.clone(), Driver::Stock),
            which if streams => (kernel::other(folder, which)?, Driver::Stock),
            which => (kernel::other(folder, which)?, Driver::None),
        };
        let counts = [self.runs, self.kills, self.wrong, self.apps];
        let options = Options {
            gpu: self.gpu.clone(),
            driver,
            share: Some(share.path().to_path_buf()),
            timeout: Duration::from_secs(u64::from(
                600 + 10 * (counts.iter().sum::<u32>() + self.runs * cases),
            )),
            environment: [
                ("RUNS", self.runs),
                ("KILLS", self.kills),
                ("WRONG", self.wrong),
                ("APPS", self.apps),
                ("SEED", self.seed),
                ("REPAIRED", u32::from(self.repaired)),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .into_iter()
            .chain(
                [("DEVICE", device), ("GPU", &self.gpu), ("TWISTS", twists)]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            )
            .collect(),
            stream,
            // The guest stands still while the model works, but for an overlong job.
            model_options: match self.wrong {
                0 => Vec::new(),
                _ => vec!["--job-limit".into(), JOB_LIMIT.to_string()],
            },
            board: Board {
                non_coherent: self.non_coherent,
                ..Board::default()
            },
            ..Options::default()
        };
        let outcome = session::script(&guest, &options, SCRIPT)?;
        let said = outcome.said();
        // Another kernel's modules come from the initramfs.
        let known = |line: &str| {
            line.starts_with("modprobe:") || self.wrong > 0 && kernel_log::is_of_job(line)
        };
        Ok(match outcome.clean_but_for(known) {
            Ok(()) if !said.ends_with("THE DRIVER AGREES\n") => {
                Err(format!("ended early, logs: {}", outcome.logs.display()))
            }
            clean => {
                if clean.is_ok() && self.write {
                    measured::keep("panfrost", &[self.summary(&said)])?;
                }
                clean
            }
        })
    }

    fn summary(&self, said: &str) -> Table {
        let mut table = Table::new("`cargo xtask guest panfrost`", "Result");
        for line in said.lines().filter_map(|line| line.strip_prefix("# ")) {
            table.row(json!([line]));
        }
        table
    }
}

/// Copies recordings by name prefix, and what the model answers. A line of `cases`: number, recording, words of a run;
/// @ is the results' directory. Returns the count.
pub(crate) fn expect(
    folder: &Folder,
    share: &Path,
    gpu: &str,
    recordings: &[String],
) -> Result<u32> {
    let all = folder.repository.join("recordings");
    let entries = files::entries(&all)?.into_iter();
    let names: Vec<String> = entries
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .filter(|name| all.join(name).join("manifest.toml").is_file())
        .filter(|name| name.ends_with(&format!("-{gpu}")))
        .filter(|name| {
            let mut wanted = recordings.iter();
            recordings.is_empty() || wanted.any(|it| name.starts_with(it.as_str()))
        })
        .collect();
    let _ = fs::remove_dir_all(share.join("by-model"));
    let (mut lines, mut count) = (String::new(), 0);
    for name in &names {
        copy_dir(&all.join(name), &share.join("recordings").join(name))?;
        for words in cases(&all.join(name))? {
            let results = share.join("by-model").join(count.to_string());
            files::create_dir(&results)?;
            let mut replay = Command::new(payload::host_command(folder));
            replay
                .current_dir(&folder.repository)
                .args(["run", "--force", "--device", "model"])
                .arg(format!("recordings/{name}"))
                .args(
                    words
                        .iter()
                        .map(|word| word.replace('@', &results.to_string_lossy())),
                );
            let log = folder.local.join("log").join(format!("model-{name}.log"));
            logged(&mut replay, "replay on the model", &log)?;
            let _ = writeln!(lines, "{count} {name} {}", words.join(" "));
            count += 1;
        }
    }
    files::write(share.join("cases"), lines)?;
    Ok(count)
}

/// With states, several steps.
fn cases(recording: &Path) -> Result<Vec<Vec<String>>> {
    let path = recording.join("manifest.toml");
    let text = files::text(&path)?;
    let manifest: toml::Table = text
        .parse()
        .map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    let name = recording.file_name().unwrap_or_default().to_string_lossy();
    let cases = manifest.get("case").and_then(toml::Value::as_array);
    let files = |case: &toml::Value, key: &str| -> Vec<(String, PathBuf)> {
        let table = case.get(key).and_then(toml::Value::as_table);
        let files = table.into_iter().flatten();
        files
            .filter_map(|(name, file)| Some((name.clone(), PathBuf::from(file.as_str()?))))
            .collect()
    };
    let words = |case: &toml::Value| {
        let mut words = Vec::new();
        for (input, file) in files(case, "inputs") {
            words.push("--input".into());
            words.push(format!("{input}=recordings/{name}/{}", file.display()));
        }
        for (output, _) in files(case, "expected") {
            words.push("--output".into());
            words.push(format!("{output}=@/{output}.npy"));
        }
        words
    };
    let mut all: Vec<Vec<String>> = cases.into_iter().flatten().map(words).collect();
    if STATEFUL.iter().any(|start| name.starts_with(start)) {
        let first = cases.and_then(|cases| cases.first()).map(words);
        let mut steps = first.unwrap_or_default();
        steps.extend([
            "--repeat".into(),
            STEPS.to_string(),
            "--state-out".into(),
            "@/states.safetensors".into(),
        ]);
        all.push(steps);
    }
    Ok(all)
}

const STATEFUL: [&str; 3] = ["decode", "generate", "train"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recording_with_states_is_named() {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
        for entry in fs::read_dir(&all).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(path.join("recording.gpr")).unwrap();
            let recording = gpureplay_format::Recording::parse(&bytes).unwrap();
            let state = gpureplay_format::TensorKind::State.code();
            let has_states = recording.tensors().iter().any(|it| it.kind == state);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let named = STATEFUL.iter().any(|start| name.starts_with(start));
            assert_eq!(named, has_states, "{name}");
            let found = cases(&path).unwrap();
            assert_eq!(
                found.iter().any(|words| words.contains(&"--repeat".into())),
                has_states,
                "{name}"
            );
            assert!(found.iter().all(|words| words.contains(&"--output".into())));
        }
    }
}
