// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of the specification: one more is refused by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gpureplay_format::checksum::{Checksum, checksum};
use gpureplay_format::{
    Builder, ElementType, RegionKind, Section, SegmentKind, Tensor, TensorKind,
};
use gpureplay_trials::Parts;

use gpureplay_kit::jobs::{self, DATA, JOBS, null_chain};

use crate::start::{Ended, Folder, Says, json, said};
use crate::values;

fn ran(words: &str, path: &Path) -> (i32, String) {
    said(&format!("{words} {}", path.display()))
}

fn builder(pages: u32) -> Builder {
    jobs::builder(0x400, pages)
}

fn simple(input: u32, output: u32) -> Vec<u8> {
    let mut builder = builder(input.max(output).div_ceil(4096));
    let mut tensor = |name, kind, elements| {
        builder.tensor(Tensor::dense(
            name,
            kind,
            ElementType::U8,
            &[elements],
            DATA,
        ))
    };
    let input = tensor("x", TensorKind::Input, input);
    let output = tensor("y", TensorKind::Output, output);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(input);
    null_chain(&mut builder, JOBS);
    builder.bind_output(output);
    builder.finish().unwrap()
}

fn npy(shape: &str, bytes: usize) -> Vec<u8> {
    [values::npy("|u1", shape), vec![0; bytes]].concat()
}

#[test]
fn a_manifest_is_as_long_as_it_may_be() {
    let folder = Folder::default();
    fs::write(folder.at("recording.gpr"), simple(1, 1)).unwrap();
    let of = |length: usize| {
        let head = "version = 1\nname = \"x\"\n#";
        let text = head.to_owned() + &"-".repeat(length - head.len());
        fs::write(folder.at("manifest.toml"), text).unwrap();
        ran("info", folder.path())
    };
    of(1 << 20).gave(0);
    let (code, text) = of((1 << 20) + 1);
    assert!(code == 3 || code == 4, "{code} {text}");
    text.says("longer than 1048576 bytes");
}

#[test]
fn a_pack_has_as_many_files_as_it_may() {
    let folder = Folder::default();
    let path = folder.at("x.pack");
    let beside = |count: u32| (0..count).map(|index| (format!("f/{index}"), vec![1]));
    let key = gpureplay_sign::SecretKey::from_seed([7; 32]).unwrap();
    let recording = simple(1, 1);
    let mut files: BTreeMap<String, Vec<u8>> = beside(4094).collect();
    let signature = gpureplay_sign::sign(&key, 1, &recording, &files).unwrap();
    files.insert(gpureplay_sign::RECORDING.into(), recording);
    files.insert(gpureplay_sign::SIGNATURE.into(), signature);
    assert_eq!(files.len(), 4096);
    let pack = pack_of(&files);
    assert_eq!(gpureplay_sign::pack(&files).as_ref(), Ok(&pack));
    fs::write(&path, pack).unwrap();
    ran("verify", &path).gave(0);
    files.extend(beside(4095));
    assert!(gpureplay_sign::pack(&files).is_err());
    let mut pack = pack_of(&files);
    let refused = |pack: &[u8]| {
        fs::write(&path, pack).unwrap();
        ran("verify", &path).ended(3, "4097 files, more than 4096");
    };
    refused(&pack);
    pack[64..].fill(0xff);
    refused(&pack);
}

