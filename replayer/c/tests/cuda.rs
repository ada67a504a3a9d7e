// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CUDA run through C, on the driver's stand-in, which copies but launches nothing.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

use gpureplay::*;
use gpureplay_cuda_launch::recording::{Run, Writer};

/// Set in the process that finds the stand-in.
const INSIDE: &str = "GPUREPLAY_TEST_INSIDE";

/// The input's destination lies behind what is copied out: an output is the input of the run before.
const RUN: &str = r#"
format = 1
region_of = "a test"
process = 1

[device]
name = "stand-in"
ordinal = 0
capability = [9, 0]
driver = 13000

[[stream]]
kind = "default"

[[memory]]
address = 0x200000000000
size = 16
contents = "MEMORY"

[[input]]
name = "x"
size = 8
contents = "PORT"
form = "f32[2]"

[[output]]
name = "y"
size = 8
contents = "PORT"
form = "f32[2]"

[[operation]]
do = "copy"
stream = 0
to = 0x200000000008
from = 0x200000000000
size = 8

[[operation]]
do = "in"
stream = 0
address = 0x200000000000
input = 0

[[operation]]
do = "out"
stream = 0
address = 0x200000000008
output = 0
"#;

fn write(folder: &Path) {
    let writer = Writer::create(folder).unwrap();
    let memory = [5f32, 6.0, 0.0, 0.0].map(f32::to_le_bytes).concat();
    let hash = |bytes: &[u8]| writer.store().put(bytes).unwrap().to_string();
    let text = RUN.replace("MEMORY", &hash(&memory));
    let text = text.replace("PORT", &hash(&memory[..8]));
    writer.add_run(&Run::parse(&text).unwrap()).unwrap();
}

#[test]
fn a_run_binds_runs_and_reads_as_other_recordings() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("rec"));
    let test = std::env::current_exe().unwrap();
    let fake = test.parent().unwrap().join("libgpureplay_cuda_fake.so");
    std::os::unix::fs::symlink(fake, folder.path().join("libcuda.so.1")).unwrap();
    let mut command = Command::new(test);
    let name = "a_run_binds_runs_and_reads_as_other_recordings";
    command.args([name, "--exact", "--nocapture"]);
    command.current_dir(folder.path());
    command
        .env("LD_LIBRARY_PATH", folder.path())
        .env(INSIDE, "1");
    let said = command.output().unwrap();
    assert!(said.status.success(), "{said:?}");
}

fn inside() {
    let (mut recording, mut session) = (null_mut(), null_mut());
    let f32s = ElementType::F32 as u32;
    // SAFETY: every pointer comes from the function that makes it, or from a local of the size that is passed.
    unsafe {
        assert_eq!(
            gpureplay_open(c"rec".as_ptr(), &raw mut recording),
            Status::Ok
        );
        assert_eq!(gpureplay_tensor_count(recording), 2);
        let opened = gpureplay_session_open(recording, null(), &raw mut session);
        assert_eq!(opened, Status::Ok);
        gpureplay_close(recording);
        assert_eq!(gpureplay_run(session), Status::Input, "no input is bound");
        let runs = |x: [f32; 2]| {
            let bound = gpureplay_bind(session, c"x".as_ptr(), f32s, x.as_ptr().cast(), 8);
            assert_eq!(bound, Status::Ok);
            assert_eq!(gpureplay_run(session), Status::Ok);
            let mut y = [0f32; 2];
            let read = gpureplay_read(session, c"y".as_ptr(), f32s, y.as_mut_ptr().cast(), 8);
            assert_eq!(read, Status::Ok);
            y
        };
        assert_eq!(runs([1.0, 2.0]), [5.0, 6.0]);
        assert_eq!(runs([3.0, 4.0]), [1.0, 2.0]);
        assert_eq!(gpureplay_reset_states(session), Status::Ok);
        assert_eq!(runs([3.0, 4.0]), [5.0, 6.0]);
        gpureplay_session_close(session);
    }
}
