// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces and tensors of which no recording can be made.

use gpureplay_compile::{Capture, Role};
use gpureplay_io::{ElementType, Tensor};

use crate::app::*;

#[test]
fn tensors_that_are_not_there_are_explained() {
    let (a, b) = (tags(1), tags(2));
    let run = App::default().record(&a, &b);
    let error = |role, tensor: &Tensor| run.refusal(&[file(role, "x", tensor)]);
    let text = error(Role::Input, &tags(77));
    assert!(
        text.contains("input 'x' (f32 [32, 32])") && text.contains("nowhere"),
        "{text}"
    );
    let text = error(Role::Input, &tensor(|_| 1.0));
    assert!(
        text.contains("gpureplay tag --shape 32,32 --dtype f32"),
        "{text}"
    );
    let text = error(Role::Output, &a);
    assert!(text.contains("output 'x'"), "{text}");
    // The GPU's results are not an input.
    let sum = tensor(|i| f64::from(a.value(i) as f32 + b.value(i) as f32));
    let text = error(Role::Input, &sum);
    assert!(
        text.contains("nowhere in memory that the app wrote"),
        "{text}"
    );
    // What the app wrote is no result of a job.
    let text = error(Role::Intermediate, &a);
    assert!(
        text.contains("intermediate 'x'") && text.contains("the GPU wrote"),
        "{text}"
    );
    let zeros = Tensor::zeros(ElementType::F32, &[32, 32]).unwrap();
    let text = error(Role::Intermediate, &zeros);
    assert!(text.contains("all zero"), "{text}");
}

#[test]
fn incomplete_traces_are_refused() {
    let trace = App::default().record(&tags(1), &tags(2)).trace;
    let text = |bytes: &[u8]| Capture::read(bytes).unwrap_err().to_string();
    assert!(text(&trace[..trace.len() - 40]).contains("no END"));
    assert!(text(&[&trace[..120], &trace[152..]].concat()).contains("missing"));
    assert!(text(b"GPUREPLYx").contains("not a raw trace"));
}
