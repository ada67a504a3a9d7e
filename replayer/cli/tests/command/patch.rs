// SPDX-License-Identifier: MIT OR Apache-2.0
//! `patch` and `tune`.

use std::fs;
use std::path::Path;

use crate::start::{Ended, Folder, Says, json, said as code, shipped};

#[test]
fn a_recording_that_is_read_is_not_replaced() {
    let folder = Folder::default();
    let ours = folder.text("ours");
    gpureplay_kit::copy(&shipped("saxpy-g52"), &folder.at("ours"));
    let key = folder.text("key");
    code(&format!("keygen {key}")).gave(0);
    code(&format!("sign --key {key}.pem {ours}")).gave(0);
    let files = || {
        ["recording.gpr", "recording.sig", "manifest.toml"]
            .map(|name| fs::read(folder.at("ours").join(name)).unwrap())
    };
    let before = files();
    let from = format!("{ours}:0");
    for command in [
        format!("patch {ours} --jobs 0 --local 100"),
        format!("patch saxpy-g52 --jobs 0 --from {from}"),
        format!("extract {ours} --jobs 0"),
        format!("tune {ours} --jobs 0 --local 100,50"),
        format!("tune saxpy-g52 --jobs 0 --variant {from}"),
        format!("link {ours}"),
    ] {
        code(&format!("{command} -o {ours} --force")).ended(2, "this command reads");
        assert_eq!(files(), before);
    }
    let public = format!("{key}.pub.pem");
    let demanded = format!("patch {ours} --jobs 0 --require-signature {public}");
    code(&format!("{demanded} --from saxpy-g52:0")).ended(3, "saxpy-g52");
    code(&format!(
        "patch saxpy-g52 --jobs 0 --local 100 -o {ours} --force"
    ))
    .gave(0);
    assert!(!folder.at("ours/recording.sig").exists());
}

#[test]
fn a_patched_recording_runs_and_says_what_was_done() {
    let folder = Folder::default();
    let out = folder.text("out");
    code(&format!("patch saxpy-g52 --jobs 0 --local 100 -o {out}"))
        .ended(0, "proven to compute the same");
    code(&format!("run {out}")).ended(0, "bit for bit");
    code(&format!("verify --deep {out}")).gave(0);
    let manifest = fs::read_to_string(Path::new(&out).join("manifest.toml")).unwrap();
    manifest.says("work groups of 100x1x1 instead of 8x1x1");
    manifest.says("gpureplay patch saxpy-g52 --jobs 0 ");
    let (_, jobs) = code(&format!("jobs {out} --csv"));
    jobs.says("100x1x1");
    for (change, exit, says) in [
        ("--global 1024", 2, "first address"),
        ("--global 992", 2, "bytes differ"),
        ("--local 7", 2, "no whole number"),
        ("--local 500", 2, "at most 384"),
        ("--shader digits-g52/recording.gpr", 4, "code: "),
        ("--from digits-g52:19", 4, "pointers: "),
        ("--from saxpy-g52:0 --local 8", 2, "cannot be used with"),
        ("--map x=y", 2, "--from"),
        ("--from digits-g52:20", 2, "jobs are 0 to 19"),
        ("", 2, "say what to change"),
    ] {
        let other = folder.text("other");
        code(&format!("patch saxpy-g52 --jobs 0 -o {other} {change}")).ended(exit, says);
        assert!(!Path::new(&other).exists(), "{change}");
    }
    code("patch digits-g52 --jobs hash:98aa --local 1").ended(2, "3 jobs");
}

