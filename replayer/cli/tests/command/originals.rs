// SPDX-License-Identifier: MIT OR Apache-2.0
//! `import` of hostile originals: cost, and files outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::start::{Ended, Folder, GPUREPLAY, Says};

const CHAIN: u64 = 0x10_0000;
/// 1 GiB of address space, in KiB.
const MEMORY: &str = "1048576";

struct Original(Folder);

impl Original {
    fn new(jobs: u64, times: usize, status: u32) -> Self {
        let folder = Folder::default();
        let bytes = (64 * jobs).next_multiple_of(4096);
        let mut headers = vec![0; bytes as usize];
        for (index, header) in (1..=jobs).zip(headers.chunks_exact_mut(64)) {
            let next = if index < jobs { CHAIN + 64 * index } else { 0 };
            header[..4].copy_from_slice(&status.to_le_bytes());
            header[16] = 1 | 1 << 1;
            header[24..32].copy_from_slice(&next.to_le_bytes());
        }
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let mut contents = words(&[CHAIN, CHAIN + bytes, bytes / 4096]);
        contents.extend(0x606eu32.to_le_bytes());
        contents.push(1);
        for (va, page) in (CHAIN..).step_by(4096).zip(headers.chunks(4096)) {
            contents.extend(words(&[va, 0x8000]));
            contents.extend(page);
        }
        let mut tables = words(&[4144, 0x1000, 0, 6, 0x1000]);
        tables.extend(words(&[2; 512]));
        tables.extend(words(&[0xff_ffff_ffff]));
        let mut history = format!("0,R,0x0,0x72120000\n0,W,0x18c0,{CHAIN:x}\n");
        history.push_str(&"0,W,0x18e0,1\n".repeat(times));
        let original = Self(folder);
        fs::create_dir(original.at("orig")).unwrap();
        for (name, bytes) in [
            ("gr_io_history", history.into_bytes()),
            ("gr_pgt", tables),
            ("gr_mem_contents", contents),
            ("gr_sync_as", vec![0; 4]),
        ] {
            fs::write(original.at("orig").join(name), bytes).unwrap();
        }
        original
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.at(name)
    }

    /// `@` stands for this directory.
    fn ran(&self, line: &str) -> (i32, String) {
        let limited = ["-c", "ulimit -v $0 && exec \"$@\"", MEMORY, GPUREPLAY];
        self.0.ran(
            "sh",
            &[&limited[..], &line.split(' ').collect::<Vec<_>>()].concat(),
        )
    }
}

const CHECK: &str = "import --plain --check @orig";

#[test]
fn a_chain_that_is_submitted_again_and_again_costs_no_more_than_jobs_may() {
    let original = Original::new(6400, 40, 1);
    original.ran(CHECK).ended(0, "40 chains with 256000 jobs");
    for times in [41, 20_000] {
        let original = Original::new(6400, times, 1);
        original
            .ran(CHECK)
            .ended(3, "more than the 262144 jobs in all");
    }
}

#[test]
fn jobs_that_failed_are_listed_up_to_a_limit_and_counted() {
    let original = Original::new(1000, 200, 0x40);
    let text = original.ran(CHECK).gave(0);
    assert!(text.len() < 8192, "{} bytes", text.len());
    assert_eq!(text.matches("has status 0x40").count(), 16, "{text}");
    text.says("199984 more of these");
    text.says("200001 defects");
    let text = original.ran("import --plain --check --json @orig").gave(0);
    assert!(text.len() < 16384, "{} bytes", text.len());
}

#[test]
fn no_other_files_are_read_than_those_of_the_original() {
    let original = Original::new(1, 1, 1);
    let make_pipe = |at: &Path| {
        let made = Command::new("mkfifo").arg(at).status();
        assert!(made.unwrap().success());
    };
    let files = ["gr_io_history", "gr_pgt", "gr_mem_contents", "gr_sync_as"];
    for name in files {
        let (path, kept) = (original.at("orig").join(name), original.at("kept"));
        fs::rename(&path, &kept).unwrap();
        for target in [Path::new("/dev/zero"), kept.as_path()] {
            symlink(target, &path).unwrap();
            original.ran(CHECK).gave(4).says(name).says("a link");
            fs::remove_file(&path).unwrap();
        }
        make_pipe(&path);
        original.ran(CHECK).gave(4).says(name).says("no file");
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
    original.ran(CHECK).gave(0);
}

#[test]
fn a_recording_is_not_written_through_links() {
    let original = Original::new(1, 1, 1);
    fs::create_dir(original.at("out")).unwrap();
    for name in ["recording.gpr", "manifest.toml", "registers.csv"] {
        let (path, outside) = (original.at("out").join(name), original.at("outside"));
        for there in [None, Some("mine")] {
            symlink(&outside, &path).unwrap();
            if let Some(text) = there {
                fs::write(&outside, text).unwrap();
            }
            original
                .ran("import --plain @orig -o @out")
                .ended(6, "exists");
            assert!(path.symlink_metadata().unwrap().is_symlink(), "{name}");
            original.ran("import --plain @orig -o @out --force").gave(0);
            assert!(!path.symlink_metadata().unwrap().is_symlink(), "{name}");
            assert_eq!(fs::read_to_string(&outside).ok().as_deref(), there);
            for entry in fs::read_dir(original.at("out")).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
        fs::remove_file(&outside).unwrap();
    }
}

#[test]
fn a_description_is_as_long_as_it_may_be() {
    let original = Original::new(1, 1, 1);
    let of = |length: usize| {
        let head = "name = \"x\"\nabout = \"\"\n#";
        let text = head.to_owned() + &"-".repeat(length - head.len());
        fs::write(original.at("x.toml"), text).unwrap();
        original.ran("import --check --description @x.toml @orig")
    };
    of(1 << 20).gave(0);
    of((1 << 20) + 1).ended(4, "longer than 1048576 bytes");
    original
        .ran("import --check --description /dev/zero @orig")
        .ended(4, "longer than 1048576 bytes");
}
