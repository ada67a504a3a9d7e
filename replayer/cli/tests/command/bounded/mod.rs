// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile files: refused, or shown within bounds.

mod compile;
mod files;
mod link;
mod shown;
mod work;

use std::path::Path;
use std::process::{Command, Stdio};

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{Platform, SECTIONS};
use gpureplay_format::{
    Access, Builder, ElementType, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};
use gpureplay_kit::command::{Words, outcome};
use gpureplay_kit::jobs::{self, DATA, GPU, JOBS, null_chain, null_job};
use nix::sys::resource::{UsageWho, getrusage};

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
    limited(MEMORY, &format!("{words} {}", recording.display()))
}

fn run(recording: &Path, words: &str) -> (i32, String, String) {
    let run = format!("run --threads 1 {words} {}", recording.display());
    limited(MEMORY_WITH_MODEL, &run)
}

fn limited(memory: &str, words: &str) -> (i32, String, String) {
    println!("{words}");
    let script = format!("ulimit {memory} && ulimit {SECONDS} && exec \"$0\" \"$@\"");
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

/// The kernel counts at a program's end, and counts its parent's pages in until it starts: between the two stands
/// this binary, anew and small.
fn peak_with(words: &str, variables: &[(&str, &str)]) -> u64 {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args("--exact bounded::peak_of_the_words --nocapture".words())
        .env(WORDS, words)
        .envs(variables.iter().copied());
    let (code, text, error) = outcome(test.output().unwrap());
    assert_eq!(code, 0, "{text}{error}");
    let taken = text.lines().find_map(|line| line.strip_suffix(" KiB"));
    taken.expect(&text).parse().unwrap()
}

const WORDS: &str = "GPUREPLAY_TEST_WORDS";

#[test]
fn peak_of_the_words() {
    let Ok(words) = std::env::var(WORDS) else {
        let own = vec![1_u8; 256 << 20];
        let taken = peak("--version");
        assert!((1 << 10..64 << 10).contains(&taken), "{taken} KiB");
        return drop(own);
    };
    let mut command = Command::new(GPUREPLAY);
    let status = command.args(words.words()).stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "{words}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    println!("\n{} KiB", usage.max_rss());
}
