// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small driver submits real jobs to the GPU model and logs what it does; the trace is compiled, and the recording is
//! replayed with other inputs.
#![allow(clippy::unwrap_used)]

mod support;

use gpureplay_compile::{
    Capture, Compiled, Granularity, Options, Role, TensorFile, compile, differential,
};
use gpureplay_core::{Limits, Session, Tensors, Workspace, verify};
use gpureplay_format::Recording;
use gpureplay_on_model::OnModel;
use gpureplay_tensor::{DType, Tensor, tag_tensor};
use mali_model::Profile;

use support::{Driver, vector_add, vector_add_code};

const CODE: u64 = 0x200_0000;
const POOL: u64 = 0x210_0000;
const LATE_POOL: u64 = 0x220_0000;
const A: u64 = 0x300_0000;
const B: u64 = 0x310_0000;
const SUM: u64 = 0x320_0000;
const TOTAL: u64 = 0x330_0000;
const OUT: u64 = 0x340_0000;
const COUNT: usize = 1024;

/// What the app computes: `sum = a + b`, `total += sum`, `out = total + b`.
fn reference(a: &Tensor, b: &Tensor, total: f32) -> Tensor {
    let value = |t: &Tensor, i| t.value(i) as f32;
    Tensor::from_fn(DType::F32, &[32, 32], |i| {
        let sum = value(a, i) + value(b, i);
        f64::from(total + sum + value(b, i))
    })
    .unwrap()
}

/// One run of the app on the model, recorded.
fn record(a: &Tensor, b: &Tensor) -> (Vec<u8>, Tensor) {
    record_at(a, b, SUM)
}

/// The same with the intermediate result at another address.
fn record_at(a: &Tensor, b: &Tensor, sum: u64) -> (Vec<u8>, Tensor) {
    record_with(a, b, sum, |_| {})
}

/// The same with something more between the second job and the last one.
fn record_with(
    a: &Tensor,
    b: &Tensor,
    sum: u64,
    between: impl FnOnce(&mut Driver),
) -> (Vec<u8>, Tensor) {
    record_of(a, b, [sum, TOTAL], COUNT, between)
}

/// The same with the running total at another address too, and a second job of so many work-items.
fn record_of(
    a: &Tensor,
    b: &Tensor,
    [sum, total]: [u64; 2],
    items: usize,
    between: impl FnOnce(&mut Driver),
) -> (Vec<u8>, Tensor) {
    let buffers = [
        (CODE, 1, true),
        (POOL, 4, false),
        (LATE_POOL, 1, false),
        (A, 1, false),
        (B, 1, false),
        (sum, 1, false),
        (total, 2, false),
        (OUT, 1, false),
    ];
    let mut app = Driver::probe(&buffers);
    app.store(CODE + 0x80, &vector_add_code());
    app.store(A, a.bytes());
    app.store(B, b.bytes());
    app.store_floats(total, [100.0; COUNT]);
    let code = CODE + 0x80;
    app.store(POOL, &vector_add(POOL, code, A, B, sum));
    app.submit(POOL);
    // The same descriptor memory is used again.
    let mut second = vector_add(POOL, code, total, sum, total);
    let invocation = (items as u32 - 1).to_le_bytes();
    second[0x20..0x24].copy_from_slice(&invocation);
    app.store(POOL, &second);
    app.submit(POOL);
    between(&mut app);
    app.store(LATE_POOL, &vector_add(LATE_POOL, code, total, B, OUT));
    app.submit(LATE_POOL);
    let out = Tensor::new(DType::F32, &[32, 32], app.load(OUT, 4 * COUNT)).unwrap();
    (app.finish(), out)
}

fn file(role: Role, name: &str, tensor: &Tensor) -> TensorFile {
    TensorFile {
        role,
        name: name.into(),
        tensor: tensor.clone(),
    }
}

struct Values {
    names: Vec<String>,
    inputs: Vec<Option<Tensor>>,
    /// Outputs that are wanted; others are not read.
    outputs: Vec<&'static str>,
    out: Tensor,
}

impl Values {
    fn new(compiled: &Compiled, inputs: &[(&str, &Tensor)]) -> Values {
        let names: Vec<String> = compiled.tensors.iter().map(|t| t.name.clone()).collect();
        let of = |name: &String| {
            inputs
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, t)| (*t).clone())
        };
        let inputs = names.iter().map(of).collect();
        Values {
            names,
            inputs,
            outputs: Vec::new(),
            out: Tensor::zeros(DType::F32, &[32, 32]).unwrap(),
        }
    }
}

