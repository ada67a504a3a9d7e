// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks with state.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_tensors::{Tensor, read_npy};

use super::runner::Verdict;

use crate::{
    build::{
        payload,
        step::{last_lines, logged},
    },
    error::{Error, Result},
    files,
    folder::{Folder, copy_dir},
    record::app,
    run::driver::{Driver, TAKE_BY_NANO},
    run::session::{self, Checked, Options},
};

/// Relative error against NumPy in double precision.
const LOSS: f64 = 1e-4;
const MOST_DIFFERING_IMAGES: u32 = 1;
/// With it `data.py` needs only the shipped images.
const SAMPLE: &str = "24";
/// From `tools/training/data.py`, a directory per network: for long tests.
const BATCHES: &str = "GPUREPLAY_BATCHES";

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn share(folder: &Folder, from: &str, to: &Path) -> Result<()> {
    copy_dir(&folder.repository.join(from), to)
}

pub(super) fn decodes(folder: &Folder) -> Result<()> {
    let work = files::temporary()?;
    share(
        folder,
        "tools/decoding/weights",
        &work.path().join("weights"),
    )?;
    share(folder, "tools/decoding/steps", &work.path().join("steps"))?;
    let options = Options {
        share: Some(work.path().to_path_buf()),
        ..Options::default()
    };
    let live = "decode --weights weights --forced steps/forced.npy --place steps/place.npy --mask steps/mask.npy \
                --characters live.npy";
    let outcome = session::script(folder, &options, live)?;
    outcome.clean()?;
    let expected = files::read(folder.repository.join("tools/decoding/written.txt"))?;
    let live = read_npy(&work.path().join("live.npy")).map_err(text)?;
    match live.bytes() == expected {
        true => Ok(()),
        false => Err(format!("it wrote {}", String::from_utf8_lossy(live.bytes())).into()),
    }
}