/// The recording first, the others by ascending name.
fn pack_of(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let recording = |(name, _): &(&String, &Vec<u8>)| *name == gpureplay_sign::RECORDING;
    let (first, others): (Vec<_>, Vec<_>) = files.iter().partition(recording);
    let all = [first, others].concat();
    let mut names: Vec<u8> = all.iter().flat_map(|(name, _)| name.bytes()).collect();
    let named = names.len() as u32;
    names.resize(names.len().next_multiple_of(8), 0);
    let start = 64 + 32 * all.len() + names.len();
    let (mut rest, mut contents) = (Vec::new(), Vec::new());
    for (name, bytes) in &all {
        let offset = contents.len();
        contents.extend_from_slice(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
        let (place, sum) = (start + offset, checksum(&contents[offset..]));
        for word in [place as u64, bytes.len() as u64, sum, name.len() as u64] {
            rest.extend(word.to_le_bytes());
        }
    }
    rest.extend(names);
    let mut head = [0; 64];
    head[..8].copy_from_slice(b"GPUREPAK");
    head[8..12].copy_from_slice(&1u32.to_le_bytes());
    head[12..16].copy_from_slice(&(all.len() as u32).to_le_bytes());
    head[16..24].copy_from_slice(&((start + contents.len()) as u64).to_le_bytes());
    head[32..36].copy_from_slice(&named.to_le_bytes());
    let sum = Checksum::new().update(&head).update(&rest).value();
    head[24..32].copy_from_slice(&sum.to_le_bytes());
    [&head[..], &rest, &contents].concat()
}

#[test]
fn tables_of_what_is_not_sound_are_shown_up_to_a_limit() {
    let folder = Folder::default();
    let shown = |count: u64, actions: usize| {
        let mut parts = Parts::of(&simple(1, 1)).unwrap();
        let region = |index: u64| {
            let rest = [1, RegionKind::Data.code(), 0, 0];
            [&(index << 12).to_le_bytes()[..], &[0xff; 4], &rest].concat()
        };
        *parts.section(Section::Regions) = (0..count).flat_map(region).collect();
        let action = parts.section(Section::Actions)[..16].to_vec();
        let more = actions - parts.actions().len();
        parts.section(Section::Actions).extend(action.repeat(more));
        parts.segments()[0].actions.set(actions as u32);
        fs::write(folder.at("recording.gpr"), parts.file()).unwrap();
        ran("dump --unverified", folder.path()).ended(0, "not sound: ")
    };
    assert!(!shown(1000, 4).contains("more"), "all entries are shown");
    assert!(shown(1001, 4).contains("… and 1 more"));
    let all = shown(1, 1 << 16);
    let cut = shown(1, (1 << 16) + 1);
    assert!(
        !all.contains("more") && cut.contains("… and 1 more"),
        "{}",
        &cut[cut.len() - 200..]
    );
}

#[test]
fn as_many_jobs_are_listed_as_may_be() {
    let folder = Folder::default();
    let listed = |jobs: u64| {
        let mut builder = builder(1);
        builder.segment("run", SegmentKind::Run);
        // Null jobs of 64 bytes, submitted again from as far back as needed.
        let chain = 1u64 << 12;
        let mut bytes = vec![0; 64 * chain as usize];
        for (index, job) in (1..).zip(bytes.chunks_exact_mut(64)) {
            job[16] = 1 << 1 | 1;
            let next = if index < chain { JOBS + 64 * index } else { 0 };
            job[24..32].copy_from_slice(&next.to_le_bytes());
        }
        builder.upload(JOBS, &bytes);
        let mut left = jobs;
        while left > 0 {
            let some = left.min(chain);
            builder.rearm(JOBS + 64 * (chain - some));
            builder.submit(1, JOBS + 64 * (chain - some), 1000);
            left -= some;
        }
        fs::write(folder.at("recording.gpr"), builder.finish().unwrap()).unwrap();
        ran("jobs --static --csv", folder.path())
    };
    let (code, text) = listed(1 << 16);
    assert_eq!(code, 0, "{}", &text[..text.len().min(400)]);
    listed((1 << 16) + 1).failed("more than 65536 jobs");
}

#[test]
fn answers_are_counted_by_class_for_as_many_classes_as_may_be() {
    let folder = Folder::default();
    let inputs = folder.at("in.npy");
    fs::write(&inputs, npy("(2, 1)", 2)).unwrap();
    let truth = folder.at("truth.npy");
    fs::write(&truth, npy("(2,)", 2)).unwrap();
    let counted = |classes: u32| {
        fs::write(folder.at("recording.gpr"), simple(1, classes)).unwrap();
        let (inputs, truth) = (inputs.display(), truth.display());
        let words = format!("run --json --threads 1 --inputs {inputs} --truth {truth}");
        let text = ran(&words, folder.path()).gave(0);
        let json = json(&text);
        assert_eq!(json["right"], 2);
        json["confusion"].as_array().map(Vec::len)
    };
    assert_eq!(counted(2048), Some(2048));
    assert_eq!(counted(2049), None);
    // Its square would be 128 TiB.
    assert_eq!(counted(1 << 22), None);
}

#[test]
fn a_file_has_as_many_inputs_as_it_may() {
    let folder = Folder::default();
    fs::write(folder.at("recording.gpr"), simple(1, 1)).unwrap();
    let inputs = folder.at("in.npy");
    let count = (1 << 24) + 1;
    fs::write(&inputs, npy(&format!("({count}, 1)"), 0)).unwrap();
    let words = format!("run --threads 1 --inputs {}", inputs.display());
    ran(&words, folder.path()).ended(4, "16777217 inputs, more than the 16777216");
}

#[test]
fn labels_that_do_not_fit_leave_no_results() {
    let folder = Folder::default();
    let mut builder = builder(1);
    let outputs = [("a", 2, 0), ("b", 3, 16)].map(|(name, elements, at)| {
        let kind = TensorKind::Output;
        let tensor = Tensor::dense(name, kind, ElementType::U8, &[elements], DATA + at);
        builder.tensor(tensor)
    });
    builder.segment("run", SegmentKind::Run);
    null_chain(&mut builder, JOBS);
    for output in outputs {
        builder.bind_output(output);
    }
    fs::write(folder.at("recording.gpr"), builder.finish().unwrap()).unwrap();
    fs::write(folder.at("labels"), "no\nyes\n").unwrap();
    let files =
        ["a", "b"].map(|name| format!("{name}={}", folder.at(&format!("{name}.npy")).display()));
    let labels = folder.text("labels");
    let [a, b] = files;
    let words = format!("run --output {a} --output {b} --labels {labels}");
    ran(&words, folder.path()).ended(4, "2 labels, but b has 3 elements");
    assert!(!folder.at("a.npy").exists() && !folder.at("b.npy").exists());
}
