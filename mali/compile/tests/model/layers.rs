// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments at the results of layers.

use std::collections::BTreeSet;

use gpureplay_compile::{Compiled, Granularity, Options, Role, compile_observed};
use gpureplay_core::Workspace;
use gpureplay_format::{Action, Recording};

use crate::app::*;
use crate::driver::{vector_add, vector_add_code};

#[test]
fn layers_are_found_by_a_references_values_and_run_by_themselves() {
    let (a, b) = (tags(1), tags(2));
    let mut run = App::default().record(&a, &b);
    // Double precision rounds differently.
    let sum = tensor(|i| (a.value(i) + b.value(i)) * (1.0 + 1e-6));
    let total = tensor(|i| 100.0 + a.value(i) + b.value(i));
    let layers = [
        file(Role::Intermediate, "sum", &sum),
        file(Role::Intermediate, "total", &total),
    ];
    run.files.splice(2..2, layers);
    let compiled = run.compiled(&by(Granularity::Layers));
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
    let mut values = crate::app::values(&compiled, &[("a", &a)]);
    let view = gpureplay_kit::view(&compiled.recording);
    let mut session = open(&view, &mut workspace, &mut values);
    let a2 = tags(3);
    let other = added(&[&a2, &b]);
    let mut values = crate::app::values(&compiled, &[("sum", &other)]);
    session.skip_segment(1, &mut values).unwrap();
    session.run_segment(2, &mut values).unwrap();
    session.run_segment(3, &mut values).unwrap();
    assert_eq!(crate::app::out(&values), reference(&a2, &b, 100.0));
    let mut values = crate::app::values(&compiled, &[("a", &a)]);
    session.run(&mut values).unwrap();
    assert_eq!(crate::app::out(&values), run.out);
}

pub(crate) fn by(granularity: Granularity) -> Options {
    Options {
        granularity,
        ..Options::default()
    }
}

fn taken(compiled: &Compiled) -> Vec<Vec<&str>> {
    let recording = Recording::parse(&compiled.recording).unwrap();
    let name = |tensor: u32| compiled.tensors[tensor as usize].name.as_str();
    recording.segments()[1..]
        .iter()
        .map(|segment| {
            let actions = recording.segment_actions(segment).flatten();
            actions
                .filter_map(|action| match action {
                    Action::BindInput { tensor } => Some(name(tensor)),
                    _ => None,
                })
                .collect()
        })
        .collect()
}

/// `sum = a + b`, `total = sum + b`, `out = total + last`.
fn branched(last: u64) -> Run {
    let (a, b) = (tags(1), tags(2));
    let mut app = driver(&[A, B, SUM, OUT], &[(TOTAL, 2, false)]);
    let code = CODE + 0x80;
    app.store(code, &vector_add_code());
    app.store(A, a.bytes());
    app.store(B, b.bytes());
    for (from, to) in [([A, B], SUM), ([SUM, B], TOTAL), ([TOTAL, last], OUT)] {
        app.run(POOL, &vector_add(POOL, code, from[0], from[1], to));
    }
    let (first, total) = (added(&[&a, &b]), added(&[&a, &b, &b]));
    let given = [
        (Role::Input, "a", &a),
        (Role::Weight, "b", &b),
        (Role::Intermediate, "sum", &first),
        (Role::Intermediate, "total", &total),
    ];
    Run::finish(app, &given)
}

fn observed(run: &Run, granularity: Granularity, last: u64) -> Compiled {
    let options = by(granularity);
    let reads = |inputs: [u64; 2]| BTreeSet::from([CODE, POOL, inputs[0], inputs[1]]);
    let observe =
        |_: &[u8], _: &[_]| Some(vec![reads([A, B]), reads([SUM, B]), reads([TOTAL, last])]);
    compile_observed(&run.capture(), &run.files, &options, observe).unwrap()
}

#[test]
fn a_part_takes_what_its_jobs_read_however_far_back_that_was_computed() {
    let chain = branched(B);
    let compiled = observed(&chain, Granularity::Layers, B);
    assert_eq!(taken(&compiled), [vec!["a"], vec!["sum"], vec!["total"]]);
    let branch = branched(SUM);
    let compiled = observed(&branch, Granularity::Layers, SUM);
    let expected = [vec!["a"], vec!["sum"], vec!["sum", "total"]];
    assert_eq!(taken(&compiled), expected);
    let layers = by(Granularity::Layers);
    assert_eq!(taken(&chain.compiled(&layers)), expected);

    let (one, two) = (tags(5), tags(6));
    let mut workspace = Workspace::new();
    let mut values = crate::app::values(&compiled, &[("sum", &one), ("total", &two)]);
    let view = gpureplay_kit::view(&compiled.recording);
    let mut session = open(&view, &mut workspace, &mut values);
    session.skip_segment(1, &mut values).unwrap();
    session.skip_segment(2, &mut values).unwrap();
    session.run_segment(3, &mut values).unwrap();
    assert_eq!(crate::app::out(&values), added(&[&one, &two]));
}

#[test]
fn memory_without_a_name_that_crosses_between_parts_becomes_a_tensor() {
    let mut run = branched(SUM);
    run.files.retain(|file| file.role != Role::Intermediate);
    let compiled = observed(&run, Granularity::Jobs(1), SUM);
    let (sum, total) = ("part0.memory0.1", "part1.memory1.1");
    assert_eq!(taken(&compiled), [vec!["a"], vec![sum], vec![sum, total]]);
    let found = &compiled.tensors[3];
    assert_eq!((found.name.as_str(), found.layout.pieces[0].va), (sum, SUM));
    assert_eq!(found.shape, [4096]);
}
