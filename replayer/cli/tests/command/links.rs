// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links lead no command outside of a recording's directory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gpureplay_format::{ElementType, SegmentKind, Tensor, TensorKind};
use gpureplay_library::weights::sha256;

use gpureplay_kit::jobs::{DATA, JOBS, builder, null_chain};

use crate::start::{Ended, Folder, GPUREPLAY, said};

struct Tree(Folder);

const FILES: [&str; 6] = [
    "recording.gpr",
    "recording.sig",
    "manifest.toml",
    "inputs/in.npy",
    "expected/out.npy",
    "weights/w.npy",
];

impl Tree {
    fn new() -> Self {
        let tree = Self(Folder::default());
        let mut builder = builder(1, 1);
        let mut tensor = |name, kind, at: u64| {
            let mut tensor = Tensor::dense(name, kind, ElementType::U8, &[4], DATA + at);
            tensor.external = kind == TensorKind::Weight;
            builder.tensor(tensor)
        };
        let input = tensor("in", TensorKind::Input, 0);
        let weight = tensor("w", TensorKind::Weight, 16);
        let output = tensor("out", TensorKind::Output, 0);
        builder.segment("setup", SegmentKind::Setup);
        builder.bind_input(weight);
        builder.segment("run", SegmentKind::Run);
        builder.bind_input(input);
        null_chain(&mut builder, JOBS);
        builder.bind_output(output);
        let recording = builder.finish().unwrap();
        let value =
            gpureplay_tensors::Tensor::zeros(gpureplay_tensors::ElementType::U8, &[4]).unwrap();
        let value = gpureplay_tensors::encode_npy(&value);
        let manifest = format!(
            "version = 1\nname = \"x\"\n[external.w]\nfile = \"weights/w.npy\"\nsha256 = \"{}\"\n[[case]]\n\
             inputs = {{ in = \"inputs/in.npy\" }}\nexpected = {{ out = \"expected/out.npy\" }}\n",
            sha256(&value)
        );
        for folder in ["inputs", "expected", "weights"] {
            fs::create_dir_all(tree.at("rec").join(folder)).unwrap();
            fs::write(tree.at("rec").join(folder).join("x"), "").unwrap();
        }
        fs::write(tree.at("rec/recording.gpr"), recording).unwrap();
        fs::write(tree.at("rec/manifest.toml"), manifest).unwrap();
        for file in ["inputs/in.npy", "expected/out.npy", "weights/w.npy"] {
            fs::write(tree.at("rec").join(file), &value).unwrap();
        }
        tree.ran("keygen @key").gave(0);
        tree.ran("sign --key @key.pem @rec").gave(0);
        tree.copy("rec", "outside");
        tree
    }

    fn copy(&self, from: &str, to: &str) {
        gpureplay_kit::copy(&self.at(from), &self.at(to));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.at(name)
    }

    /// `@` stands for this tree.
    fn ran(&self, line: &str) -> (i32, String) {
        self.0.ran(GPUREPLAY, line)
    }