#[test]
fn each_candidate_has_its_row() {
    let folder = Folder::default();
    let tune = |csv: &str| {
        // One does not fit; one is the recorded one.
        let candidates = "--local 4x4,16x8,32x32,5 --variant saxpy-g52:0 --variant ./digits-g52:11";
        let tune = format!("tune digits-g52 --jobs 11 --runs 2 --table {csv}");
        code(&format!("{tune} {candidates}")).gave(0);
        fs::read_to_string(csv).unwrap()
    };
    let first = tune(&folder.text("one.csv"));
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.len(), 1 + 1 + 6, "{first}");
    for (line, says) in lines[1..].iter().zip([
        ",recorded,",
        ",proven,",
        ",proven,",
        ",refused,",
        ",refused,",
    ]) {
        line.says(says);
    }
    assert!(lines[6].contains(",refused,"), "{}", lines[6]);
    assert!(lines[7].contains(",equal,"), "{}", lines[7]);
    // No candidate does less than the recorded job.
    assert!(!first.contains(",yes,"), "{first}");
    let timeless = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.rsplitn(3, ',').last().unwrap().to_owned());
        lines.collect()
    };
    assert_eq!(timeless(&first), timeless(&tune(&folder.text("two.csv"))));
}

#[test]
fn a_shader_goes_into_files_and_back() {
    let folder = Folder::default();
    let text = code(&[
        "disasm",
        "digits-g52",
        "--jobs",
        "11",
        "--save",
        &folder.text("code"),
    ])
    .gave(0);
    let mut files: Vec<_> = fs::read_dir(folder.text("code"))
        .unwrap()
        .flatten()
        .map(|it| it.path())
        .collect();
    files.sort();
    let [binary, interface] = &files[..] else {
        panic!("{files:?}")
    };
    let file = binary.display().to_string();
    let alone = code(&format!("disasm {file}")).gave(0);
    let body = |text: &str| text.split_once("clause_0").unwrap().1.to_owned();
    assert_eq!(body(&alone), body(&text));
    alone.says("g52: 1 shader");
    code(&format!("disasm {file} --jobs 0")).gave(2);
    let same = folder.text("same");
    let patch = format!("patch digits-g52 --jobs 11 --shader {file}");
    code(&format!("{patch} -o {same}")).gave(0);
    let apart = folder.text("apart");
    code(&format!("link digits-g52 --split -o {apart}")).gave(0);
    let read = |folder: &str| fs::read(Path::new(folder).join("recording.gpr")).unwrap();
    assert!(read(&same) == read(&apart));
    // The interface asks for these, although the code does not.
    let text = fs::read_to_string(interface).unwrap();
    for (from, to, says) in [
        (
            "thread_storage = 0",
            "thread_storage = 64",
            "thread storage: it was compiled for 64 bytes",
        ),
        ("group_storage = 0", "group_storage = 8", "group storage: "),
        ("barrier = false", "barrier = true", "barrier: "),
        (
            "textures = 0",
            "textures = 1",
            "resources: it was compiled for 1 textures",
        ),
        (
            "hash = \"",
            "hash = \"0",
            "code: the file beside it belongs to",
        ),
        ("gpu = \"g52\"", "gpu = \"g71\"", "product: "),
        (
            "version = 1",
            "version = 2",
            "code: the file beside it has version 2",
        ),
    ] {
        text.says(from);
        fs::write(interface, text.replacen(from, to, 1)).unwrap();
        code(&patch).ended(4, says);
    }
    fs::write(interface, "nothing").unwrap();
    code(&patch).ended(4, ".toml");
}

#[test]
fn selectors_choose_what_is_dumped_and_compared() {
    let text = code("info lenet-g52 --actions --jobs layer:conv2").gave(0);
    let (_, jobs) = code("jobs lenet-g52 --jobs layer:conv2 --json");
    let jobs = json(&jobs);
    let jobs = jobs["jobs"].as_array().unwrap();
    let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("job 0x"), jobs.len(), "{text}");
    assert!(jobs.len() > 1 && text.matches(" submit chain ").count() == 1);
    for job in jobs {
        text.says(&format!("job {} COMPUTE", job["address"].as_str().unwrap()));
    }
    assert!(
        text.contains("Renderer state at") && !text.contains("tensors"),
        "{text}"
    );
    code("diff digits-g52 --against model --jobs 3,11").ended(0, "agree after each of 2 chains");
    for command in [
        "info digits-g52 --actions",
        "diff digits-g52 --against model",
        "disasm digits-g52",
    ] {
        for nothing in ["20", "", "kernel:none"] {
            code(&format!("{command} --jobs={nothing}")).gave(2);
        }
    }
}
