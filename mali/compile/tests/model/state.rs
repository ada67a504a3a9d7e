// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks with state.

use gpureplay_compile::{Options, Role};
use gpureplay_core::Workspace;
use gpureplay_format::{Recording, TensorKind};
use gpureplay_tensors::Tensor;

use crate::app::*;

fn totals() -> Tensor {
    tags(9)
}

fn app() -> App {
    App {
        start: Some(totals()),
        ..App::default()
    }
}

fn with_state(a: &Tensor, b: &Tensor) -> Run {
    let mut run = app().record(a, b);
    run.files.push(file(Role::State, "total", &totals()));
    run
}

fn after(total: &Tensor, inputs: &[&Tensor], b: &Tensor) -> Tensor {
    inputs
        .iter()
        .fold(total.clone(), |total, a| added(&[&total, &added(&[a, b])]))
}

#[test]
fn a_run_goes_on_from_what_the_last_one_left() {
    let (a, b) = (tags(1), tags(2));
    let compiled = with_state(&a, &b).compiled(&Options::default());
    let recording = Recording::parse(&compiled.recording).unwrap();
    let (index, entry) = recording.tensor_named("total").unwrap();
    assert_eq!(entry.kind, TensorKind::State.code());
    assert_eq!(recording.header().minor.get(), 1);

    let others = [tags(3), tags(4), tags(5)];
    let mut workspace = Workspace::new();
    let mut values = crate::app::values(&compiled, &[("a", &a)]);
    let view = gpureplay_kit::view(&compiled.recording);
    let mut session = open(&view, &mut workspace, &mut values);
    let mut seen = Vec::new();
    for input in &others {
        seen.push(input);
        let mut values = crate::app::values(&compiled, &[("a", input)]);
        session.run(&mut values).unwrap();
        let total = after(&totals(), &seen, &b);
        let out = added(&[&total, &b]);
        assert_eq!(crate::app::out(&values), out, "after {} runs", seen.len());
        let mut bytes = vec![0; total.bytes().len()];
        session.read_tensor(index, &mut bytes).unwrap();
        assert_eq!(bytes, total.bytes());
    }
    let mine = tags(20);
    let mut values = crate::app::values(&compiled, &[("a", &a), ("total", &mine)]);
    session.run(&mut values).unwrap();
    let total = after(&mine, &[&a], &b);
    let out = added(&[&total, &b]);
    assert_eq!(crate::app::out(&values), out);
}

#[test]
fn a_state_that_no_job_changes_is_refused() {
    let (a, b) = (tags(1), tags(2));
    let mut run = with_state(&a, &b);
    run.files.retain(|file| file.name != "b");
    run.files.push(file(Role::State, "b", &b));
    let text = run.refusal(&run.files);
    assert!(text.contains("no job changes it"), "{text}");
}

#[test]
fn a_state_that_the_app_writes_during_a_run_is_refused() {
    let (a, b) = (tags(1), tags(2));
    let mut run = app().record_with(&a, &b, |driver| driver.store(TOTAL, tags(30).bytes()));
    run.files.push(file(Role::State, "total", &totals()));
    let text = run.refusal(&run.files);
    assert!(text.contains("state 'total'"), "{text}");
    assert!(text.contains("before job 2"), "{text}");
}