    fn refuses(&self, place: &str, target: &Path, commands: &[&str]) {
        let (path, kept) = (self.at("rec").join(place), self.at("kept"));
        fs::rename(&path, &kept).unwrap();
        symlink(target, &path).unwrap();
        for command in commands {
            let (code, text) = self.ran(command);
            assert!([3, 4].contains(&code), "{place}: {command}: {code} {text}");
            assert!(text.contains("link"), "{place}: {command}: {text}");
            for made in ["out.pack", "made", "made.npy"] {
                assert!(!self.at(made).exists(), "{place}: {command}");
            }
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
}

const SIGNED: &str = "run --require-signature @key.pub.pem @rec";
const PACK: &str = "pack @rec -o @out.pack";

#[test]
fn links_are_followed_nowhere() {
    let tree = Tree::new();
    for command in ["run @rec", "verify @rec", "info @rec", SIGNED] {
        tree.ran(command).gave(0);
    }
    let all = [
        "run @rec",
        "info @rec",
        "dump @rec",
        "verify @rec",
        PACK,
        "sign --force --key @key.pem @rec",
        "jobs @rec",
        "analyse @rec",
        "disasm @rec",
        "bench --runs 1 @rec",
        "link @rec -o @made",
        "retarget @rec --gpu g76 -o @made",
        "extract @rec --tensor w -o @made.npy",
        "patch @rec --jobs 0 --local 1 -o @made",
        SIGNED,
    ];
    for file in FILES {
        let commands: &[&str] = match file {
            "recording.sig" => &[PACK, SIGNED],
            _ => &all,
        };
        tree.refuses(file, &tree.at("outside").join(file), commands);
        // Packs and signatures hold files by their own names.
        tree.refuses(file, &tree.at("kept"), commands);
    }
    for folder in ["inputs", "expected", "weights"] {
        tree.refuses(folder, &tree.at("outside").join(folder), &all);
        tree.refuses(
            folder,
            Path::new("../outside/").join(folder).as_path(),
            &all,
        );
    }
    tree.ran(PACK).gave(0);
}

#[test]
fn a_signature_is_not_written_through_a_link() {
    let tree = Tree::new();
    let (path, outside) = (tree.at("rec/recording.sig"), tree.at("outside/new"));
    let signature = fs::read(&path).unwrap();
    for target in [&outside, &tree.at("key.pem")] {
        fs::remove_file(&path).unwrap();
        symlink(target, &path).unwrap();
        let before = fs::read(target).ok();
        tree.ran("sign --key @key.pem @rec").ended(6, "exists");
        assert_eq!(fs::read(target).ok(), before);
        tree.ran("sign --force --key @key.pem @rec").gave(0);
        assert_eq!(fs::read(target).ok(), before);
        assert!(!path.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), signature);
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let tree = Tree::new();
    for file in FILES {
        let (path, kept) = (tree.at("rec").join(file), tree.at("kept"));
        fs::rename(&path, &kept).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let commands: &[&str] = match file {
            "recording.sig" => &[PACK, SIGNED],
            _ => &["run @rec", "verify @rec", PACK, SIGNED],
        };
        for command in commands {
            let (code, text) = tree.ran(command);
            assert!([3, 4].contains(&code), "{file}: {command}: {code} {text}");
            assert!(
                text.contains("no file") || text.contains("not a file"),
                "{file}: {command}: {text}"
            );
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
}

#[test]
fn what_a_directory_is_called_leads_nowhere() {
    // A name that is no text, and one like a tensor file's.
    for name in [&b"rec\xff"[..], b"w.safetensors#rec"] {
        let tree = Tree::new();
        let called = tree.0.path().join(OsStr::from_bytes(name));
        fs::rename(tree.at("rec"), &called).unwrap();
        let ran = || said(&[OsStr::new("run"), called.as_os_str()]);
        ran().ended(0, "bit for bit");
        // A name in a file of tensors; the file of the whole name is a link.
        let manifest = fs::read_to_string(called.join("manifest.toml")).unwrap();
        let input = "inputs/in.safetensors#in.npy";
        let manifest = manifest.replace("inputs/in.npy", input);
        fs::write(called.join("manifest.toml"), manifest).unwrap();
        fs::write(called.join("inputs/in.safetensors"), "none").unwrap();
        symlink(tree.at("outside/inputs/in.npy"), called.join(input)).unwrap();
        symlink(tree.at("outside/inputs/in.npy"), tree.at("w.safetensors")).unwrap();
        ran().ended(4, "inputs/in.safetensors: ");
    }
}

#[test]
fn the_code_of_shaders_is_not_written_through_links() {
    let tree = Tree::new();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/saxpy-g52");
    let line = |options: &str| tree.ran(&format!("disasm {recording} --save @code{options}"));
    line("").gave(0);
    let listed = fs::read_dir(tree.at("code")).unwrap();
    let names: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for path in names {
        let code = fs::read(&path).unwrap();
        let outside = tree.at("outside/new");
        for there in [None, Some(b"mine".as_slice()), Some(&code)] {
            fs::remove_file(&path).unwrap();
            symlink(&outside, &path).unwrap();
            if let Some(bytes) = there {
                fs::write(&outside, bytes).unwrap();
            }
            line("").ended(6, "exists");
            assert!(path.symlink_metadata().unwrap().is_symlink());
            assert_eq!(fs::read(&outside).ok().as_deref(), there);
            line(" --force").gave(0);
            assert!(!path.symlink_metadata().unwrap().is_symlink());
            assert_eq!(fs::read(&path).unwrap(), code);
            assert_eq!(fs::read(&outside).ok().as_deref(), there);
        }
        fs::remove_file(&outside).unwrap();
    }
    // Comparing must not read without end.
    let path = fs::read_dir(tree.at("code")).unwrap().next().unwrap();
    let path = path.unwrap().path();
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    line("").gave(6);
}

#[test]
fn the_directory_itself_may_be_reached_through_links() {
    let tree = Tree::new();
    symlink("rec", tree.at("link")).unwrap();
    for command in ["run @link", "verify @link", "info @link"] {
        tree.ran(command).gave(0);
    }
}
