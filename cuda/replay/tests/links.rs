// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links, pipes and escapes in a recording do no harm.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gpureplay_cuda_launch::recording::{Launch, Part, Recording, Writer};
use gpureplay_host::Existing;

const IMAGE: &[u8] = include_bytes!("../../launch/tests/image/golden/sm_90.cubin");
const MANIFEST: &str = include_str!("../../launch/tests/recording/golden/launch.toml");
const MEMORY: [u8; 4096] = [7; 4096];

/// Holds `rec`, and beside it a key and copies of all files.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        let writer = Writer::create(&tree.at("rec")).unwrap();
        writer.add(&launch(&writer)).unwrap();
        let key = gpureplay_sign::SecretKey::from_seed([7; 32]).unwrap();
        fs::write(tree.at("mine.pem"), key.to_pem()).unwrap();
        fs::write(tree.at("mine.pub.pem"), key.public().to_pem()).unwrap();
        assert_eq!(tree.run("sign --key mine.pem rec"), Some(0));
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(tree.at("rec")).arg(tree.at("outside"));
        assert!(copy.status().unwrap().success());
        tree
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// 124: it took too long; `None`: a signal ended it.
    fn run(&self, words: &str) -> Option<i32> {
        Command::new("timeout")
            .arg("60")
            .arg(env!("CARGO_BIN_EXE_gpureplay-cuda"))
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .code()
    }

    fn link_contents(&self, target: impl Fn(&str) -> PathBuf) {
        for name in self.files("rec") {
            let path = self.at("rec").join(&name);
            if path.is_file() && !name.starts_with("launches") {
                fs::remove_file(&path).unwrap();
                symlink(target(&name), &path).unwrap();
            }
        }
    }

    fn files(&self, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.at("").join(&folder)).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.at("")).unwrap().to_owned();
                let inside = name
                    .strip_prefix(folder.components().next().unwrap())
                    .unwrap();
                names.push(inside.display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    folders.push(name);
                }
            }
        }
        names.sort();
        names
    }
}

fn launch(writer: &Writer) -> Launch {
    let mut launch = Launch::parse(MANIFEST).unwrap();
    launch.image.hash = writer.store().put_image(IMAGE).unwrap();
    launch.image.size = IMAGE.len() as u64;
    launch.regions.truncate(1);
    launch.variables.clear();
    launch.regions[0].before = writer.store().put(&MEMORY).unwrap();
    launch.regions[0].after = None;
    launch
}

const READ: [&str; 6] = [
    "list rec",
    "info rec#0",
    "verify rec",
    "verify rec --require-signature mine.pub.pem",
    "diff rec#0 outside#0",
    "sign --key mine.pem --force rec",
];

