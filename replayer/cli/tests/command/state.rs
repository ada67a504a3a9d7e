// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that go on from each other: `--repeat`, `--state-in`, `--state-out`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn gpureplay(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn generate(directory: &Path, arguments: &[&str]) -> Output {
    let recording = top().join("recordings/generate-g52");
    let recording = recording.to_str().unwrap();
    let own = format!("forced={recording}/inputs/forced2.npy");
    let all = ["run", recording, "--input", &own];
    let output = gpureplay(directory, &[&all[..], arguments].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn a_thousand_characters_are_those_of_numpy() {
    let directory = tempfile::tempdir().unwrap();
    let repeat = ["--repeat", "1000", "--output", "character=song.bin"];
    generate(directory.path(), &repeat);
    let written = std::fs::read(directory.path().join("song.bin")).unwrap();
    let expected = std::fs::read(top().join("tools/generation/written.txt")).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        String::from_utf8(expected).unwrap()
    );
}

#[test]
fn a_file_of_states_continues_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let part = |arguments: &[&str], name: &str| {
        let output = format!("character={name}");
        generate(path, &[arguments, &["--output", &output]].concat());
        String::from_utf8(std::fs::read(path.join(name)).unwrap()).unwrap()
    };
    let first = part(&["--repeat", "20", "--state-out", "s.safetensors"], "a.bin");
    let second = part(
        &[
            "--repeat",
            "20",
            "--state-in",
            "s.safetensors",
            "--inject",
            "job-fault@60",
            "--retry",
            "1",
        ],
        "b.bin",
    );
    let whole = part(&["--repeat", "40"], "c.bin");
    assert_eq!(first + &second, whole);
    // One run goes on as well.
    generate(
        path,
        &[
            "--state-in",
            "s.safetensors",
            "--state-out",
            "t.safetensors",
        ],
    );
    let third = part(&["--repeat", "19", "--state-in", "t.safetensors"], "d.bin");
    assert_eq!(whole[21..], third);
}
