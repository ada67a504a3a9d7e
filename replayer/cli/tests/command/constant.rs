// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs that no input affects get a remark.

use gpureplay_library::weights::sha256;
use gpureplay_trials::parts::Parts;

use crate::start::{Says, json};
use crate::user_files::Copy;

/// Inputs lie where no job reads: the jobs read recorded values, as after a copy by the CPU.
fn lost() -> Copy {
    let copy = Copy::of("saxpy-g52");
    let file = copy.at("rec/recording.gpr");
    let mut parts = Parts::of(&std::fs::read(&file).unwrap()).unwrap();
    assert!(parts.move_tensor(0xa006000, 0xa00a000));
    assert!(parts.move_tensor(0xa017000, 0xa00c000));
    std::fs::write(&file, parts.file()).unwrap();
    let manifest = copy.at("rec/manifest.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let lines = text
        .lines()
        .map(|line| match line.starts_with("sha256 = ") {
            true => format!("sha256 = \"{}\"\n", sha256(&parts.file())),
            false => format!("{line}\n"),
        });
    std::fs::write(&manifest, lines.collect::<String>()).unwrap();
    copy
}

const REMARK: &str = "output `out` is the same for all inputs";

#[test]
fn run_and_verify_say_that_no_input_has_an_effect() {
    let copy = lost();
    let inputs = "--input x=rec/inputs/x2.npy --input y=rec/inputs/y2.npy";
    let (code, text, error) = copy.ran(&format!("run rec --json {inputs}"));
    assert!(error.contains(REMARK), "{code} {error}");
    let report = json(&text);
    assert_eq!(report["outputs"]["out"]["constant"], true);
    let (code, text, error) = copy.ran("verify --deep --json rec");
    assert_eq!(code, 0, "{error}");
    error.says(REMARK);
    let report = json(&text);
    assert_eq!(report[0]["constant_outputs"], serde_json::json!(["out"]));
}

#[test]
fn what_depends_on_an_input_has_no_remark() {
    let copy = Copy::of("saxpy-g52");
    for words in ["run rec --json", "verify --deep --json rec"] {
        let (code, text, error) = copy.ran(words);
        assert_eq!(code, 0, "{error}");
        assert!(!error.contains("the same for all inputs") && !text.contains("constant"));
    }
}
