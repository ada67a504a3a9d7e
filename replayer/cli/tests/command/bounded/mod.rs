// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile files: refused, or shown within bounds.

mod compile;
mod files;
mod link;
mod shown;
mod work;

use std::path::Path;
use std::process::Command;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{Platform, SECTIONS};
use gpureplay_format::{
    Access, Builder, ElementType, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};
use gpureplay_kit::command::{Words, outcome};
use gpureplay_kit::jobs::{self, DATA, GPU, JOBS, null_chain, null_job};

use crate::start::{Ended, Folder, GPUREPLAY, Says, json, shipped};
use crate::values::{npy, png, safetensors};

/// 1 GiB of address space, in KiB.
const MEMORY: &str = "-v 1048576";
/// The model takes 8 GiB.
const MEMORY_WITH_MODEL: &str = "-v 10485760";
/// Bytes.
const PRINTED: usize = 2 << 20;

/// Processor seconds.
const SECONDS: &str = "-t 20";

struct File(Folder);

impl File {
    fn new(bytes: &[u8]) -> Self {
        let folder = Folder::default();
        std::fs::write(folder.at("recording.gpr"), bytes).unwrap();
        Self(folder)
    }

    fn of(builder: Builder) -> Self {
        Self::new(&builder.finish().unwrap())
    }

    fn ran(&self, words: &str) -> (i32, String, String) {
        ran(self.0.path(), words)
    }

    fn run(&self, words: &str) -> (i32, String, String) {
        run(self.0.path(), words)
    }
}

fn ran(recording: &Path, words: &str) -> (i32, String, String) {
    limited(&[MEMORY], &format!("{words} {}", recording.display()))
}

fn run(recording: &Path, words: &str) -> (i32, String, String) {
    let run = format!("run --threads 1 {words} {}", recording.display());
    limited(&[MEMORY_WITH_MODEL], &run)
}

fn limited(limits: &[&str], words: &str) -> (i32, String, String) {
    println!("{words}");
    let limits: String = limits.iter().map(|it| format!("ulimit {it} && ")).collect();
    let script = limits + "exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, GPUREPLAY]).args(words.words());
    outcome(shell.output().unwrap())
}

fn builder() -> Builder {
    jobs::builder(1, 1)
}

fn named(name: &str, binds: u32) -> Vec<u8> {
    let mut builder = builder();
    let kind = TensorKind::Input;
    let tensor = Tensor::dense(name, kind, ElementType::U8, &[16], DATA);
    let tensor = builder.tensor(tensor);
    builder.segment("run", SegmentKind::Run);
    for _ in 0..binds {
        builder.bind_input(tensor);
    }
    null_chain(&mut builder, JOBS);
    builder.finish().unwrap()
}

/// KiB, from the kernel.
fn peak(words: &str) -> u64 {
    peak_with(words, &[])
}

fn peak_with(words: &str, variables: &[(&str, &str)]) -> u64 {
    let mut child = Command::new(GPUREPLAY)
        .args(words.words())
        .envs(variables.iter().copied())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        most = most.max(number.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(ended.success(), "{words}");
    most
}
