// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output, one-line errors, exit codes.

use std::path::Path;

use gpureplay_format::{
    Access, Builder, ElementType, Piece, RegionKind, SegmentKind, Tensor, TensorKind,
};

use gpureplay_kit::floats;
use gpureplay_kit::jobs::{DATA, JOBS, builder, write_value};

use crate::start::{Ended, Folder, Says, json, ran, ran_in, recordings};
use crate::values;

fn npy(path: &Path, kind: &str, shape: &str, bytes: &[u8]) {
    std::fs::write(path, [&values::npy(kind, shape)[..], bytes].concat()).unwrap();
}

/// The output has five floats: those of `a`, and one that the job, of type `kind`, writes after them.
fn recording(kind: u32) -> Vec<u8> {
    let mut builder = builder(1, 1);
    let shape = [4];
    let a = Tensor::dense("a", TensorKind::Input, ElementType::F32, &shape, DATA);
    let mut out = Tensor::dense("out", TensorKind::Output, ElementType::F32, &[5], DATA);
    out.pieces = vec![Piece::dense(5, ElementType::F32, DATA)];
    let (a, out) = (builder.tensor(a), builder.tensor(out));
    builder.segment("setup", SegmentKind::Setup);
    let job = write_value(kind, 0, DATA + 16, 2.5f32.to_bits());
    builder.upload(JOBS, &job);
    builder.segment("run", SegmentKind::Run);
    builder.fill(DATA + 16, 4, 0);
    builder.bind_input(a);
    builder.rearm(JOBS);
    builder.submit(1, JOBS, 1_000_000);
    builder.bind_output(out);
    builder.finish().unwrap()
}

fn example(kind: u32) -> Folder {
    let folder = Folder::default();
    std::fs::write(folder.at("recording.gpr"), recording(kind)).unwrap();
    std::fs::create_dir_all(folder.at("inputs")).unwrap();
    std::fs::create_dir_all(folder.at("expected")).unwrap();
    npy(
        &folder.at("inputs/a.npy"),
        "<f4",
        "(4,)",
        &floats(&[1., 2., 3., 4.]),
    );
    npy(
        &folder.at("inputs/b.npy"),
        "<f4",
        "(4,)",
        &floats(&[5., 6., 7., 8.]),
    );
    npy(
        &folder.at("expected/a.npy"),
        "<f4",
        "(5,)",
        &floats(&[1., 2., 3., 4., 2.5]),
    );
    let manifest = "version = 1\nname = \"example\"\n\n[outputs.out]\ntolerance = 0.0\n\n[[case]]\n\
        inputs = { a = \"inputs/a.npy\" }\nexpected = { out = \"expected/a.npy\" }\nreference = \"by hand\"\n";
    std::fs::write(folder.at("manifest.toml"), manifest).unwrap();
    folder
}