pub(super) fn names_launches(folder: &Folder) -> Result<()> {
    const CASES: [(&str, &str); 2] = [
        (
            "argument",
            "launch 1 (attend) depends on the step: its argument 'place'",
        ),
        (
            "size",
            "launch 2 (look, 1 x 4 x 1) depends on the step: in the second step it is launch 17 (look, 2 x 4 x 1)",
        ),
    ];
    let work = files::temporary()?;
    app::write_files(folder, "decode", work.path())?;
    let mut commands = String::from("set -e\n");
    for (how, _) in CASES {
        commands += &format!(
            "gpureplay record --raw trace-{how} -- decode --position {how} --weights weights --forced steps/forced.npy \
             --place steps/place.npy --mask steps/mask.npy --characters {how}.npy\n"
        );
    }
    let options = Options::sharing(Driver::Patched, work.path());
    let outcome = session::script(folder, &options, &commands)?;
    outcome.clean()?;
    for (how, message) in CASES {
        let output = Command::new(payload::host_command(folder))
            .current_dir(work.path())
            .args(["compile", &format!("trace-{how}"), "-o", how])
            .output()
            .map_err(Error::start("gpureplay"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || !said.contains(message) {
            return Err(format!("{how}: expected `{message}`, it said: {said}").into());
        }
    }
    Ok(())
}

struct Training {
    network: &'static str,
    app: &'static str,
    recording: &'static str,
    clblast: bool,
}

const TRAININGS: [Training; 3] = [
    Training {
        network: "convolutions",
        app: "train_digits",
        recording: "recordings/train-digits-g52",
        clblast: false,
    },
    Training {
        network: "convolutions",
        app: "train_clblast --network convolutions",
        recording: "recordings/train-clblast-g52",
        clblast: true,
    },
    Training {
        network: "perceptron",
        app: "train_clblast --network perceptron",
        recording: "recordings/train-perceptron-g52",
        clblast: true,
    },
];

pub(super) fn learns_a_little(folder: &Folder) -> Result<()> {
    for training in TRAININGS {
        let work = files::temporary()?;
        let arguments = ["--sample", SAMPLE, "--network", training.network];
        let mut words: Vec<&std::ffi::OsStr> = arguments.iter().map(|word| word.as_ref()).collect();
        words.push(work.path().as_os_str());
        payload::python(
            folder,
            &folder.repository.join("tools/training/data.py"),
            &words,
        )?;
        training.check(folder, work.path())?;
    }
    Ok(())
}

pub(super) fn learns(folder: &Folder) -> Result<Verdict> {
    let Some(batches) = env::var_os(BATCHES).map(PathBuf::from) else {
        return Ok(Verdict::skip(
            "GPUREPLAY_BATCHES names no folder with what tools/training/data.py writes, for each network",
        ));
    };
    for training in TRAININGS {
        let work = files::temporary()?;
        copy_dir(&batches.join(training.network), work.path())?;
        training.check(folder, work.path())?;
    }
    Ok(().into())
}

impl Training {
    fn check(&self, folder: &Folder, work: &Path) -> Result<()> {
        if self.clblast {
            payload::clblast(folder)?;
        }
        let live = format!(
            "mkdir -p live && {} --weights initial --images inputs/images.npy --labels inputs/labels.npy --rates inputs/rate.npy \
             --losses losses.npy --learnt live",
            self.app
        );
        let options = Options {
            share: Some(work.to_path_buf()),
            timeout: std::time::Duration::from_secs(3600),
            ..Options::default()
        };
        let outcome = session::script(folder, &options, &live)?;
        outcome.clean()?;
        let read = |name: &str| read_npy(&work.join(name)).map_err(text);
        let (exact, live) = (read("expected/losses64.npy")?, read("losses.npy")?);
        let steps = exact.len();
        let mut replay = Command::new(payload::host_command(folder));
        replay
            .current_dir(work)
            .arg("run")
            .arg(folder.repository.join(self.recording))
            .args(["--state-in", "initial.safetensors", "--inputs", "inputs"])
            .args(["--repeat", &steps.to_string()])
            .args(["--output", "loss=replayed.npy"])
            .args(["--state-out", "learnt.safetensors", "--force"]);
        logged(
            &mut replay,
            "training by replay",
            &folder.local.join("log/train.log"),
        )?;
        let replayed = read("replayed.npy")?;
        for (what, losses) in [("live", &live), ("replay", &replayed)] {
            near(losses, &exact).map_err(|reason| format!("{} {what}: {reason}", self.app))?;
        }
        self.compare_learnt(folder, work)
    }

    fn compare_learnt(&self, folder: &Folder, work: &Path) -> Result<()> {
        let words = ["--right", "--network", self.network];
        let mut words: Vec<&std::ffi::OsStr> = words.iter().map(|word| word.as_ref()).collect();
        words.push(work.as_os_str());
        payload::python(
            folder,
            &folder.repository.join("tools/training/data.py"),
            &words,
        )?;
        let said = last_lines(&folder.local.join("log/data.log"), 1);
        let right: Vec<u32> = said
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [numpy, live, replayed] = right[..] else {
            return Err(format!("data.py said: {said}").into());
        };
        println!(
            "     {}: of 360 held-out images NumPy names {numpy} rightly, live training {live}, the replay {replayed}",
            self.app
        );
        match live.abs_diff(numpy).max(replayed.abs_diff(numpy)) <= MOST_DIFFERING_IMAGES {
            true => Ok(()),
            false => Err(format!("{}: {said} held-out images are right", self.app).into()),
        }
    }
}

fn near(losses: &Tensor, exact: &Tensor) -> Checked {
    if losses.len() != exact.len() || exact.is_empty() {
        return Err(format!("{} losses of {}", losses.len(), exact.len()));
    }
    let apart = losses
        .values()
        .zip(exact.values())
        .map(|(found, exact)| (found - exact).abs() / exact.abs());
    let far = |apart: &f64| apart.is_nan() || *apart > LOSS;
    match apart.enumerate().find(|(_, apart)| far(apart)) {
        None => Ok(()),
        Some((step, apart)) => Err(format!("the loss of step {step} is {apart:.1e} off")),
    }
}

pub(super) fn nano(folder: &Folder, stride: u32) -> Result<()> {
    payload::nano_driver(folder)?;
    let work = files::temporary()?;
    for name in ["generate-g52", "decode-g52"] {
        share(
            folder,
            &format!("recordings/{name}"),
            &work.path().join(name),
        )?;
    }
    share(folder, "tools/decoding/steps", &work.path().join("steps"))?;
    let commands = format!(
        "set -e\n{TAKE_BY_NANO}\
         gpureplay run generate-g52 --device nano --input generate-g52/inputs/forced2.npy --repeat 1000 --output song.bin >&2\n\
         gpureplay run decode-g52 --device nano --inputs steps --repeat 1000 --output rhyme.bin >&2\n\
         /opt/gpureplay/nano/state_faults generate-g52 nano {stride} forced=generate-g52/inputs/forced2.npy\n"
    );
    let options = Options {
        timeout: std::time::Duration::from_secs(3600),
        ..Options::sharing(Driver::None, work.path())
    };
    let outcome = session::script(folder, &options, &commands)?;
    outcome.clean()?;
    let said = outcome.said().into_owned();
    print!("     {said}");
    for (wrote, expected) in [
        ("song.bin", "tools/generation/written.txt"),
        ("rhyme.bin", "tools/decoding/written.txt"),
    ] {
        let wrote = work.path().join(wrote);
        let expected = folder.repository.join(expected);
        if files::read(&wrote)? != files::read(expected)? {
            return Err(format!("{} is not NumPy's text", wrote.display()).into());
        }
    }
    match said.contains("the states are equal") {
        true => Ok(()),
        false => Err(format!("it said: {said}").into()),
    }
}