fn said(tree: &Tree, words: &str, out: Stdio, errors: Stdio) -> (Option<i32>, String) {
    let child = Command::new(env!("CARGO_BIN_EXE_gpureplay-cuda"))
        .args(words.split_whitespace())
        .current_dir(tree.0.path())
        .stdout(out)
        .stderr(errors)
        .spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn what_a_manifest_says_is_shown_as_escapes() {
    let tree = Tree::new();
    let path = tree.at("rec/launches/0.toml");
    let manifest = fs::read_to_string(&path).unwrap();
    let hidden = "\\u001b]0;x\\u0007\\u009b31m\\u202e\\nforged: ";
    for (from, to) in [
        ("format = 1\n", format!("format = 1\n\"{hidden}\" = 1\n")),
        ("kind = \"device\"", format!("kind = \"{hidden}\"")),
    ] {
        assert!(manifest.contains(from));
        fs::write(&path, manifest.replacen(from, &to, 1)).unwrap();
        for words in ["list rec", "info rec#0", "verify rec", "diff rec rec"] {
            let (code, text) = said(&tree, words, Stdio::piped(), Stdio::piped());
            assert_eq!(code, Some(3), "{words}: {text}");
            assert!(
                !text.contains(|c: char| c != '\n' && c.is_control()),
                "{text}"
            );
            assert!(
                !text.contains('\u{202e}') && !text.contains("\nforged"),
                "{text}"
            );
        }
    }
    fs::write(&path, manifest).unwrap();
    let name = "\u{1b}[31m\u{202e}";
    let (code, text) = said(
        &tree,
        &format!("list {name}"),
        Stdio::piped(),
        Stdio::piped(),
    );
    assert_eq!(code, Some(3), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

#[test]
fn closed_and_full_streams_are_no_panic() {
    let tree = Tree::new();
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    for words in ["list rec", "verify rec", "info rec#0", "diff rec outside"] {
        let (code, text) = said(&tree, words, full(), Stdio::piped());
        assert_eq!(code, Some(6), "{words}: {text}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, text) = said(&tree, words, writer.into(), Stdio::piped());
        assert_eq!((code, text.as_str()), (Some(0), ""), "{words}");
    }
    let (code, text) = said(&tree, "list none", Stdio::piped(), full());
    assert_eq!(code, Some(3), "{text}");
}

#[test]
fn a_recording_without_launches_is_not_signed() {
    let tree = Tree::new();
    let words = "verify rec --require-signature mine.pub.pem";
    assert_eq!(tree.run(words), Some(0));
    for file in ["rec/launches/0.toml", "rec/launches/0.sig"] {
        fs::remove_file(tree.at(file)).unwrap();
    }
    assert_eq!(tree.run(words), Some(3));
}

fn needs(name: &str) -> &'static [&'static str] {
    match name.split('/').next().unwrap() {
        "launches" if name.ends_with(".sig") => &READ[3..4],
        "launches" => &READ,
        "images" => &READ[1..4],
        _ => &READ[2..4],
    }
}

/// Replaces each file and directory; returns commands that accept.
fn accepted(put: impl Fn(&Path, &str)) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in Tree::new().files("rec") {
        let tree = Tree::new();
        let path = tree.at("rec").join(&name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        put(&path, &name);
        let outside = tree.files("outside");
        for words in needs(&name) {
            let code = tree.run(words);
            if !matches!(code, Some(3 | 4 | 6)) {
                wrong.push(format!("{name}: {words}: {code:?}"));
            }
        }
        assert_eq!(tree.files("outside"), outside, "{name}");
    }
    wrong
}

#[test]
fn a_recording_without_links_is_read() {
    let tree = Tree::new();
    for words in READ {
        assert_eq!(tree.run(words), Some(0), "{words}");
    }
}

#[test]
fn no_file_or_folder_of_a_recording_is_a_link() {
    let wrong = accepted(|path, name| {
        let up = "../".repeat(name.matches('/').count() + 1);
        symlink(format!("{up}outside/{name}"), path).unwrap();
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_pipe_in_a_recording_is_refused_at_once() {
    let wrong = accepted(|path, _| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_signature_is_written_in_the_recording() {
    let tree = Tree::new();
    let signature = tree.at("rec/launches/0.sig");
    for target in ["../../new", "../../outside/launches/0.sig"] {
        let before = fs::read(tree.at("outside/launches/0.sig")).unwrap();
        fs::remove_file(&signature).unwrap();
        symlink(target, &signature).unwrap();
        assert_eq!(tree.run("sign --key mine.pem --counter 9 rec"), Some(2));
        assert_eq!(
            tree.run("sign --key mine.pem --counter 9 --force rec"),
            Some(0)
        );
        assert!(signature.symlink_metadata().unwrap().is_file());
        assert!(!tree.at("new").exists());
        assert_eq!(fs::read(tree.at("outside/launches/0.sig")).unwrap(), before);
    }
    let recording = Recording::open(&tree.at("rec")).unwrap();
    fs::rename(tree.at("rec/launches"), tree.at("moved")).unwrap();
    symlink("../moved", tree.at("rec/launches")).unwrap();
    assert!(
        recording
            .write_signature(Part::Launch, 1, b"mine", Existing::Replace)
            .is_err()
    );
    assert!(!tree.at("moved/1.sig").exists());
    assert!(recording.numbers().is_err());
}

#[test]
fn a_launch_is_written_in_the_recording() {
    for folder in ["launches", "images", "objects"] {
        let tree = Tree::new();
        let writer = Writer::create(&tree.at("rec")).unwrap();
        let known = launch(&writer);
        let path = tree.at("rec").join(folder);
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(tree.at("empty")).unwrap();
        symlink("../empty", &path).unwrap();
        assert!(Writer::create(&tree.at("rec")).is_err(), "{folder}");
        let refused = match folder {
            "launches" => writer.add(&known).is_err(),
            "images" => writer.store().put_image(b"new").is_err(),
            _ => writer.store().put(b"new").is_err(),
        };
        assert!(refused, "{folder}");
        assert!(tree.files("empty").is_empty(), "{folder}");
    }
}

#[test]
fn links_in_the_place_of_contents_are_replaced_by_files() {
    let tree = Tree::new();
    let writer = Writer::create(&tree.at("rec")).unwrap();
    let region = launch(&writer).regions[0].before;
    tree.link_contents(|_| tree.at("new"));
    launch(&writer);
    assert_eq!(writer.store().get(region, 4096).unwrap(), MEMORY);
    assert_eq!(tree.run("verify rec"), Some(0));
    assert!(!tree.at("new").exists());
}

#[test]
fn links_of_another_recording_are_not_shared() {
    let tree = Tree::new();
    tree.link_contents(|name| tree.at("outside").join(name));
    let writer = Writer::sharing(&tree.at("next"), Some(tree.at("rec"))).unwrap();
    writer.add(&launch(&writer)).unwrap();
    assert_eq!(tree.run("verify next"), Some(0));
    for name in tree.files("next") {
        assert!(!tree.at("next").join(&name).is_symlink(), "{name}");
    }
}