#[test]
fn the_first_case_runs_without_options() {
    let folder = example(2);
    let directory = folder.path().to_str().unwrap();
    let (code, out, err) = ran(&format!("run {directory}"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("example on Mali-G52"), "{out}");
    out.says("1 job, ");
    out.says(" · matches by hand bit for bit");
}

#[test]
fn another_input_gives_another_output() {
    let folder = example(2);
    let directory = folder.path().to_str().unwrap();
    let output = folder.at("new.npy");
    let input = format!("a={}", folder.at("inputs/b.npy").display());
    let written = output.to_str().unwrap();
    ran(&format!(
        "run {directory} --input {input} --output {written}"
    ))
    .gave(0)
    .says("out: nothing to compare with");
    let bytes = std::fs::read(&output).unwrap();
    assert!(bytes.ends_with(&floats(&[5., 6., 7., 8., 2.5])));

    let expected = folder.at("expected/a.npy");
    let input = folder.at("inputs/b.npy");
    let (input, expected) = (input.to_str().unwrap(), expected.to_str().unwrap());
    ran(&format!("run {directory} -i {input} -e {expected}"))
        .gave(1)
        .says("differs from")
        .says("in 4 of 5 elements");
    let (code, out, _) = ran(&format!("run {directory} -i {input} -e {expected} --json"));
    let report = json(&out);
    assert_eq!(
        (code, &report["outputs"]["out"]["comparison"]["matches"]),
        (1, &false.into())
    );
    assert_eq!((&report["jobs"], &report["chains"]), (&1.into(), &1.into()));
    ran(&format!(
        "run {directory} -i {input} -e {expected} --tolerance 9"
    ))
    .gave(0);
}

#[test]
fn wrong_inputs_say_what_was_expected() {
    let folder = example(2);
    let directory = folder.path().to_str().unwrap();
    npy(
        &folder.at("shape.npy"),
        "<f4",
        "(2, 3)",
        &floats(&[1., 2., 3., 4., 5., 6.]),
    );
    npy(&folder.at("type.npy"), "<i4", "(4,)", &[0; 16]);
    std::fs::write(folder.at("text.npy"), "no numbers here").unwrap();
    npy(&folder.at("short.npy"), "<f4", "(4,)", &[0; 15]);
    let cases = [
        (
            "shape.npy",
            4,
            "expected f32[4] for input `a`, got f32[2,3]",
        ),
        ("type.npy", 4, "expected f32[4] for input `a`, got i32[4]"),
        ("text.npy", 4, "text.npy: "),
        ("short.npy", 4, "short.npy: "),
        ("missing.npy", 4, "missing.npy: "),
    ];
    for (file, expected_code, expected_text) in cases {
        let file = folder.text(file);
        let (code, out, err) = ran(&format!("run {directory} --input {file}"));
        assert_eq!((code, out.as_str()), (expected_code, ""), "{err}");
        err.says(expected_text);
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    ran(&format!("run {directory} --input b=x.npy"))
        .ended(4, "no such tensor; its only input is a f32[4]");
    ran(&format!("run {directory} --input a=x.npy --input a=y.npy")).gave(2);
    std::fs::remove_file(folder.at("manifest.toml")).unwrap();
    ran(&format!("run {directory}"))
        .ended(4, "input a f32[4] has no value; add --input a=FILE.npy");
}

#[test]
fn wrong_recordings_name_the_section_or_the_rule() {
    let folder = example(2);
    let directory = folder.path().to_str().unwrap();
    let file = folder.at("recording.gpr");
    let sound = std::fs::read(&file).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    for command in ["run", "verify", "info", "dump"] {
        let err = ran(&format!("{command} {directory}")).ended(3, "section data");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    std::fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    ran(&format!("verify {directory}")).ended(3, "truncated");
    std::fs::remove_file(&file).unwrap();
    ran(&format!("verify {directory}")).ended(3, "contains no recording.gpr");

    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    builder.region(JOBS, 1, Access(7), RegionKind::Code);
    builder.segment("run", SegmentKind::Run);
    std::fs::write(&file, builder.finish().unwrap()).unwrap();
    ran(&format!("verify {directory}")).ended(
        3,
        "rule write-xor-execute broken by entry 0 of section regions",
    );
}

#[test]
fn a_failed_job_is_named() {
    let folder = example(0);
    let directory = folder.path().to_str().unwrap();
    let (code, out, err) = ran(&format!("run {directory}"));
    assert_eq!((code, out.as_str()), (5, ""));
    err.says("action 4 (segment run");
    err.says("job 0x2000000 on slot 1 failed with JOB_CONFIG_FAULT");
    ran(&format!("run {directory} --device model:g71")).ended(5, "GPU_ID is 0x60a00000");
    ran(&format!("run {directory} --device model:g99")).gave(2);
}

#[test]
fn what_is_inside_is_shown() {
    let folder = example(2);
    let directory = folder.path().to_str().unwrap();
    let out = ran(&format!("info {directory}")).gave(0);
    for text in [
        "input        a    f32[4]",
        "recorded on Mali-G52",
        "run 1        run",
        "1 case",
    ] {
        out.says(text);
    }
    let (code, out, _) = ran(&format!("info --json {directory}"));
    let summary = json(&out);
    assert_eq!(
        (code, &summary["jobs"], &summary["gpu_memory_bytes"]),
        (0, &1.into(), &8192.into())
    );
    let out = ran(&format!("dump {directory}")).gave(0);
    for text in [
        "GPU_ID & 0xffff0000 == 0x72120000",
        "rearm job 0x2000000",
        "bind_input a",
        "rw- data",
    ] {
        out.says(text);
    }
    ran(&format!("verify --rules {directory}"))
        .gave(0)
        .says("sound")
        .says("write-xor-execute");
}

#[test]
fn a_benchmark_reports_phases_and_accesses() {
    let folder = example(2);
    let times = folder.at("times.json");
    let directory = folder.path().to_str().unwrap();
    let (code, out, err) = ran(&format!(
        "bench {directory} --runs 5 -o {}",
        times.display()
    ));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    out.says("4 register accesses, 1 interrupts");
    let report = json(&std::fs::read_to_string(&times).unwrap());
    assert_eq!(report["run_seconds"].as_array().unwrap().len(), 5);
    let loading = |what: &str| report["loading"][what].as_f64().unwrap();
    assert!(loading("read_seconds").is_finite());
    assert!(loading("load_seconds") > 0.0);
    out.says("% of the speed of reading");
    let run = report["percentiles"]["run"]["p50"].as_f64().unwrap();
    let phases = ["restore", "bind", "device", "read"];
    for phase in phases {
        assert_eq!(report["phase_seconds"][phase].as_array().unwrap().len(), 5);
        let within = report["percentiles"][phase]["p50"].as_f64().unwrap();
        assert!(within <= report["summaries"][phase]["maximum"].as_f64().unwrap());
        assert!(within < run, "{report}");
    }
}

#[test]
fn an_answer_that_says_nothing_has_a_remark() {
    let folder = Folder::default();
    let run = |words: &str| ran_in(&recordings(), &format!("run {words}"));
    run("lenet-g52")
        .ended(0, "not trained")
        .says("--weights FILE");
    let picture = folder.path().join("nan.npy");
    npy(
        &picture,
        "<f4",
        "(8, 8)",
        &f32::NAN.to_le_bytes().repeat(64),
    );
    let given = format!("digits-g52 --input {}", picture.display());
    run(&given).ended(0, "input `input`: 64 elements are NaN");
    for quiet in [&format!("{given} --quiet"), "digits-g52"] {
        let (_, _, error) = run(quiet);
        assert_eq!(error, "");
    }
}

#[test]
fn exit_codes_are_told_line_by_line() {
    let out = ran("help exit-codes").gave(0);
    for line in ["  0  done", "  6  a result", "130  interrupted"] {
        assert!(out.lines().any(|found| found.starts_with(line)), "{out}");
    }
}
