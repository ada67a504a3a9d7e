// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay retarget` and `verify --for` as users see them.

use std::path::Path;

use crate::start::{ran, shipped};

#[test]
fn one_recording_for_two_boards() {
    let folder = tempfile::tempdir().unwrap();
    let recording = shipped("digits-g52");
    let recording = recording.to_str().unwrap();
    let out = folder.path().join("digits");
    let out_text = out.to_str().unwrap();
    let all = [
        "retarget", recording, "--gpu", "rk3566", "--gpu", "g76", "--trials", "2", "-o", out_text,
        "--json",
    ];
    let (code, text, error) = ran(&all);
    assert_eq!(code, 0, "{error}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report[0]["gpu"], "Mali-G52 r1p0");
    assert_eq!(report[1]["storage"].as_array().unwrap().len(), 3);
    assert_eq!(report[1]["seen_on_silicon"], false);
    for (board, gpu) in [("rk3566", "Mali-G52 r1p0"), ("g76", "Mali-G76 r0p0")] {
        let made = out.join(board);
        let made = made.to_str().unwrap();
        // The model of the GPU that it is for; its first case is bit for bit what the recorded stack computed.
        let (code, text, error) = ran(&["run", made]);
        assert_eq!(code, 0, "{error}");
        assert!(text.contains("bit for bit"), "{text}");
        assert!(text.contains(gpu) || error.contains(gpu), "{text}{error}");
        let (code, _, error) = ran(&["run", made, "--device", "model:g52"]);
        assert_eq!(code, 5, "not the GPU: {error}");
        let (_, text, _) = ran(&["info", made]);
        assert!(text.contains(&format!("\n  for {gpu}")), "{text}");
        assert!(text.contains("\n  recorded on: Mali-G52 r0p0\n"), "{text}");
        let manifest = std::fs::read_to_string(Path::new(made).join("manifest.toml")).unwrap();
        assert!(manifest.contains("not seen on silicon"), "{manifest}");
    }
    // What is there is kept.
    let (code, _, error) = ran(&all);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("--force"), "{error}");
}

#[test]
fn what_does_not_fit_is_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let recording = shipped("digits-g52");
    let recording = recording.to_str().unwrap();
    let out = folder.path().join("out");
    let place = out.to_str().unwrap();
    let (code, _, error) = ran(&["retarget", recording, "--gpu", "g71", "-o", place]);
    assert_eq!(code, 3);
    assert!(error.contains("target-version"), "{error}");
    // The first GPU would do; nothing is written for it either.
    let both = [
        "retarget",
        recording,
        "--gpu",
        "g31",
        "--gpu",
        "g71",
        "--mix-versions",
        "--trials",
        "1",
        "-o",
        place,
    ];
    let (code, _, error) = ran(&both);
    assert_eq!(code, 3);
    for part in ["target-instructions", "+FRCP.f32 in clause 0x", "by job 0x"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!out.exists());
    let (code, _, error) = ran(&["verify", "--deep", "--for", "g76", recording]);
    assert_eq!(code, 3);
    assert!(error.contains("for g76: rule target-deep"), "{error}");
    let (code, _, error) = ran(&["verify", "--deep", "--for", "rk3566", recording]);
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = ran(&["verify", "--deep", "--for", "rk3588", recording]);
    assert_eq!(code, 2);
    assert!(error.contains("GPUs and boards are: g52"), "{error}");
}
