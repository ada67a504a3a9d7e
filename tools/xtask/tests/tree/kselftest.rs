// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hostile client skips without the device.

use std::{fs, path::Path, process::Command};

#[test]
fn the_hostile_client_is_a_kselftest() {
    if Path::new("/dev/gpureplay-nano").exists() {
        eprintln!("SKIPPED: the device is here, and the client would use it");
        return;
    }
    let from = super::top().join("nano-driver");
    let to = tempfile::tempdir().expect("temporary directory");
    let tests = to.path().join("tests");
    fs::create_dir(&tests).expect("directory");
    for file in [
        "gpureplay_nano.h",
        "tests/Makefile",
        "tests/client.h",
        "tests/hostile.c",
    ] {
        fs::copy(from.join(file), to.path().join(file)).expect("file");
    }
    let make = |target: &str| {
        let mut make = Command::new("make");
        make.arg("-C")
            .arg(&tests)
            .args(["-s", "CFLAGS=-Werror", target]);
        make.output().expect("make runs")
    };
    let built = make("all");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let ran = Command::new(tests.join("hostile"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    // 4 is kselftest's code for a skip.
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(said.starts_with("TAP version 13\n1..0 # SKIP"), "{said}");
    assert!(make("clean").status.success() && !tests.join("hostile").exists());
}
