// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that make no sense, and what is no file: an error with the right exit code, or no surprise.

use std::path::Path;

use crate::start::ran;

const DIGITS: &str = "recordings/digits-g52";

#[test]
fn classes_of_inputs_are_no_names_of_outputs() {
    let classes = "tools/digits/held-out/labels.npy";
    let (code, _, error) = ran(&["run", DIGITS, "--labels", classes]);
    assert_eq!(code, 4, "{error}");
    assert!(
        error.contains("labels.npy") && error.contains("--truth"),
        "{error}"
    );
}

#[test]
fn a_tolerance_that_allows_anything_is_refused() {
    let file = "recordings/digits-g52/expected/1.npy";
    let compared = |tolerance: &str| {
        let tolerance = format!("--tolerance={tolerance}");
        ran(&["run", DIGITS, "--expect", file, &tolerance]).0
    };
    for wrong in ["nan", "inf", "-1", "-0.5", "x", ""] {
        assert_eq!(compared(wrong), 2, "{wrong}");
    }
    assert_eq!((compared("0.5"), compared("1e9")), (1, 0));
}

#[test]
fn no_layers_are_refused() {
    let (code, _, error) = ran(&["run", DIGITS, "--layers", ""]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn layers_behind_skipped_ones_are_compared_with_nothing() {
    let (code, text, error) = ran(&["run", DIGITS, "--layers", "pool1..", "--recorded-values"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("nothing to compare with"), "{text}");
}

#[test]
fn what_is_expected_must_be_computed() {
    let expected = "probabilities=recordings/digits-g52/expected/0.npy";
    let (code, _, error) = ran(&["run", DIGITS, "--until", "conv2", "--expect", expected]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("is not computed by the layers"), "{error}");
    // An intermediate tensor is compared too.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("conv2.npy");
    let named = format!("conv2={}", file.display());
    assert_eq!(ran(&["run", DIGITS, "--output", &named]).0, 0);
    let compared = |arguments: &[&str]| {
        let mut all = vec!["run", DIGITS, "--until", "conv2", "--expect", &named];
        all.extend(arguments);
        ran(&all)
    };
    let (code, text, error) = compared(&[]);
    assert!(code == 0 && text.contains("bit for bit"), "{text}{error}");
    let other = ["--input", "recordings/digits-g52/inputs/5.npy"];
    assert_eq!(compared(&other).0, 1);
}

#[test]
fn rules_are_listed_without_a_recording() {
    let (code, text, _) = ran(&["verify", "--rules"]);
    assert_eq!(code, 0);
    for rule in gpureplay_core::Rule::ALL {
        assert!(text.contains(rule.name()), "{}", rule.name());
    }
    let (code, text, _) = ran(&["verify", "--rules", "--json"]);
    let rules: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rules = rules.as_array().unwrap().len();
    assert!(code == 0 && rules > gpureplay_core::Rule::ALL.len());
}

#[test]
fn errors_come_in_the_order_of_the_recordings() {
    let (code, text, errors) = ran(&["verify", "missing", DIGITS, "README.md"]);
    assert_eq!(code, 3);
    assert!(text.contains("digits-g52: sound"), "{text}");
    let lines: Vec<&str> = errors.lines().collect();
    let [first, second] = lines.as_slice() else {
        panic!("{errors}");
    };
    assert!(first.contains("missing: "), "{errors}");
    assert!(second.contains("README.md: "), "{errors}");
}

#[test]
fn a_benchmark_takes_inputs_and_prints_json() {
    let input = "input=recordings/digits-g52/inputs/3.npy";
    let (code, text, error) = ran(&[
        "bench", DIGITS, "--input", input, "--runs", "2", "--warmup", "0", "--json",
    ]);
    assert_eq!(code, 0, "{error}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["run_seconds"].as_array().unwrap().len(), 2);
    let (code, _, error) = ran(&["bench", DIGITS, "--input", "input=README.md"]);
    assert_eq!(code, 4, "{error}");
}

#[test]
fn times_are_seconds_in_json() {
    let (code, text, error) = ran(&["run", DIGITS, "--json"]);
    assert_eq!(code, 0, "{error}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    for time in ["load_seconds", "replay_seconds", "device_seconds"] {
        let seconds = report[time].as_f64().unwrap();
        assert!(seconds > 0.0 && seconds < 600.0, "{time}: {seconds}");
    }
}

#[test]
fn a_key_of_digits_that_is_none_is_not_taken_for_a_file() {
    let zeros = "0".repeat(64);
    let (code, _, error) = ran(&["run", DIGITS, "--require-signature", &zeros]);
    assert_eq!(code, 4);
    assert!(error.contains("anybody can sign for"), "{error}");
    let (code, _, error) = ran(&["run", DIGITS, "--require-signature", "/dev/zero"]);
    assert_eq!(code, 4);
    assert!(error.contains("is a device"), "{error}");
}

#[test]
fn a_failure_without_a_failed_status_is_explained() {
    let (code, _, error) = ran(&["run", DIGITS, "--inject", "job-fault@150"]);
    assert_eq!(code, 5);
    assert!(error.contains("reports a failure of job 0x"), "{error}");
    assert!(!error.contains("failed with DONE"), "{error}");
}

#[test]
fn what_the_secure_world_does_not_do_is_refused() {
    let secure = ["run", DIGITS, "--device", "optee"];
    let more = |more: &[&str]| ran(&[&secure, more].concat());
    for disturbing in [&["--inject", "job-fault@10"][..], &["--per-job"]] {
        let (code, _, said) = more(disturbing);
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("--device optee: nothing disturbs or watches"),
            "{said}"
        );
    }
    let (code, _, said) = ran(&["diff", DIGITS, "--device", "optee", "--against", "model"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("it runs whole recordings"), "{said}");
    // The other tests are in the guest, which has a secure world: `cargo xtask guest optee test command`.
    if !Path::new("/dev/tee0").exists() {
        let (code, _, said) = more(&[]);
        assert_eq!(code, 5, "{said}");
        assert!(
            said.contains("tee0: no such device") && said.contains("doctor"),
            "{said}"
        );
        let (_, found, _) = ran(&["doctor"]);
        assert!(found.contains("bad  OP-TEE: /dev/tee0"), "{found}");
    }
}
