// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command on a recording of command streams: what it does on job chains, or the reason why not.

use std::fs;

use crate::start::{Folder, GPUREPLAY, recordings, said, well};

/// The words of a replay of the digit 3, in a folder of its own.
fn replayed(folder: &Folder, words: &[&str]) -> String {
    let shipped = recordings().join("digits-g610");
    let input = shipped.join("inputs/3.npy").display().to_string();
    let shipped = shipped.display().to_string();
    let (code, text) = folder.ran(
        GPUREPLAY,
        &[&["run", &shipped, "--input", &input][..], words].concat(),
    );
    assert_eq!(code, 0, "{text}");
    text
}

#[test]
fn layers_give_alone_what_they_give_among_all() {
    let folder = Folder::default();
    let text = replayed(&folder, &["--until", "pool1", "-o", "pool1=part.npy"]);
    assert!(text.contains("layers 1 to 3 of 7"), "{text}");
    replayed(&folder, &["-o", "pool1=whole.npy", "--trace", "lines.json"]);
    let read = |name: &str| fs::read(folder.at(name)).unwrap();
    assert_eq!(read("part.npy"), read("whole.npy"));
    // Each of its streams has a time, those of set-up too.
    let lines = String::from_utf8(read("lines.json")).unwrap();
    for chain in 0..19 {
        assert!(lines.contains(&format!("\"chain {chain}\"")), "{chain}");
    }
    assert!(!lines.contains("\"chain 19\""));
}

#[test]
fn a_dispatch_is_saved_and_given_other_work_groups() {
    let folder = Folder::default();
    let [saved, patched] = ["saved", "patched"].map(|name| folder.at(name).display().to_string());
    well(&["extract", "digits-g610", "--jobs", "11", "-o", &saved]);
    let (code, text) = folder.ran(GPUREPLAY, &["run", &saved]);
    let same = "conv2 matches digits-g610 on the model bit for bit";
    assert!(code == 0 && text.contains(same), "{text}");
    let sizes = ["--jobs", "11", "--local", "4x4", "-o", &patched];
    let text = well(&[&["patch", "digits-g610"][..], &sizes].concat());
    assert!(text.contains("job 11: proven"), "{text}");
    let (code, text) = folder.ran(GPUREPLAY, &["run", &patched]);
    assert!(code == 0 && text.contains("bit for bit"), "{text}");
}

#[test]
fn devices_are_compared_after_each_stream() {
    let models = ["--device", "model", "--against", "model"];
    let text = well(&[&["diff", "digits-g610"][..], &models].concat());
    assert!(text.contains("agree after each of 11 chains"), "{text}");
    let fault = ["--inject", "job-fault@10"];
    let (code, text) = said(&[&["diff", "digits-g610"][..], &models, &fault].concat());
    assert!(code == 1 && text.contains("after 1 chains"), "{text}");
}

#[test]
fn what_is_about_chains_is_refused_by_name() {
    let folder = Folder::default();
    let to = folder.at("new").display().to_string();
    for words in [
        &["link", "digits-g610", "-o", &to][..],
        &["retarget", "digits-g610", "--gpu", "g57", "-o", &to],
    ] {
        let (code, text) = said(words);
        assert!(code != 0 && text.contains("command streams"), "{text}");
        assert!(!folder.at("new").exists());
    }
}

#[test]
fn a_shader_that_was_saved_is_printed_as_it_is_in_the_recording() {
    let folder = Folder::default();
    let saved = folder.at("code");
    let to = ["--jobs", "11", "--save", saved.to_str().unwrap()];
    let shown = well(&[&["disasm", "digits-g610"][..], &to].concat());
    let file = fs::read_dir(&saved)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = well(&["disasm", file.to_str().unwrap(), "--gpu", "rk3588"]);
    let code = |text: &str| text.split_once("\n    0  ").unwrap().1.to_owned();
    assert_eq!(code(&text), code(&shown));
}