impl Tensors for Values {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        self.inputs[tensor as usize].as_ref().map(Tensor::bytes)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        if !self.outputs.is_empty() && !self.outputs.contains(&self.names[tensor as usize].as_str())
        {
            return None;
        }
        assert_eq!(self.names[tensor as usize], "out");
        Some(self.out.bytes_mut())
    }
}

/// Replays on a fresh model: one run per set of inputs, weights from the first.
fn replay(compiled: &Compiled, runs: &[&[(&str, &Tensor)]]) -> Vec<Tensor> {
    let recording = Recording::parse(&compiled.recording).unwrap();
    let verified = verify(recording, &Limits::DEFAULT).unwrap();
    let gpu = OnModel::new(
        Profile::by_name("g52").unwrap(),
        mali_model::Options::default(),
    )
    .unwrap();
    let mut workspace = Workspace::new();
    let mut weights = Values::new(compiled, runs[0]);
    let options = gpureplay_core::Options::default();
    let mut session = Session::open(gpu, verified, &mut workspace, options, &mut weights).unwrap();
    runs.iter()
        .map(|inputs| {
            let mut values = Values::new(compiled, inputs);
            session.run(&mut values).unwrap();
            values.out
        })
        .collect()
}

fn tags(seed: u64) -> Tensor {
    tag_tensor(DType::F32, &[32, 32], seed).unwrap()
}

#[test]
fn a_recorded_app_replays_with_other_inputs() {
    let (a, b) = (tags(1), tags(2));
    let (trace, out) = record(&a, &b);
    assert_eq!(
        out,
        reference(&a, &b, 100.0),
        "the model's own run is right"
    );

    let capture = Capture::read(trace.as_slice()).unwrap();
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "b", &b),
        file(Role::Output, "out", &out),
    ];
    let compiled = compile(&capture, &files, &Options::default()).unwrap();
    assert_eq!(compiled.tensors[0].layout.pieces[0].va, A);
    assert_eq!(compiled.tensors[2].layout.pieces[0].va, OUT);
    assert_eq!((compiled.summary.run_chains, compiled.summary.jobs), (3, 3));
    // Neither the input nor the bytes of what the GPU computed are in it; the weight's 4 KiB are.
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
    let (trace, out) = record_with(&a, &b, SUM, |app| app.grows(OUT));
    let capture = Capture::read(trace.as_slice()).unwrap();
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "b", &b),
        file(Role::Output, "out", &out),
    ];
    let compiled = compile(&capture, &files, &Options::default()).unwrap();
    let recording = Recording::parse(&compiled.recording).unwrap();
    assert!(recording.region_of(OUT, 4 * COUNT as u64).is_some());
    // The model's page fault would end the replay: its driver maps nothing late.
    let results = replay(&compiled, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results[0], reference(&a2, &b, 100.0));
    assert_eq!(results[1], out);
}

#[test]
fn weights_can_be_replaced_or_kept_outside() {
    let (a, b, b2) = (tags(1), tags(2), tags(9));
    let (trace, out) = record(&a, &b);
    let capture = Capture::read(trace.as_slice()).unwrap();
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "b", &b),
        file(Role::Output, "out", &out),
    ];
    let inside = compile(&capture, &files, &Options::default()).unwrap();
    assert_eq!(
        replay(&inside, &[&[("a", &a), ("b", &b2)]])[0],
        reference(&a, &b2, 100.0)
    );
    let outside = compile(
        &capture,
        &files,
        &Options {
            external_weights: true,
            ..Options::default()
        },
    )
    .unwrap();
    assert!(outside.recording.len() + 3500 < inside.recording.len());
    assert_eq!(replay(&outside, &[&[("a", &a), ("b", &b)]])[0], out);
}

