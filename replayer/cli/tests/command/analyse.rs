// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay analyse`, `jobs --html` and `disasm --annotate`.

use std::path::{Path, PathBuf};

use crate::start::{Ended, Folder, Says, ran_in, recordings};

fn ran(words: &str) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

fn analysis(folder: &Path, of: &str, what: &str) -> PathBuf {
    let (code, text, error) = ran(&format!("analyse {of} --what {what} --json"));
    assert!(code <= 1, "{error}");
    let path = folder.join(format!("{of}.json"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn exit_codes_are_verdicts() {
    let saxpy = "saxpy-g52";
    let text = ran(&format!(
        "analyse {saxpy} --what races,uninit,out-of-tensor"
    ))
    .gave(0);
    for what in ["races", "uninit", "out-of-tensor"] {
        let line = text.lines().find(|line| line.starts_with(what));
        assert!(line.unwrap().ends_with(" clean"), "{text}");
        assert!(text.find(what) < text.find("\njob "), "{text}");
    }
    let digits = "digits-g52";
    ran(&format!("analyse {digits} --what out-of-tensor"))
        .gave(0)
        .says("out-of-tensor  found in ");
    let denied = |deny: &str| {
        let what = "--what races,out-of-tensor";
        ran(&format!("analyse {digits} {what} --deny {deny}"))
    };
    denied("races").gave(0);
    denied("races,out-of-tensor").gave(1);
    denied("all").gave(1);
    denied("uninit").gave(2);
    let (code, text, error) = ran(&format!("analyse {digits} --limit-work 5000"));
    assert_eq!(code, 5, "{error}");
    assert!(
        error.contains("not complete") && !text.contains(" clean\n"),
        "{text}{error}"
    );
}

#[test]
fn wrong_words_are_named() {
    let saxpy = "saxpy-g52";
    ran(&format!("analyse {saxpy} --what heat,speed")).ended(2, "no analysis `speed`");
    ran(&format!("analyse {saxpy} --jobs 5")).ended(2, "--jobs");
    ran(&format!("jobs {saxpy} --html x.html --peak-bytes 0")).ended(2, "above 0");
}

#[test]
fn notes_stand_beside_the_instructions_of_their_recording() {
    let folder = Folder::default();
    let path = analysis(folder.path(), "saxpy-g52", "all");
    let path = path.display().to_string();
    ran(&format!("disasm saxpy-g52 --annotate {path}"))
        .gave(0)
        .says("# 125 warps, 1000 lanes, 8.0 of 8 lanes active")
        .says("# 4000 B read, 0 B written, 125 lines");
    ran(&format!("disasm digits-g52 --annotate {path}")).ended(4, "another recording, saxpy-g52");
    std::fs::write(folder.at("no.json"), "{\"format\":1}").unwrap();
    let no = folder.text("no.json");
    ran(&format!("disasm saxpy-g52 --annotate {no}")).ended(4, "analyse --json");
}

#[test]
fn pages_replace_nothing_without_force() {
    let folder = Folder::default();
    let page = folder.at("page.html");
    let path = page.display().to_string();
    let saxpy = "saxpy-g52";
    ran(&format!("jobs {saxpy} --html {path}")).gave(0);
    let first = std::fs::read_to_string(&page).unwrap();
    assert!(first.starts_with("<!doctype html>") && first.ends_with("</html>\n"));
    ran(&format!("analyse {saxpy} --html {path}")).ended(6, "--force");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), first);
    ran(&format!("analyse {saxpy} --html {path} --force")).gave(0);
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("\"heat\":[{")
    );
}

#[test]
fn one_file_has_one_hash_and_reports_are_about_it() {
    let folder = Folder::default();
    for name in ["lenet-g52", "saxpy-g52", "digits-g52"] {
        let file = recordings().join(name).join("recording.gpr");
        let hash = gpureplay_library::weights::sha256(&std::fs::read(&file).unwrap());
        let (_, jobs, _) = ran(&format!("jobs {name} --static --json"));
        jobs.says(&hash);
        let path = analysis(folder.path(), name, "lines");
        assert!(
            std::fs::read_to_string(&path).unwrap().contains(&hash),
            "{name}"
        );
        let path = path.display().to_string();
        let (code, text, error) = ran(&format!("disasm {name} --annotate {path}"));
        assert!(code == 0 && text.contains("lines in"), "{name} {error}");
    }
}
