// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every kernel leaves the same bytes in memory on a G52 as on a G57: Mesa compiles it twice, two translators read the code.

use std::{env, fs, path::PathBuf, process::Command};

use gpureplay_task::{checks::End, output};

use super::Here;
use crate::{
    error::{Error, Result},
    repository::root,
};

/// GPUs of two instruction sets.
const GPUS: [&str; 2] = ["g52", "g57"];
/// Fewest kernels that the repository's files have.
const FEWEST: usize = 69;

/// Launches every kernel of our files, and of the samples of the reference data where they are, on both GPUs.
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
        let entries = fs::read_dir(folder).map_err(Error::io("read", folder))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        // What prints needs the program that reads its buffer.
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
    let [one, other] = [&found[0], &found[1]].map(|text| text.lines().collect::<Vec<_>>());
    let wrong = |line: &&&str| line.ends_with(" nothing") || !other.contains(line);
    let wrong: Vec<String> = one
        .iter()
        .filter(wrong)
        .map(|line| line.to_string())
        .collect();
    if wrong.is_empty() && one.len() == other.len() && one.len() >= FEWEST {
        return Ok(End::Passed(format!("{} kernels", one.len())));
    }
    Err(Error::FellShort {
        what: format!("{} kernels on a G52, {} on a G57", one.len(), other.len()),
        remedy: format!("unchanged memory or other bytes: {}", wrong.join(", ")),
    })
}
