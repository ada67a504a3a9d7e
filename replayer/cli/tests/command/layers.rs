// SPDX-License-Identifier: MIT OR Apache-2.0
//! A branching network: values that partial runs need.

use gpureplay_format::{ElementType, SegmentKind, Tensor as Entry, TensorKind};
use gpureplay_tensors::{Tensor, read_npy, write_npy};

use gpureplay_kit::jobs::{DATA, JOBS, builder, null_chain};

use crate::start::{Ended, Folder, GPUREPLAY, Says};

/// `left` and `right` read `stem`, `both` reads `left` and `right`. The jobs do nothing: what is bound is what the
/// output has, `left` before `right`.
fn recording() -> Vec<u8> {
    let mut builder = builder(1, 1);
    let mut tensor = |name, kind, extent, at| {
        builder.tensor(Entry::dense(
            name,
            kind,
            ElementType::F32,
            &[extent],
            DATA + at,
        ))
    };
    let input = tensor("input", TensorKind::Input, 2, 0);
    let stem = tensor("stem", TensorKind::Intermediate, 2, 16);
    let left = tensor("left", TensorKind::Intermediate, 2, 32);
    let right = tensor("right", TensorKind::Intermediate, 2, 40);
    let out = tensor("out", TensorKind::Output, 4, 32);
    builder.segment("setup", SegmentKind::Setup);
    builder.fill(DATA, 64, 0);
    for (name, takes, gives) in [
        ("stem", &[input][..], stem),
        ("left", &[stem], left),
        ("right", &[stem], right),
        ("both", &[left, right], out),
    ] {
        builder.segment(name, SegmentKind::Run);
        for tensor in takes {
            builder.bind_input(*tensor);
        }
        null_chain(&mut builder, JOBS);
        builder.bind_output(gives);
    }
    builder.finish().unwrap()
}

#[test]
fn all_that_crosses_into_the_layers_that_run_must_be_given() {
    let folder = Folder::default();
    std::fs::write(folder.at("branches.gpr"), recording()).unwrap();
    for (name, values) in [
        ("left", [1.0, 2.0]),
        ("right", [3.0, 4.0]),
        ("stem", [0.0; 2]),
    ] {
        let tensor = Tensor::from_f32(&[2], &values).unwrap();
        write_npy(&folder.at(&format!("{name}.npy")), &tensor).unwrap();
    }
    let out = || -> Vec<f64> {
        let tensor = read_npy(&folder.at("out.npy")).unwrap();
        tensor.values().collect()
    };
    let run = "run branches.gpr --force --layers both --output out.npy";
    let with = |more: &str| folder.ran(GPUREPLAY, &format!("{run} {more}"));

    with("--input left=left.npy --input right=right.npy").ended(0, "those before skipped");
    assert_eq!(out(), [1.0, 2.0, 3.0, 4.0]);

    with("--input left=left.npy").gave(4).says("layers 4 to 4 read right f32[2], which layers before them compute; give it, or run those layers first").says("--recorded-values");
    with("--input left=left.npy --recorded-values").ended(0, "those before skipped");
    assert_eq!(out(), [1.0, 2.0, 0.0, 0.0]);

    with("--input stem=stem.npy").ended(0, "those from left on ran first");
}
