// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of hostile recordings are bounded.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use gpureplay_cuda_launch::recording::{CHUNK, Hash, Launch, Region, RegionKind, Writer};

const MANIFEST: &str = include_str!("../../launch/tests/recording/golden/launch.toml");
/// Enough for any command.
const SPACE_KIB: u64 = 1 << 20;
const EMPTY: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {}\n";

fn recorded(
    image: impl AsRef<[u8]>,
    change: impl FnOnce(&Writer, &mut Launch),
) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    add(&folder, "k", image, change);
    folder
}

fn add(
    folder: &tempfile::TempDir,
    kernel: &str,
    image: impl AsRef<[u8]>,
    change: impl FnOnce(&Writer, &mut Launch),
) {
    let image = image.as_ref();
    let writer = Writer::create(&folder.path().join("rec")).unwrap();
    let mut launch = Launch::parse(MANIFEST).unwrap();
    launch.kernel = kernel.to_owned();
    launch.image.hash = writer.store().put_image(image).unwrap();
    launch.image.size = image.len() as u64;
    launch.regions.clear();
    launch.variables.clear();
    change(&writer, &mut launch);
    writer.add(&launch).unwrap();
}

fn run(folder: &tempfile::TempDir, words: &str) -> Output {
    run_in(SPACE_KIB, folder, words)
}

fn run_in(space_kib: u64, folder: &tempfile::TempDir, words: &str) -> Output {
    Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {space_kib} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_gpureplay-cuda"))
        .args(words.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[test]
fn bounds_beyond_32_bits_are_told() {
    let text = EMPTY.replace("()", "() .maxntid 65536, 65536, 2");
    let said = run(&recorded(text, |_, _| ()), "info rec#0");
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
    // More than the address space, of one chunk.
    const HASHES: usize = CHUNK / 32;
    let size = (HASHES * CHUNK) as u64;
    assert!(size > SPACE_KIB << 10);
    let folder = recorded(EMPTY, |writer, launch| {
        let zeros = vec![0; CHUNK];
        writer.store().put(&zeros).unwrap();
        let list: Vec<u8> = bytes(Hash::of(&zeros)).repeat(HASHES);
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

/// Of blocks of 128 KiB, each of one byte.
fn repeated(byte: u8, blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38];
    for block in 0..blocks {
        let last = u32::from(block + 1 == blocks);
        frame.extend(&((1 << 20) | 2 | last).to_le_bytes()[..3]);
        frame.push(byte);
    }
    frame
}

fn member(frame: &[u8], size: u64) -> Vec<u8> {
    let mut member = vec![0; 64];
    member[0] = 1;
    member[4] = 64;
    member[8..16].copy_from_slice(&(frame.len() as u64).to_le_bytes());
    member[16..20].copy_from_slice(&(frame.len() as u32).to_le_bytes());
    member[28] = 90;
    member[40..48].copy_from_slice(&0x8000u64.to_le_bytes());
    member[56..].copy_from_slice(&size.to_le_bytes());
    member.extend(frame);
    member
}

fn fatbin(members: &[u8]) -> Vec<u8> {
    let mut image = 0xba55_ed50_u32.to_le_bytes().to_vec();
    image.extend([1, 0, 16, 0]);
    image.extend((members.len() as u64).to_le_bytes());
    image.extend(members);
    image
}

#[test]
fn images_of_a_recording_share_an_allowance() {
    let image = |byte, blocks, name: u32| {
        let size = u64::from(blocks) << 17;
        let mut members = member(&repeated(byte, blocks), size);
        let text = format!("{EMPTY}// {name}\n");
        let mut last = member(text.as_bytes(), 0);
        last[40..48].fill(0);
        members.extend(last);
        fatbin(&members)
    };
    for (byte, blocks, limit) in [
        (b' ', 256, "bytes after decompression"),
        (b';', 64, "units of parse work"),
    ] {
        let folder = recorded(EMPTY, |_, _| ());
        for name in 0..4 {
            add(&folder, "k", image(byte, blocks, name), |_, _| ());
        }
        let said = run(&folder, "verify rec");
        assert_eq!(said.status.code(), Some(4), "{said:?}");
        let error = String::from_utf8_lossy(&said.stderr);
        assert!(
            error.contains("the images together have more than") && error.contains(limit),
            "{error}"
        );
    }
}

#[test]
fn one_part_of_an_image_is_held_at_a_time() {
    const MEMBERS: u64 = 40;
    const BLOCKS: u32 = 64;
    let size = u64::from(BLOCKS) << 17;
    let frame = repeated(b' ', BLOCKS);
    // Padding gives the image the length that parts need.
    let padding = vec![0; (MEMBERS * size / 32) as usize];
    let mut body = vec![0; 64];
    body[0] = 64;
    body[4] = 64;
    body[8..16].copy_from_slice(&(padding.len() as u64).to_le_bytes());
    body.extend(padding);
    for _ in 0..MEMBERS {
        body.extend(member(&frame, size));
    }
    let image = fatbin(&body);
    let folder = recorded(&image, |_, _| ());
    let space_kib = (MEMBERS * size / 2) >> 10;
    let said = run_in(space_kib, &folder, "info rec#0");
    assert!(said.status.success(), "{said:?}");
    let said = run_in(space_kib, &folder, "verify rec");
    assert_eq!(said.status.code(), Some(4), "{said:?}");
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(error.contains("kernel"), "{error}");
}

#[test]
fn an_image_that_launches_share_is_read_once_for_all_of_them() {
    let text = EMPTY.replace("k() {}", "k() {}\n.visible .entry l() {}");
    let folder = recorded(&text, |_, _| ());
    for (kernel, code) in [("l", 0), ("m", 4)] {
        add(&folder, kernel, &text, |_, _| ());
        let said = run(&folder, "verify rec");
        assert_eq!(said.status.code(), Some(code), "{said:?}");
        // Nothing is printed before all images are checked.
        assert_eq!(said.stdout.is_empty(), code != 0, "{said:?}");
    }
}

#[test]
fn an_image_of_the_users_is_not_read_beyond_what_one_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let huge = std::fs::File::create(folder.path().join("huge.cubin")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let said = run(&folder, "replace huge.cubin -- true");
    let error = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(4), "{error}");
    assert!(
        error.contains("huge.cubin: longer than 1073741824 bytes"),
        "{error}"
    );
}
