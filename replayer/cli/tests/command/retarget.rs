// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay retarget` and `verify --for`.

use std::path::Path;

use crate::start::{Ended, Folder, Says, json, ran, shipped};

#[test]
fn one_recording_for_two_boards() {
    let folder = Folder::default();
    let recording = shipped("digits-g52");
    let recording = recording.to_str().unwrap();
    let out = folder.at("digits");
    let out_text = out.to_str().unwrap();
    let gpus = "--gpu rk3566 --gpu g76 --trials 2";
    let all = format!("retarget {recording} {gpus} -o {out_text} --json");
    let text = ran(&all).gave(0);
    let report = json(&text);
    assert_eq!(report[0]["gpu"], "Mali-G52 r1p0");
    assert_eq!(report[1]["storage"].as_array().unwrap().len(), 3);
    assert_eq!(report[1]["seen_on_silicon"], false);
    for (board, gpu) in [("rk3566", "Mali-G52 r1p0"), ("g76", "Mali-G76 r0p0")] {
        let made = out.join(board);
        let made = made.to_str().unwrap();
        let (code, text, error) = ran(&format!("run {made}"));
        assert_eq!(code, 0, "{error}");
        text.says("bit for bit");
        assert!(text.contains(gpu) || error.contains(gpu), "{text}{error}");
        ran(&format!("run {made} --device model:g52")).gave(5);
        let (_, text, _) = ran(&format!("info {made}"));
        text.says(&format!("\n  for {gpu}"));
        text.says("\n  recorded on: Mali-G52 r0p0\n");
        let manifest = std::fs::read_to_string(Path::new(made).join("manifest.toml")).unwrap();
        manifest.says("not seen on silicon");
    }
    ran(&all).ended(6, "--force");
}

#[test]
fn what_does_not_fit_is_named_and_nothing_is_written() {
    let folder = Folder::default();
    let recording = shipped("digits-g52");
    let recording = recording.to_str().unwrap();
    let out = folder.at("out");
    let place = out.to_str().unwrap();
    ran(&format!("retarget {recording} --gpu g71 -o {place}")).ended(3, "target-version");
    // The first GPU would do; nothing is written for it either.
    let both = "--gpu g31 --gpu g71 --mix-versions --trials 1";
    let error = ran(&format!("retarget {recording} {both} -o {place}")).ended(3, "");
    for part in ["target-instructions", "+FRCP.f32 in clause 0x", "by job 0x"] {
        error.says(part);
    }
    assert!(!out.exists());
    ran(&format!("verify --deep --for g76 {recording}")).ended(3, "for g76: rule target-deep");
    ran(&format!("verify --deep --for rk3566 {recording}")).gave(0);
    ran(&format!("verify --deep --for rk3588 {recording}")).ended(2, "GPUs and boards are: g52");
}