#[test]
fn jobs_before_the_input_run_once_and_use_replaced_weights() {
    let (a, b, w) = (tags(1), tags(2), tags(3));
    let buffers = [
        (CODE, 1, true),
        (POOL, 4, false),
        (A, 1, false),
        (B, 1, false),
        (SUM, 1, false),
        (TOTAL, 2, false),
        (OUT, 1, false),
    ];
    let mut app = Driver::probe(&buffers);
    app.store(CODE, &vector_add_code());
    app.store(B, b.bytes());
    app.store_floats(TOTAL, [100.0; COUNT]);
    // What a framework prepares: sum = b + 100, then sum += w, where w comes later than the first job.
    app.store(POOL, &vector_add(POOL, CODE, B, TOTAL, SUM));
    app.submit(POOL);
    app.store(TOTAL + 4096, w.bytes());
    app.store(POOL, &vector_add(POOL, CODE, SUM, TOTAL + 4096, SUM));
    app.submit(POOL);
    app.store(A, a.bytes());
    app.store(POOL, &vector_add(POOL, CODE, A, SUM, OUT));
    app.submit(POOL);
    let out = Tensor::new(DType::F32, &[32, 32], app.load(OUT, 4 * COUNT)).unwrap();
    let trace = app.finish();
    let expected = |a: &Tensor, w: &Tensor| {
        let value = |t: &Tensor, i| t.value(i) as f32;
        let sum = |i| value(a, i) + (value(&b, i) + 100.0 + value(w, i));
        Tensor::from_fn(DType::F32, &[32, 32], |i| f64::from(sum(i))).unwrap()
    };
    assert_eq!(out, expected(&a, &w));

    let capture = Capture::read(trace.as_slice()).unwrap();
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "w", &w),
        file(Role::Output, "out", &out),
    ];
    let compiled = compile(&capture, &files, &Options::default()).unwrap();
    assert_eq!(
        (compiled.summary.setup_chains, compiled.summary.run_chains),
        (2, 1)
    );
    let (a2, w2) = (tags(5), tags(6));
    let results = replay(&compiled, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results, [expected(&a2, &w), out]);
    let results = replay(&compiled, &[&[("a", &a), ("w", &w2)], &[("a", &a2)]]);
    assert_eq!(results, [expected(&a, &w2), expected(&a2, &w2)]);
}

/// `sum = w + w` before the input comes; then `out = a + w`, something else takes the place of `w`, and `out` grows by it and `sum`.
fn reuse(a: &Tensor, w: &Tensor, other: &Tensor) -> (Vec<u8>, Tensor) {
    let buffers = [
        (CODE, 1, true),
        (POOL, 4, false),
        (A, 1, false),
        (B, 1, false),
        (SUM, 1, false),
        (OUT, 1, false),
    ];
    let mut app = Driver::probe(&buffers);
    app.store(CODE, &vector_add_code());
    app.store(B, w.bytes());
    app.store(POOL, &vector_add(POOL, CODE, B, B, SUM));
    app.submit(POOL);
    app.store(A, a.bytes());
    app.store(POOL, &vector_add(POOL, CODE, A, B, OUT));
    app.submit(POOL);
    app.store(B, other.bytes());
    app.store(POOL, &vector_add(POOL, CODE, OUT, B, OUT));
    app.submit(POOL);
    app.store(POOL, &vector_add(POOL, CODE, OUT, SUM, OUT));
    app.submit(POOL);
    let out = Tensor::new(DType::F32, &[32, 32], app.load(OUT, 4 * COUNT)).unwrap();
    (app.finish(), out)
}

#[test]
fn a_weights_memory_may_hold_something_else_later() {
    let (a, w, other) = (tags(1), tags(3), tags(4));
    let (trace, out) = reuse(&a, &w, &other);
    let expected = |a: &Tensor, w: &Tensor| {
        let value = |t: &Tensor, i| t.value(i) as f32;
        let sum = |i| (value(a, i) + value(w, i)) + value(&other, i) + (value(w, i) + value(w, i));
        Tensor::from_fn(DType::F32, &[32, 32], |i| f64::from(sum(i))).unwrap()
    };
    assert_eq!(out, expected(&a, &w));
    let capture = Capture::read(trace.as_slice()).unwrap();
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "w", &w),
        file(Role::Output, "out", &out),
    ];
    let (a2, w2) = (tags(5), tags(6));
    for external_weights in [false, true] {
        let options = Options {
            external_weights,
            ..Options::default()
        };
        let compiled = compile(&capture, &files, &options).unwrap();
        assert_eq!(compiled.summary.setup_chains, 1);
        // The second run must find the weight again, the replaced one if it was replaced.
        let second = [("a", &a2), ("w", &w2)];
        let results = replay(&compiled, &[&[("a", &a), ("w", &w2)], &second]);
        assert_eq!(results, [expected(&a, &w2), expected(&a2, &w2)]);
    }
    let inside = compile(&capture, &files, &Options::default()).unwrap();
    let results = replay(&inside, &[&[("a", &a2)], &[("a", &a)]]);
    assert_eq!(results, [expected(&a2, &w), out.clone()]);

    // A tensor that the app writes in every run is no weight.
    let late = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "other", &other),
        file(Role::Output, "out", &out),
    ];
    let error = compile(&capture, &late, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("name it as an input"), "{error}");
}

