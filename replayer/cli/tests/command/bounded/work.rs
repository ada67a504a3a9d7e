// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, checkpoints and the choice of layers.

use crate::start::{self, recordings};

use super::*;

#[test]
fn checkpoints_take_no_memory_for_what_is_not_used() {
    let mut builder = builder();
    let pages = (1 << 30) / 4096;
    builder.region(0x1_0000_0000, pages, Access::READ_WRITE, RegionKind::Data);
    for number in 0..20 {
        builder.segment("run", SegmentKind::Run);
        if number % 7 == 0 {
            builder.upload(JOBS, &null_job(0));
            builder.submit(1, JOBS, 1000);
        }
    }
    let file = File::of(builder);
    file.run("--retry 1").gave(0);
}

#[test]
fn a_job_that_follows_itself_is_not_tried_again() {
    let mut builder = builder();
    builder.segment("run", SegmentKind::Run);
    builder.upload(JOBS, &null_job(JOBS));
    builder.submit(1, JOBS, 1000);
    let file = File::of(builder);
    // Retries share the work of one run.
    for limit in ["", "--limit-work 100000"] {
        file.run(&format!("--retry 1000000 {limit}"))
            .ended(5, "job 0x2000000 on slot 1")
            .says("needs more work than the limit");
    }
}

#[test]
fn layers_are_chosen_in_time_that_grows_with_the_file() {
    let mut builder = builder();
    let count = 20_000;
    for index in 0..count {
        let (name, va) = (format!("t{index}"), DATA);
        let tensor = Tensor::dense(&name, TensorKind::Intermediate, ElementType::U8, &[1], va);
        builder.tensor(tensor);
    }
    let output = Tensor::dense("y", TensorKind::Output, ElementType::U8, &[1], DATA);
    let output = builder.tensor(output);
    let tensors: Vec<_> = (0..count).map(gpureplay_format::TensorId).collect();
    for chunk in tensors.chunks(100) {
        builder.segment("run", SegmentKind::Run);
        for tensor in chunk {
            builder.bind_input(*tensor);
            builder.bind_output(*tensor);
        }
        null_chain(&mut builder, JOBS);
        builder.bind_output(output);
    }
    let file = File::of(builder);
    for range in ["200", "199..200", "100..150"] {
        let (code, _, error) = file.run(&format!("--layers {range}"));
        assert!(code == 0 || code == 4, "{code} {error}");
    }
}

fn saxpy(command: &str, limit: u64) -> (i32, String, String) {
    let run = format!("{command} saxpy-g52 --threads 1 --limit-work {limit}");
    start::ran_in(&recordings(), &run)
}

#[test]
fn work_on_the_model_has_a_limit_if_none_is_given() {
    for (binds, external) in [(1, false), (1000, false), (1, true)] {
        let mut builder = builder();
        let shape = [4000];
        let tensor = Tensor {
            external,
            ..Tensor::dense("x", TensorKind::Weight, ElementType::U8, &shape, DATA)
        };
        let tensor = builder.tensor(tensor);
        builder.segment("run", SegmentKind::Run);
        (0..binds).for_each(|_| builder.bind_input(tensor));
        builder.upload(JOBS, &null_job(JOBS));
        builder.submit(1, JOBS, 1000);
        let bytes = builder.finish().unwrap();
        // A weight beside the recording counts as one inside.
        let limit = (1 << 28) + 2 * (bytes.len() + if external { 4000 } else { 0 });
        let file = File::new(&bytes);
        let weight = file.0.at("x.bin");
        std::fs::write(&weight, [7; 4000]).unwrap();
        let weight = match external {
            true => format!("--input x={}", weight.display()),
            false => String::new(),
        };
        file.run(&format!("--retry 3 {weight}"))
            .ended(5, &format!("the limit of {limit} clauses"));
    }
}

#[test]
fn work_on_the_model_ends_at_the_limit() {
    let enough = |limit: u64| saxpy("run", limit).0 == 0;
    let (mut less, mut more) = (1, 1 << 24);
    assert!(!enough(less) && enough(more));
    while more - less > 1 {
        let middle = less.midpoint(more);
        match enough(middle) {
            true => more = middle,
            false => less = middle,
        }
    }
    saxpy("run", less)
        .ended(5, &format!("limit of {less} clauses"))
        .says("job 0x")
        .says(" on slot 1 ")
        .says("--limit-work N");
    saxpy("bench", less).ended(5, "--limit-work N");
}

#[test]
fn every_command_that_runs_a_recording_names_the_job_that_needs_too_much_work() {
    let folder = Folder::default();
    let made = folder.at("made.npy");
    for command in [
        "diff --against model",
        "retarget --gpu g31 -o @made.npy",
        "extract --job 0 -o @made.npy",
        "extract --tensor out -o @made.npy",
        "patch --jobs 0 --local 4",
        "tune --jobs 0 --local 4",
        "jobs",
        "analyse",
    ] {
        let recording = shipped("saxpy-g52");
        let line = format!("{command} --limit-work 1 {}", recording.display());
        folder
            .ran(GPUREPLAY, &line)
            .failed("job 0x")
            .says("the limit of 1 clauses")
            .says("--limit-work N");
        assert!(!made.exists(), "{command}");
    }
}

#[test]
fn finding_22_a_benchmark_takes_little_more_memory_than_a_run() {
    let lenet = shipped("lenet-g52");
    let lenet = lenet.display();
    let run = peak(&format!("run {lenet}"));
    let bench = peak(&format!("bench {lenet} --runs 3"));
    assert!(run > 0 && bench < run + (100 << 10), "{run} {bench} KiB");
}
