// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of hostile files: refused, or shown within bounds on memory and output.

mod compile;
mod files;
mod link;
mod shown;
mod work;

use std::path::{Path, PathBuf};
use std::process::Command;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::{Platform, SECTIONS};
use gpureplay_format::{
    Access, Builder, ElementType, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};

use crate::null_job::{null_chain, null_job};
use crate::start::{Ended, Says};

const GPU: u32 = 0x7212_0000;
const JOBS: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
/// KiB of address space: 1 GiB, of which the program is a small part.
const MEMORY: &str = "1048576";
/// The model takes 8 GiB.
const MEMORY_WITH_MODEL: &str = "10485760";
/// Bytes.
const PRINTED: usize = 2 << 20;

struct File(tempfile::TempDir);

impl File {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recording.gpr"), bytes).unwrap();
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ran(&self, arguments: &[&str]) -> (i32, String, String) {
        ran(self.0.path(), arguments)
    }
}

fn ran(recording: &Path, arguments: &[&str]) -> (i32, String, String) {
    ran_in(MEMORY, recording, arguments)
}

fn ran_in(memory: &str, recording: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v $0 && exec \"$@\"", memory])
        .arg(env!("CARGO_BIN_EXE_gpureplay"))
        .args(arguments)
        .arg(recording)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

fn builder() -> Builder {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOBS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder
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
fn peak(arguments: &[&str]) -> u64 {
    peak_with(arguments, &[])
}

fn peak_with(arguments: &[&str], variables: &[(&str, &str)]) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .args(arguments)
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
    assert!(ended.success(), "{arguments:?}");
    most
}

fn shipped(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    folder.join(name)
}
