// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senseless options and missing files.

use std::path::Path;

use gpureplay_library::host_rules::HostRule;

use crate::start::{Ended, Folder, Says, json, ran};

const DIGITS: &str = "recordings/digits-g52";

fn run(words: &str) -> (i32, String, String) {
    ran(&format!("run {DIGITS} {words}"))
}

#[test]
fn classes_of_inputs_are_no_names_of_outputs() {
    let classes = "tools/digits/held-out/labels.npy";
    run(&format!("--labels {classes}"))
        .ended(4, "labels.npy")
        .says("--truth");
}

#[test]
fn a_tolerance_that_allows_anything_is_refused() {
    let file = "recordings/digits-g52/expected/1.npy";
    let compared = |tolerance: &str| run(&format!("--expect {file} --tolerance={tolerance}")).0;
    for wrong in ["nan", "inf", "-1", "-0.5", "x", ""] {
        assert_eq!(compared(wrong), 2, "{wrong}");
    }
    assert_eq!((compared("0.5"), compared("1e9")), (1, 0));
}

#[test]
fn no_layers_are_refused() {
    ran(&["run", DIGITS, "--layers", ""]).gave(2);
}

#[test]
fn layers_behind_skipped_ones_are_compared_with_nothing() {
    run("--layers pool1.. --recorded-values")
        .gave(0)
        .says("nothing to compare with");
}

#[test]
fn what_is_expected_must_be_computed() {
    let expected = "probabilities=recordings/digits-g52/expected/0.npy";
    run(&format!("--until conv2 --expect {expected}")).ended(2, "is not computed by the layers");
    let folder = Folder::default();
    let file = folder.at("conv2.npy");
    let named = format!("conv2={}", file.display());
    run(&format!("--output {named}")).gave(0);
    let compared = format!("--until conv2 --expect {named}");
    run(&compared).gave(0).says("bit for bit");
    let other = format!("{compared} --input recordings/digits-g52/inputs/5.npy");
    run(&other).gave(1);
}

#[test]
fn rules_are_listed_without_a_recording() {
    let text = ran("verify --rules").gave(0);
    let core = gpureplay_core::Rule::ALL.iter().map(|rule| rule.name());
    let host = HostRule::ALL.iter().map(|rule| rule.name());
    for name in core.chain(host) {
        text.says(name);
    }
    let (code, text, _) = ran("verify --rules --json");
    let rules = json(&text);
    let rules = rules.as_array().unwrap().len();
    assert!(code == 0 && rules > gpureplay_core::Rule::ALL.len());
}

#[test]
fn errors_come_in_the_order_of_the_recordings() {
    let (code, text, errors) = ran(&format!("verify missing {DIGITS} README.md"));
    assert_eq!(code, 3);
    text.says("digits-g52: sound");
    let lines: Vec<&str> = errors.lines().collect();
    let [first, second] = lines.as_slice() else {
        panic!("{errors}");
    };
    first.says("missing: ");
    second.says("README.md: ");
}

#[test]
fn a_benchmark_takes_inputs_and_prints_json() {
    let input = "input=recordings/digits-g52/inputs/3.npy";
    let bench = format!("bench {DIGITS} --input {input} --runs 2 --warmup 0 --json");
    let text = ran(&bench).gave(0);
    let report = json(&text);
    assert_eq!(report["run_seconds"].as_array().unwrap().len(), 2);
    ran(&format!("bench {DIGITS} --input input=README.md")).gave(4);
}

#[test]
fn times_are_seconds_in_json() {
    let text = run("--json").gave(0);
    let report = json(&text);
    for time in ["load_seconds", "replay_seconds", "device_seconds"] {
        let seconds = report[time].as_f64().unwrap();
        assert!(seconds > 0.0 && seconds < 600.0, "{time}: {seconds}");
    }
}

#[test]
fn a_key_of_digits_that_is_none_is_not_taken_for_a_file() {
    let zeros = "0".repeat(64);
    run(&format!("--require-signature {zeros}")).ended(4, "anybody can sign for");
    run("--require-signature /dev/zero").ended(4, "is a device");
}

#[test]
fn a_failure_without_a_failed_status_is_explained() {
    let error = run("--inject job-fault@150").ended(5, "reports a failure of job 0x");
    assert!(!error.contains("failed with DONE"), "{error}");
}

#[test]
fn what_the_secure_world_does_not_do_is_refused() {
    for disturbing in ["--inject job-fault@10", "--per-job"] {
        run(&format!("--device optee {disturbing}"))
            .ended(2, "--device optee: nothing disturbs or watches");
    }
    ran(&format!("diff {DIGITS} --device optee --against model"))
        .ended(2, "it runs whole recordings");
    // The guest has one: `cargo xtask guest optee test command`.
    if !Path::new("/dev/tee0").exists() {
        run("--device optee")
            .ended(5, "tee0: no such device")
            .says("doctor");
        let (_, found, _) = ran("doctor");
        found.says("bad  OP-TEE: /dev/tee0");
    }
}
