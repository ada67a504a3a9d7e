// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile names, closed or full streams, no threads.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use gpureplay_kit::command::outcome;

use crate::start::{Ended, GPUREPLAY, command, json};
use crate::user_files::Copy;

/// Cursor, bell, reordering.
const CONTROLS: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}";

trait Lines {
    fn line(&self, line: &str) -> (i32, String);
    fn words(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command;
}

impl Lines for Copy {
    fn line(&self, line: &str) -> (i32, String) {
        ended(&mut self.words(line.split(' ')))
    }

    fn words(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = command();
        command.current_dir(self.folder()).args(words);
        command
    }
}

fn saxpy() -> Copy {
    Copy::of("saxpy-g52")
}

fn ended(command: &mut Command) -> (i32, String) {
    println!("{command:?}");
    let (code, out, err) = outcome(command.output().unwrap());
    (code, out + &err)
}

#[test]
fn no_name_begins_a_line() {
    let copy = saxpy();
    let path = copy.at("rec/manifest.toml");
    let manifest = fs::read_to_string(&path).unwrap();
    let forged = r#""saxpy\nforged: none\n\u001b[31m""#;
    let manifest = manifest.replace("kernel = \"saxpy\"", &format!("kernel = {forged}"));
    let manifest = manifest.replacen("name = \"", "name = \"\\nforged: none\\n", 1);
    fs::write(&path, manifest).unwrap();
    for line in [
        "analyse rec",
        "jobs rec",
        "jobs rec --by-kernel",
        "jobs --csv rec",
        "jobs --static rec",
        "run --per-job rec",
        "run --trace - rec",
        "bench --per-job --runs 1 rec",
        "info rec",
        "dump rec",
        "verify --deep rec",
        "disasm rec",
        "extract --job 0 -o made rec",
        "extract --job kernel:none -o made2 rec",
        "patch --jobs 0 --local 4 rec",
        "tune --jobs 0 --local 4 rec",
    ] {
        let (_, said) = copy.line(line);
        let lines = said.lines();
        let wrong: Vec<&str> = lines.filter(|line| line.starts_with("forged")).collect();
        assert!(wrong.is_empty(), "{line}: {said}");
        assert!(!said.contains('\u{1b}'), "{line}: {said}");
        // Line ends of the program's own are not escaped.
        let own = said.replace(r"\u000aforged: none\u000a", "");
        assert!(!own.contains(r"\u000a"), "{line}: {own}");
    }
}

#[test]
fn words_of_the_command_line_are_shown_as_escapes() {
    let copy = saxpy();
    for word in [format!("--{CONTROLS}"), format!("--a\nforged {CONTROLS}")] {
        for words in [
            vec!["verify", &word],
            vec![&word],
            vec!["run", "rec", "--top", &word],
        ] {
            let said = ended(&mut copy.words(&words)).gave(2);
            assert!(
                !said.contains(|c: char| c != '\n' && c.is_control()),
                "{said}"
            );
            assert!(!said.contains('\u{202e}'), "{said}");
            assert!(
                !said.lines().any(|line| line.starts_with("forged")),
                "{said}"
            );
        }
    }
}

#[test]
fn names_that_are_no_text_are_named_or_used() {
    let copy = saxpy();
    let name = OsString::from_vec(b"rec\xff".to_vec());
    fs::rename(copy.at("rec"), copy.folder().join(&name)).unwrap();
    for words in ["verify --json", "run --json", "info --json"] {
        let output = copy.words(words.split(' ')).arg(&name).output().unwrap();
        json(&outcome(output).gave(0));
    }
    let input = OsStr::from_bytes(b"x=\xfe.npy");
    ended(copy.words(["run", "--input"]).arg(input).arg(&name)).ended(2, "x=\u{fffd}.npy");
}

#[test]
fn devices_and_links_in_the_place_of_reports_and_pages_are_refused() {
    let copy = saxpy();
    for line in [
        "bench --runs 1 --compare /dev/zero rec",
        "disasm --annotate /dev/zero rec",
    ] {
        copy.line(line).ended(4, "is a device");
    }
    fs::create_dir(copy.at("man")).unwrap();
    std::os::unix::fs::symlink("../outside", copy.at("man/gpureplay.1")).unwrap();
    copy.line("manual -o man").gave(6);
    copy.line("manual --force -o man").gave(0);
    assert!(!copy.at("outside").exists());
    assert!(copy.at("man/gpureplay.1").is_file());
}

#[test]
fn a_full_stream_is_an_error_and_no_panic() {
    let copy = saxpy();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for line in [
        "info rec",
        "verify rec",
        "run rec",
        "jobs rec",
        "doctor",
        "verify --rules",
    ] {
        ended(copy.words(line.split(' ')).stdout(full())).gave(6);
    }
    for (line, code) in [
        ("info none", 3),
        ("run none", 3),
        ("run rec --inject 1@x", 2),
        ("cuda list none", 3),
    ] {
        ended(copy.words(line.split(' ')).stderr(full())).gave(code);
    }
}

#[test]
fn a_closed_output_is_an_error() {
    let copy = saxpy();
    for line in [
        "info rec",
        "run rec --output -",
        "run rec",
        "verify --json rec",
        "cuda list none",
    ] {
        let mut shell = Command::new("sh");
        let shell = shell
            .current_dir(copy.folder())
            .args(["-c", "exec $0 $1 >&-"]);
        let wanted = if line.starts_with("cuda") { 3 } else { 6 };
        ended(shell.args([GPUREPLAY, line])).gave(wanted);
    }
    // With -q nobody misses the output, and /dev/null is no closed output.
    for redirected in [">&-", "</dev/null >/dev/null", "1<>/dev/null"] {
        let line = match redirected {
            ">&-" => "-q run",
            _ => "info",
        };
        let mut shell = Command::new("sh");
        let shell = shell.current_dir(copy.folder()).arg("-c");
        let shell = shell.arg(format!("exec $0 {line} rec {redirected}"));
        ended(shell.arg(GPUREPLAY)).gave(0);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let copy = saxpy();
    for line in ["disasm rec", "verify --rules", "jobs rec"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = ended(copy.words(line.split(' ')).stdout(writer)).gave(0);
        assert_eq!(said, "", "{line}");
    }
}

#[test]
fn without_a_thread_left_the_work_is_done_by_those_there_are() {
    let copy = saxpy();
    // 64 TiB, larger than any stack: no thread starts.
    let stack = (1u64 << 46).to_string();
    let without_threads =
        |line: &str| ended(copy.words(line.split(' ')).env("RUST_MIN_STACK", &stack));
    for line in [
        "run --threads 4 rec",
        "jobs rec",
        "bench --runs 1 rec",
        "diff rec --against model",
        "analyse rec",
    ] {
        let (usual, _) = copy.line(line);
        without_threads(line).gave(usual);
    }
    let (code, said) = without_threads("doctor");
    assert_ne!(code, 101, "{said}");
}

#[test]
fn a_signature_that_is_not_checked_or_broken_is_told() {
    let copy = saxpy();
    copy.line("keygen key").gave(0);
    let lines = ["info rec", "verify rec", "run rec"];
    let said = |wanted: Option<&str>| {
        for line in lines {
            let said = copy.line(line).gave(0);
            match wanted {
                Some(wanted) => assert!(said.contains(wanted), "{line}: {said}"),
                None => assert!(!said.contains("sign"), "{line}: {said}"),
            }
        }
    };
    said(None);
    copy.line("sign --key key.pem rec").gave(0);
    said(Some("not checked (--require-signature KEY)"));
    let path = copy.at("rec/manifest.toml");
    let manifest = fs::read_to_string(&path).unwrap();
    fs::write(&path, manifest.clone() + "# changed\n").unwrap();
    said(Some("signature broken: manifest.toml: "));
    fs::write(&path, manifest).unwrap();
    // `info` and `verify` do not unpack.
    copy.line("pack rec -o rec.pack").gave(0);
    fs::remove_dir_all(copy.at("rec")).unwrap();
    fs::rename(copy.at("rec.pack"), copy.at("rec")).unwrap();
    said(Some("not checked (--require-signature KEY)"));
    let said = copy.line("verify --require-signature key.pub.pem rec");
    let said = said.gave(0);
    assert!(!said.contains("not checked"), "{said}");
    assert_eq!(copy.line("run -q rec").1, "");
}
