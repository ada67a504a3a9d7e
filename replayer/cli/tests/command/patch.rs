// SPDX-License-Identifier: MIT OR Apache-2.0
//! `patch` and `tune`: what they refuse, what they write, and what they say about it.

use std::fs;
use std::path::Path;
use std::process::Command;

fn code(arguments: &[&str]) -> (Option<i32>, String) {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let output = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .current_dir(recordings)
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_patched_recording_runs_and_says_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let out = at("out");
    let (done, text) = code(&[
        "patch",
        "saxpy-g52",
        "--job",
        "0",
        "--local",
        "100",
        "-o",
        &out,
    ]);
    assert_eq!(done, Some(0), "{text}");
    assert!(text.contains("proven to compute the same"), "{text}");
    let (done, text) = code(&["run", &out]);
    assert!(done == Some(0) && text.contains("bit for bit"), "{text}");
    assert_eq!(code(&["verify", "--deep", &out]).0, Some(0));
    let manifest = fs::read_to_string(Path::new(&out).join("manifest.toml")).unwrap();
    assert!(
        manifest.contains("work groups of 100x1x1 in place of 8x1x1"),
        "{manifest}"
    );
    let (_, jobs) = code(&["jobs", &out, "--csv"]);
    assert!(jobs.contains("100x1x1"), "{jobs}");
    // What is not to be is refused, and nothing is written.
    for (change, exit, says) in [
        (&["--global", "1024"][..], 2, "first address"),
        (&["--global", "992"], 2, "bytes differ"),
        (&["--local", "7"], 2, "no whole number"),
        (&["--local", "500"], 2, "at most 384"),
        (&["--shader", "digits-g52/recording.gpr"], 4, "code: "),
        (&["--from", "digits-g52:19"], 4, "pointers: "),
        (
            &["--from", "saxpy-g52:0", "--local", "8"],
            2,
            "cannot be used with",
        ),
        (&["--map", "x=y"], 2, "--from"),
        (&["--from", "digits-g52:20"], 2, "jobs are 0 to 19"),
        (&[], 2, "say what to change"),
    ] {
        let other = at("other");
        let (done, text) =
            code(&[&["patch", "saxpy-g52", "--job", "0", "-o", &other], change].concat());
        assert_eq!(done, Some(exit), "{change:?} {text}");
        assert!(text.contains(says), "{change:?} {text}");
        assert!(!Path::new(&other).exists(), "{change:?}");
    }
    let (done, text) = code(&["patch", "digits-g52", "--job", "hash:98aa", "--local", "1"]);
    assert!(done == Some(2) && text.contains("3 jobs"), "{text}");
}

#[test]
fn each_candidate_has_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let tune = |csv: &str| {
        let candidates = ["--local", "4x4,16x8,32x32,5", "--variant", "saxpy-g52:0"];
        let tune = [
            "tune",
            "digits-g52",
            "--job",
            "11",
            "--runs",
            "2",
            "--csv",
            csv,
        ];
        let (done, text) = code(&[&tune[..], &candidates].concat());
        assert_eq!(done, Some(0), "{text}");
        fs::read_to_string(csv).unwrap()
    };
    let first = tune(&at("one.csv"));
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 5, "{first}");
    for (line, says) in lines[1..].iter().zip([
        ",recorded,",
        ",proven,",
        ",proven,",
        ",refused,",
        ",refused,",
    ]) {
        assert!(line.contains(says), "{line}");
    }
    assert!(
        !lines[6].contains(",proven,") && !lines[6].contains(",yes,"),
        "{}",
        lines[6]
    );
    // All but the two columns with times is the same again.
    let without = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.rsplitn(3, ',').last().unwrap().to_owned());
        lines.collect()
    };
    assert_eq!(without(&first), without(&tune(&at("two.csv"))));
}
