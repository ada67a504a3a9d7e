// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay analyse`, `jobs --html` and `disasm --annotate`.

use std::path::{Path, PathBuf};

use gpureplay_kit::command::Words;

use crate::start::{Ended, Says, ran_in, recordings};

fn ran(words: &(impl Words + ?Sized)) -> (i32, String, String) {
    ran_in(&recordings(), words)
}

fn analysis(folder: &Path, of: &str, what: &str) -> PathBuf {
    let (code, text, error) = ran(&["analyse", of, "--what", what, "--json"]);
    assert!(code <= 1, "{error}");
    let path = folder.join(format!("{of}.json"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn exit_codes_are_verdicts() {
    let saxpy = "saxpy-g52";
    let text = ran(&["analyse", saxpy, "--what", "races,uninit,out-of-tensor"]).gave(0);
    for what in ["races", "uninit", "out-of-tensor"] {
        let line = text.lines().find(|line| line.starts_with(what));
        assert!(line.unwrap().ends_with(" clean"), "{text}");
        assert!(text.find(what) < text.find("\njob "), "{text}");
    }
    let digits = "digits-g52";
    ran(&["analyse", digits, "--what", "out-of-tensor"])
        .gave(0)
        .says("out-of-tensor  found in ");
    let denied = |deny: &str| {
        let words = [
            "analyse",
            digits,
            "--what",
            "races,out-of-tensor",
            "--deny",
            deny,
        ];
        ran(&words).0
    };
    assert_eq!(denied("races"), 0);
    assert_eq!(denied("races,out-of-tensor"), 1);
    assert_eq!(denied("all"), 1);
    assert_eq!(denied("uninit"), 2);
    let (code, text, error) = ran(&["analyse", digits, "--limit-work", "5000"]);
    assert_eq!(code, 5, "{error}");
    assert!(
        error.contains("not complete") && !text.contains(" clean\n"),
        "{text}{error}"
    );
}

#[test]
fn wrong_words_are_named() {
    let saxpy = "saxpy-g52";
    let (code, _, error) = ran(&["analyse", saxpy, "--what", "heat,speed"]);
    assert!(
        code == 2 && error.contains("no analysis `speed`"),
        "{error}"
    );
    let (code, _, error) = ran(&["analyse", saxpy, "--jobs", "5"]);
    assert!(code == 2 && error.contains("--jobs"), "{error}");
    let (code, _, error) = ran(&["jobs", saxpy, "--html", "x.html", "--peak-bytes", "0"]);
    assert!(code == 2 && error.contains("above 0"), "{error}");
}

#[test]
fn notes_stand_beside_the_instructions_of_their_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = analysis(folder.path(), "saxpy-g52", "all");
    let path = path.display().to_string();
    ran(&["disasm", "saxpy-g52", "--annotate", &path])
        .gave(0)
        .says("# 125 warps, 1000 lanes, 8.0 of 8 lanes active")
        .says("# 4000 B read, 0 B written, 125 lines");
    let (code, _, error) = ran(&["disasm", "digits-g52", "--annotate", &path]);
    assert!(
        code == 4 && error.contains("another recording, saxpy-g52"),
        "{error}"
    );
    std::fs::write(folder.path().join("no.json"), "{\"format\":1}").unwrap();
    let no = folder.path().join("no.json").display().to_string();
    let (code, _, error) = ran(&["disasm", "saxpy-g52", "--annotate", &no]);
    assert!(code == 4 && error.contains("analyse --json"), "{error}");
}

#[test]
fn pages_replace_nothing_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let path = page.display().to_string();
    let saxpy = "saxpy-g52";
    ran(&["jobs", saxpy, "--html", &path]).gave(0);
    let first = std::fs::read_to_string(&page).unwrap();
    assert!(first.starts_with("<!doctype html>") && first.ends_with("</html>\n"));
    let (code, _, error) = ran(&["analyse", saxpy, "--html", &path]);
    assert!(code == 6 && error.contains("--force"), "{error}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), first);
    ran(&["analyse", saxpy, "--html", &path, "--force"]).gave(0);
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("\"heat\":[{")
    );
}

#[test]
fn one_file_has_one_hash_and_reports_are_about_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["lenet-g52", "saxpy-g52", "digits-g52"] {
        let file = recordings().join(name).join("recording.gpr");
        let hash = gpureplay_library::weights::sha256(&std::fs::read(&file).unwrap());
        let (_, jobs, error) = ran(&["jobs", name, "--static", "--json"]);
        assert!(jobs.contains(&hash), "{name} {error}");
        let path = analysis(folder.path(), name, "lines");
        assert!(
            std::fs::read_to_string(&path).unwrap().contains(&hash),
            "{name}"
        );
        let path = path.display().to_string();
        let (code, text, error) = ran(&["disasm", name, "--annotate", &path]);
        assert!(code == 0 && text.contains("lines in"), "{name} {error}");
    }
}