#[test]
fn the_same_trace_gives_the_same_bytes_and_segments_can_be_cut() {
    let (a, b) = (tags(1), tags(2));
    let (trace, out) = record(&a, &b);
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let by_job = Options {
        granularity: Granularity::Jobs(1),
        ..Options::default()
    };
    let build = || compile(&Capture::read(trace.as_slice()).unwrap(), &files, &by_job).unwrap();
    let (one, two) = (build(), build());
    assert_eq!(one.recording, two.recording);
    assert_eq!(
        Recording::parse(&one.recording).unwrap().segments().len(),
        4
    );
    assert_eq!(
        replay(&one, &[&[("a", &a)], &[("a", &a)]]),
        [out.clone(), out]
    );
}

#[test]
fn two_runs_differ_in_their_inputs_only() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let (first, out) = record(&a, &b);
    let (second, out2) = record(&a2, &b);
    let (first, second) = (
        Capture::read(first.as_slice()).unwrap(),
        Capture::read(second.as_slice()).unwrap(),
    );
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let found = compile(&first, &files, &Options::default())
        .unwrap()
        .tensors;
    let others = [("a".to_string(), a2.clone()), ("out".to_string(), out2)];
    let agreement = differential::compare(&first, &found, &second, &others).unwrap();
    assert_eq!(agreement.tensors, 2);
    assert!(agreement.explained_bytes > 3000 && agreement.same_bytes > 4096);

    // Without the input bound, its bytes are not explained.
    let error = differential::compare(&first, &found[1..], &second, &others)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("before job 0") && error.contains("0x3000000"),
        "{error}"
    );

    // A weight that changed with the input is not explained either.
    let (third, _) = record(&a2, &tags(6));
    let third = Capture::read(third.as_slice()).unwrap();
    let error = differential::compare(&first, &found, &third, &others[..1])
        .unwrap_err()
        .to_string();
    assert!(error.contains("0x3100000"), "{error}");
}

#[test]
fn buffers_may_lie_elsewhere_in_the_second_run() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let (first, out) = record(&a, &b);
    let (second, out2) = record_at(&a2, &b, 0x328_0000);
    let (first, second) = (
        Capture::read(first.as_slice()).unwrap(),
        Capture::read(second.as_slice()).unwrap(),
    );
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let found = compile(&first, &files, &Options::default())
        .unwrap()
        .tensors;
    let others = [("a".to_string(), a2.clone()), ("out".to_string(), out2)];
    let agreement = differential::compare(&first, &found, &second, &others).unwrap();
    assert_eq!(agreement.renamed_addresses, 2);

    // The app fills this one before the first job, and the second job is the first to name it.
    const ELSEWHERE: u64 = 0x338_0000;
    let (third, out2) = record_of(&a2, &b, [SUM, ELSEWHERE], COUNT, |_| {});
    let third = Capture::read(third.as_slice()).unwrap();
    let others = [("a".to_string(), a2.clone()), ("out".to_string(), out2)];
    differential::compare(&first, &found, &third, &others).unwrap();

    // Other values in it are a difference.
    let (other, out2) = record_of(&a2, &b, [SUM, ELSEWHERE], COUNT, |app| {
        app.store(ELSEWHERE + 8, &[1; 8])
    });
    let other = Capture::read(other.as_slice()).unwrap();
    let others = [("a".to_string(), a2), ("out".to_string(), out2)];
    let error = differential::compare(&first, &found, &other, &others)
        .unwrap_err()
        .to_string();
    assert!(error.contains("differ in 8 bytes"), "{error}");
}

