// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments at the results of layers.

use gpureplay_compile::{Granularity, Options, Role};
use gpureplay_core::Workspace;
use gpureplay_format::Recording;

use crate::app::*;

#[test]
fn layers_are_found_by_a_references_values_and_run_by_themselves() {
    let (a, b) = (tags(1), tags(2));
    let mut run = App::default().record(&a, &b);
    // A reference computes in double precision and rounds differently.
    let sum = tensor(|i| (a.value(i) + b.value(i)) * (1.0 + 1e-6));
    let total = tensor(|i| 100.0 + a.value(i) + b.value(i));
    let layers = [
        file(Role::Intermediate, "sum", &sum),
        file(Role::Intermediate, "total", &total),
    ];
    run.files.splice(2..2, layers);
    let compiled = run.compiled(&Options {
        granularity: Granularity::Layers,
        ..Options::default()
    });
    assert_eq!(compiled.tensors[2].layout.pieces[0].va, SUM);
    assert_eq!(compiled.tensors[3].layout.pieces[0].va, TOTAL);
    let recording = Recording::parse(&compiled.recording).unwrap();
    let names: Vec<&str> = recording
        .segments()
        .iter()
        .map(|segment| recording.name(segment.name.get()))
        .collect();
    assert_eq!(names, ["setup", "sum", "total", "out"]);

    let mut workspace = Workspace::new();
    let mut values = Values::new(&compiled, &[("a", &a)]);
    let mut session = open(&compiled, &mut workspace, &mut values);
    // The sum of another input takes the place of what the first layer would compute.
    let a2 = tags(3);
    let other = tensor(|i| f64::from(a2.value(i) as f32 + b.value(i) as f32));
    let mut values = Values::new(&compiled, &[("sum", &other)]);
    session.skip_segment(1, &mut values).unwrap();
    session.run_segment(2, &mut values).unwrap();
    session.run_segment(3, &mut values).unwrap();
    assert_eq!(values.out, reference(&a2, &b, 100.0));
    // A new inference does not remember it.
    let mut values = Values::new(&compiled, &[("a", &a)]);
    session.run(&mut values).unwrap();
    assert_eq!(values.out, run.out);
}
