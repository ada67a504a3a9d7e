// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording of strangers may cost, and numbers at which sums and products go wrong.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use gpureplay_cuda_recording::{CHUNK, Hash, Launch, Region, RegionKind, Writer};

const MANIFEST: &str = include_str!("../../recording/tests/golden/launch.toml");
/// Address space of a command, in KiB: more than enough for it.
const SPACE_KIB: u64 = 1 << 20;
const EMPTY: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {}\n";

/// A recording of one launch of the kernel `k` with an image, changed before it is written.
fn recorded(image: &str, change: impl FnOnce(&Writer, &mut Launch)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(&folder.path().join("rec")).unwrap();
    let mut launch = Launch::parse(MANIFEST).unwrap();
    launch.kernel = "k".to_owned();
    launch.image.hash = writer.store().put_image(image.as_bytes()).unwrap();
    launch.image.size = image.len() as u64;
    launch.regions.clear();
    launch.variables.clear();
    change(&writer, &mut launch);
    writer.add(&launch).unwrap();
    folder
}

/// A command in a bounded address space.
fn run(folder: &tempfile::TempDir, words: &str) -> Output {
    Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {SPACE_KIB} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_gpureplay-cuda"))
        .args(words.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[test]
fn bounds_beyond_32_bits_are_told() {
    let text = EMPTY.replace("()", "() .maxntid 65536, 65536, 2");
    let said = run(&recorded(&text, |_, _| ()), "info rec#0");
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{said:?}");
    assert!(
        out.contains("bounds      at most 8589934592 threads of a block\n"),
        "{out}"
    );
}

fn bytes(hash: Hash) -> Vec<u8> {
    let digits = hash.to_string();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn memory_of_any_size_is_checked_by_chunks() {
    // More than the address space: the same chunk again and again.
    const HASHES: usize = CHUNK / 32;
    let size = (HASHES * CHUNK) as u64;
    assert!(size > SPACE_KIB << 10);
    let folder = recorded(EMPTY, |writer, launch| {
        let zeros = vec![0; CHUNK];
        writer.store().put(&zeros).unwrap();
        let list: Vec<u8> = bytes(Hash::of(&zeros)).repeat(HASHES);
        // A list is kept as a chunk is.
        writer.store().put(&list).unwrap();
        let before = Hash::of(&list);
        launch.regions.push(Region {
            address: 1 << 30,
            size,
            kind: RegionKind::Device,
            before,
            after: None,
        });
    });
    let said = run(&folder, "verify rec");
    assert!(said.status.success(), "{said:?}");
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(out.contains("1 launches, 2.15 GB of memory"), "{out}");
}
