// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings embedded in C and Python.

use std::{path::Path, process::Command};

use super::{Bench, Found, replays::start, watched::watched};
use crate::error::Result;

/// No replay may load them.
pub(super) const STACK: [&str; 6] = ["torch", "cudnn", "cublas", "cudart", "cufft", "nvrtc"];

pub(super) fn compile(bench: &Bench) -> Result<()> {
    let library = bench.command.with_file_name("libgpureplay.so");
    if !library.exists() {
        return Ok(());
    }
    let work = bench.work.path();
    let _ = std::os::unix::fs::symlink(&library, work.join("libgpureplay.so.0"));
    let mut compile = Command::new("gcc");
    compile.current_dir(work).args(["-O1", "-o", "replayed"]);
    compile.arg(bench.programs.join("replayed.c")).arg("-I");
    compile.arg(bench.programs.join("../../replayer/c/include"));
    let (_, said) = start(compile.arg(&library))?;
    eprint!("{said}");
    Ok(())
}

pub(super) fn equal(
    bench: &Bench,
    [recording, answers]: [&Path; 2],
    first: u32,
    count: u32,
) -> Found {
    let work = bench.work.path();
    if !work.join("replayed").exists() {
        return Ok(("–".into(), 0));
    }
    let mut python = Command::new("python3");
    python.arg(bench.programs.join("replayed.py"));
    let package = bench.programs.join("../../replayer/c/python");
    python.env("PYTHONPATH", package);
    let library = bench.command.with_file_name("libgpureplay.so");
    python.env("GPUREPLAY_LIBRARY", library);
    let mut c = Command::new(work.join("replayed"));
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::iter::once(work.to_path_buf()).chain(std::env::split_paths(&others));
    let folders = std::env::join_paths(folders).unwrap_or_default();
    c.env("LD_LIBRARY_PATH", folders);
    let (mut said, mut wrong) = (Vec::new(), 0);
    for (language, mut command) in [("C", c), ("Python", python)] {
        command.current_dir(work).args([recording, answers]);
        command.args([first.to_string(), count.to_string()]);
        let ran = watched(&mut command)?;
        let equal = ran.said.lines().find(|line| line.starts_with("equal "));
        let maps = ran.said.lines().filter(|line| line.starts_with("maps "));
        let files = maps.map(|line| line.rsplit('/').next().unwrap_or(line));
        let stack = files.filter(|file| STACK.iter().any(|name| file.contains(name)));
        let stack = stack.count();
        let all = format!("equal {count} of {count}");
        wrong += usize::from(equal != Some(&*all)) + stack;
        let equal = equal.unwrap_or("failed");
        said.push(format!(
            "{language} {equal}, {stack} of the stack's libraries mapped"
        ));
    }
    Ok((said.join("; "), wrong))
}