#[test]
fn a_place_that_depends_on_the_input_is_refused() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let run = |a: &Tensor, place: u64| {
        let (trace, out) = record_with(a, &b, SUM, |app| app.store(place, &[7; 8]));
        (Capture::read(trace.as_slice()).unwrap(), out)
    };
    // Both runs have both places, and write the same into one of them.
    let ((first, out), (second, out2)) = (run(&a, POOL + 0x1000), run(&a2, POOL + 0x2000));
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let found = compile(&first, &files, &Options::default())
        .unwrap()
        .tensors;
    let others = [("a".to_string(), a2), ("out".to_string(), out2)];
    let error = differential::compare(&first, &found, &second, &others)
        .unwrap_err()
        .to_string();
    assert!(error.contains("differ in 16 bytes"), "{error}");
}

#[test]
fn new_memory_and_memory_that_is_used_again_are_alike() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let (first, out) = record(&a, &b);
    let first = Capture::read(first.as_slice()).unwrap();
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let found = compile(&first, &files, &Options::default())
        .unwrap()
        .tensors;
    let compare = |between: &dyn Fn(&mut Driver)| {
        let (second, out2) = record_with(&a2, &b, SUM, between);
        let second = Capture::read(second.as_slice()).unwrap();
        let others = [("a".to_string(), a2.clone()), ("out".to_string(), out2)];
        differential::compare(&first, &found, &second, &others).map(drop)
    };
    // The second run's buffer was mapped anew; the first one's still holds what the GPU wrote before.
    compare(&|app| app.renew(SUM, 1)).unwrap();
    // An app that writes something is another matter, into new memory or not.
    let error = compare(&|app| app.store(SUM, &[0; 4096])).unwrap_err();
    assert!(error.to_string().contains("before job 2"), "{error}");
    let error = compare(&|app| {
        app.renew(SUM, 1);
        app.store(SUM + 8, &[1; 8]);
    });
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("differ in 8 bytes") && error.contains("0x3200008"),
        "{error}"
    );
}

#[test]
fn work_that_depends_on_the_input_is_refused() {
    let (a, a2, b) = (tags(1), tags(5), tags(2));
    let (first, out) = record(&a, &b);
    let first = Capture::read(first.as_slice()).unwrap();
    let files = [file(Role::Input, "a", &a), file(Role::Output, "out", &out)];
    let found = compile(&first, &files, &Options::default())
        .unwrap()
        .tensors;
    let refusal = |between: &dyn Fn(&mut Driver)| {
        let (second, out2) = record_with(&a2, &b, SUM, between);
        let second = Capture::read(second.as_slice()).unwrap();
        let others = [("a".to_string(), a2.clone()), ("out".to_string(), out2)];
        let error = differential::compare(&first, &found, &second, &others)
            .unwrap_err()
            .to_string();
        assert!(error.contains("depends on its input's values"), "{error}");
        error
    };
    // Another number of jobs.
    let error = refusal(&|app| app.submit(POOL));
    assert!(error.contains("3 and 4 jobs"), "{error}");

    // The same jobs, but one has less to do: its shape is a value that the app computed from the input.
    let (smaller, _) = record_of(&a2, &b, [SUM, TOTAL], COUNT / 2, |_| {});
    let second = Capture::read(smaller.as_slice()).unwrap();
    let error = differential::compare(&first, &found, &second, &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("job 1 computes 1024 x 1 x 1 and 512 x 1 x 1 work-items")
            && error.contains("depends on its input's values"),
        "{error}"
    );
}

#[test]
fn tensors_that_are_not_there_are_explained() {
    let (a, b) = (tags(1), tags(2));
    let (trace, _) = record(&a, &b);
    let capture = Capture::read(trace.as_slice()).unwrap();
    let error = |role, tensor: &Tensor| {
        let files = [file(role, "x", tensor)];
        compile(&capture, &files, &Options::default())
            .unwrap_err()
            .to_string()
    };
    let text = error(Role::Input, &tags(77));
    assert!(
        text.contains("input 'x' (f32 [32, 32])") && text.contains("nowhere"),
        "{text}"
    );
    let ones = Tensor::from_fn(DType::F32, &[32, 32], |_| 1.0).unwrap();
    let text = error(Role::Input, &ones);
    assert!(
        text.contains("gpureplay tag --shape 32,32 --dtype f32"),
        "{text}"
    );
    let text = error(Role::Output, &a);
    assert!(text.contains("output 'x'"), "{text}");
    // The GPU's results are not an input.
    let sum = Tensor::from_fn(DType::F32, &[32, 32], |i| {
        f64::from(a.value(i) as f32 + b.value(i) as f32)
    });
    let text = error(Role::Input, &sum.unwrap());
    assert!(
        text.contains("nowhere in memory that the app wrote"),
        "{text}"
    );
}

