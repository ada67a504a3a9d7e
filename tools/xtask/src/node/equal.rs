// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels leave equal bytes on three GPUs.

use std::{env, path::PathBuf, process::Command};

use gpureplay_task::{checks::End, output};

use super::Here;
use crate::{
    error::{Error, Result},
    files,
    repository::root,
};

/// Two instruction sets; the last GPU has command streams.
const GPUS: [&str; 3] = ["g52", "g57", super::STREAMS];
const FEWEST: usize = 69;

pub(super) fn all(here: &Here) -> Result<End> {
    let python = || Command::new("/usr/bin/python3");
    if output(python().args(["-c", "import numpy, pyopencl"])).is_err() {
        return Ok(End::Skipped("no python3-numpy or python3-pyopencl".into()));
    }
    let apps = root().join("tools/guest/apps");
    let shared = env::var_os("GPUREPLAY_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| root().join("../shared"));
    let folders = [
        apps.join("kernels"),
        apps.join("networks"),
        shared.join("reference/shader-samples/kernels"),
    ];
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let paths = files::entries(folder)?.into_iter();
        // Printing kernels need a program.
        files.extend(paths.filter(|path| {
            path.extension().is_some_and(|end| end == "cl") && !path.ends_with("pf.cl")
        }));
    }
    files.sort();
    let mut found = Vec::new();
    for gpu in GPUS {
        let mut command = here.gpureplay();
        command.args(["node", "--gpu", gpu, "--", "/usr/bin/python3"]);
        command.arg(apps.join("every_kernel.py")).args(&files);
        found.push(output(command.env("RUSTICL_FEATURES", "fp16"))?);
    }
    let lines = |text: &String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let first = lines(&found[0]);
    for (gpu, text) in GPUS.iter().zip(&found).skip(1) {
        let other = lines(text);
        let mut wrong = first.clone();
        wrong.retain(|line| line.ends_with(" nothing") || !other.contains(line));
        if !wrong.is_empty() || first.len() != other.len() || first.len() < FEWEST {
            let counts = format!(
                "{} kernels on a G52, {} on a {gpu}",
                first.len(),
                other.len()
            );
            return Err(Error::fell_short(
                counts,
                format!("unchanged memory or other bytes: {}", wrong.join(", ")),
            ));
        }
    }
    Ok(End::Passed(format!("{} kernels", first.len())))
}
