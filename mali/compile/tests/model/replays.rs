// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays with other inputs and weights.

use gpureplay_compile::{Granularity, Options, Role};
use gpureplay_format::Recording;
use gpureplay_tensors::Tensor;

use crate::app::*;
use crate::driver::{vector_add, vector_add_code};
use crate::layers::by;

#[test]
fn a_recorded_app_replays_with_other_inputs() {
    let (a, b) = (tags(1), tags(2));
    let run = App::default().record(&a, &b);
    let out = run.out.clone();
    let own = reference(&a, &b, 100.0);
    assert_eq!(out, own, "the model's own run is right");

    let compiled = run.compiled(&Options::default());
    assert_eq!(compiled.tensors[0].layout.pieces[0].va, A);
    assert_eq!(compiled.tensors[2].layout.pieces[0].va, OUT);
    assert_eq!((compiled.summary.run_chains, compiled.summary.jobs), (1, 3));
    let left = Options {
        link: None,
        ..Options::default()
    };
    assert_eq!(run.compiled(&left).summary.run_chains, 3);
    // It lacks the input and GPU results; it has the weight's 4 KiB.
    assert!(
        compiled.recording.len() < 9000,
        "{} bytes",
        compiled.recording.len()
    );
    let contains = |bytes: &[u8]| compiled.recording.windows(16).any(|w| w == &bytes[..16]);
    assert!(!contains(a.bytes()) && !contains(out.bytes()));

    let (a2, a3) = (tags(3), tags(4));
    let results = replay(
        &compiled,
        &[&[("a", &a2)], &[("a", &a3)], &[("a", &a)], &[("a", &a2)]],
    );
    assert_eq!(results[0], reference(&a2, &b, 100.0));
    assert_eq!(results[1], reference(&a3, &b, 100.0));
    assert_eq!(results[2], out);
    assert_eq!(results[3], results[0]);
}

#[test]
fn memory_that_grew_in_a_job_is_there_in_every_replay() {
    let (a, b, a2) = (tags(1), tags(2), tags(3));
    let run = App::default().record_with(&a, &b, |app| app.grows(OUT));
    let compiled = run.compiled(&Options::default());
    let recording = Recording::parse(&compiled.recording).unwrap();
    assert!(recording.region_of(OUT, 4 * COUNT as u64).is_some());
    // A page fault would end the replay: the model's driver maps nothing late.
    let results = replay(&compiled, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results[0], reference(&a2, &b, 100.0));
    assert_eq!(results[1], run.out);
}

#[test]
fn weights_can_be_replaced_or_kept_outside() {
    let (a, b, b2) = (tags(1), tags(2), tags(9));
    let run = App::default().record(&a, &b);
    let inside = run.compiled(&Options::default());
    assert_eq!(
        replay(&inside, &[&[("a", &a), ("b", &b2)]])[0],
        reference(&a, &b2, 100.0)
    );
    let outside = run.compiled(&Options {
        external_weights: true,
        ..Options::default()
    });
    assert!(outside.recording.len() + 3500 < inside.recording.len());
    assert_eq!(replay(&outside, &[&[("a", &a), ("b", &b)]])[0], run.out);
}

#[test]
fn jobs_before_the_input_run_once_and_use_replaced_weights() {
    let (a, b, w) = (tags(1), tags(2), tags(3));
    let mut app = driver(&[A, B, SUM, OUT], &[(TOTAL, 2, false)]);
    app.store(CODE, &vector_add_code());
    app.store(B, b.bytes());
    app.store_floats(TOTAL, [100.0; COUNT]);
    // sum = b + 100, then sum += w, where w comes later than the first job.
    app.run(POOL, &vector_add(POOL, CODE, B, TOTAL, SUM));
    app.store(TOTAL + 4096, w.bytes());
    app.run(POOL, &vector_add(POOL, CODE, SUM, TOTAL + 4096, SUM));
    app.store(A, a.bytes());
    app.run(POOL, &vector_add(POOL, CODE, A, SUM, OUT));
    let run = Run::finish(app, &[(Role::Input, "a", &a), (Role::Weight, "w", &w)]);
    let hundred = tensor(|_| 100.0);
    let expected = |a: &Tensor, w: &Tensor| added(&[a, &added(&[&b, &hundred, w])]);
    assert_eq!(run.out, expected(&a, &w));

    let compiled = run.compiled(&Options::default());
    assert_eq!(
        (compiled.summary.setup_chains, compiled.summary.run_chains),
        (2, 1)
    );
    let (a2, w2) = (tags(5), tags(6));
    let results = replay(&compiled, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results, [expected(&a2, &w), run.out]);
    let results = replay(&compiled, &[&[("a", &a), ("w", &w2)], &[("a", &a2)]]);
    assert_eq!(results, [expected(&a, &w2), expected(&a2, &w2)]);
}

/// `sum = w + w` before the input; then `out = a + w`, something else replaces `w`, and `out` grows by it and
/// `sum`.
fn reuse(a: &Tensor, w: &Tensor, other: &Tensor) -> Run {
    let mut app = driver(&[A, B, SUM, OUT], &[]);
    app.store(CODE, &vector_add_code());
    app.store(B, w.bytes());
    app.run(POOL, &vector_add(POOL, CODE, B, B, SUM));
    app.store(A, a.bytes());
    app.run(POOL, &vector_add(POOL, CODE, A, B, OUT));
    app.store(B, other.bytes());
    app.run(POOL, &vector_add(POOL, CODE, OUT, B, OUT));
    app.run(POOL, &vector_add(POOL, CODE, OUT, SUM, OUT));
    Run::finish(app, &[(Role::Input, "a", a), (Role::Weight, "w", w)])
}

#[test]
fn a_weights_memory_may_hold_something_else_later() {
    let (a, w, other) = (tags(1), tags(3), tags(4));
    let run = reuse(&a, &w, &other);
    let expected = |a: &Tensor, w: &Tensor| added(&[a, w, &other, &added(&[w, w])]);
    assert_eq!(run.out, expected(&a, &w));
    let (a2, w2) = (tags(5), tags(6));
    for external_weights in [false, true] {
        let compiled = run.compiled(&Options {
            external_weights,
            ..Options::default()
        });
        assert_eq!(compiled.summary.setup_chains, 1);
        // A replay must find the weight again, also a replaced one.
        let second = [("a", &a2), ("w", &w2)];
        let results = replay(&compiled, &[&[("a", &a), ("w", &w2)], &second]);
        assert_eq!(results, [expected(&a, &w2), expected(&a2, &w2)]);
    }
    let inside = run.compiled(&Options::default());
    let results = replay(&inside, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results, [expected(&a2, &w), run.out.clone()]);

    let late = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "other", &other),
        file(Role::Output, "out", &run.out),
    ];
    let error = run.refusal(&late);
    assert!(
        error.contains("name it as an input with --reads"),
        "{error}"
    );
}

#[test]
fn the_same_trace_gives_the_same_bytes_and_segments_can_be_cut() {
    let (a, b) = (tags(1), tags(2));
    let run = App::default().record(&a, &b);
    let by_job = by(Granularity::Jobs(1));
    let (one, two) = (run.compiled(&by_job), run.compiled(&by_job));
    assert_eq!(one.recording, two.recording);
    let recording = Recording::parse(&one.recording).unwrap();
    assert_eq!(recording.segments().len(), 4);
    let results = replay(&one, &[&[("a", &a)], &[("a", &a)]]);
    assert_eq!(results, [run.out.clone(), run.out]);
}
