// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that check kernels by themselves.

use std::path::Path;

use super::runner::Verdict;
use crate::{
    error::Result,
    folder::Folder,
    run::session::{self, Options},
};

pub(super) fn own_kernels(folder: &Folder) -> Result<Verdict> {
    kernels(folder, "g52", "kernels", None)
}

pub(super) fn kernels(
    folder: &Folder,
    gpu: &str,
    command: &str,
    share: Option<&Path>,
) -> Result<Verdict> {
    let options = Options {
        gpu: gpu.into(),
        share: share.map(Path::to_path_buf),
        ..Options::default()
    };
    kernels_with(folder, options, command)
}

pub(super) fn kernels_with(folder: &Folder, options: Options, command: &str) -> Result<Verdict> {
    let outcome = session::script(folder, &options, command)?;
    let output = outcome.said();
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
    if let Err(text) = outcome.clean() {
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