#[test]
fn incomplete_traces_are_refused() {
    let (trace, _) = record(&tags(1), &tags(2));
    let text = |bytes: &[u8]| Capture::read(bytes).unwrap_err().to_string();
    assert!(text(&trace[..trace.len() - 40]).contains("no END"));
    assert!(text(&[&trace[..120], &trace[152..]].concat()).contains("missing"));
    assert!(text(b"GPUREPLYx").contains("not a raw trace"));
}

#[test]
fn layers_are_found_by_a_references_values_and_run_by_themselves() {
    let (a, b) = (tags(1), tags(2));
    let (trace, out) = record(&a, &b);
    let capture = Capture::read(trace.as_slice()).unwrap();
    // A reference computes in double precision and rounds differently.
    let sum = Tensor::from_fn(DType::F32, &[32, 32], |i| {
        (a.value(i) + b.value(i)) * (1.0 + 1e-6)
    });
    let total = Tensor::from_fn(DType::F32, &[32, 32], |i| 100.0 + a.value(i) + b.value(i));
    let files = [
        file(Role::Input, "a", &a),
        file(Role::Weight, "b", &b),
        file(Role::Intermediate, "sum", &sum.unwrap()),
        file(Role::Intermediate, "total", &total.unwrap()),
        file(Role::Output, "out", &out),
    ];
    let by_layer = Options {
        granularity: Granularity::Layers,
        ..Options::default()
    };
    let compiled = compile(&capture, &files, &by_layer).unwrap();
    assert_eq!(compiled.tensors[2].layout.pieces[0].va, SUM);
    assert_eq!(compiled.tensors[3].layout.pieces[0].va, TOTAL);
    let recording = Recording::parse(&compiled.recording).unwrap();
    let names: Vec<&str> = recording
        .segments()
        .iter()
        .map(|segment| recording.name(segment.name.get()))
        .collect();
    assert_eq!(names, ["setup", "sum", "total", "out"]);

    let verified = verify(recording, &Limits::DEFAULT).unwrap();
    let profile = Profile::by_name("g52").unwrap();
    let gpu = OnModel::new(profile, mali_model::Options::default()).unwrap();
    let mut workspace = Workspace::new();
    let options = gpureplay_core::Options::default();
    let mut values = Values::new(&compiled, &[("a", &a)]);
    values.outputs = vec!["out"];
    let mut session = Session::open(gpu, verified, &mut workspace, options, &mut values).unwrap();
    // The sum of another input takes the place of what the first layer would compute.
    let a2 = tags(3);
    let other = Tensor::from_fn(DType::F32, &[32, 32], |i| {
        f64::from(a2.value(i) as f32 + b.value(i) as f32)
    });
    let mut values = Values::new(&compiled, &[("sum", &other.unwrap())]);
    values.outputs = vec!["out"];
    session.skip_segment(1, &mut values).unwrap();
    session.run_segment(2, &mut values).unwrap();
    session.run_segment(3, &mut values).unwrap();
    assert_eq!(values.out, reference(&a2, &b, 100.0));
    // A new inference does not remember it.
    let mut values = Values::new(&compiled, &[("a", &a)]);
    values.outputs = vec!["out"];
    session.run(&mut values).unwrap();
    assert_eq!(values.out, out);
}

#[test]
fn an_intermediate_that_is_nowhere_is_explained() {
    let (a, b) = (tags(1), tags(2));
    let (trace, _) = record(&a, &b);
    let capture = Capture::read(trace.as_slice()).unwrap();
    let error = |tensor: &Tensor| {
        let files = [file(Role::Intermediate, "x", tensor)];
        compile(&capture, &files, &Options::default())
            .unwrap_err()
            .to_string()
    };
    // What the app wrote is no result of a job.
    let text = error(&a);
    assert!(
        text.contains("intermediate 'x'") && text.contains("the GPU wrote"),
        "{text}"
    );
    let text = error(&Tensor::zeros(DType::F32, &[32, 32]).unwrap());
    assert!(text.contains("all zero"), "{text}");
}
