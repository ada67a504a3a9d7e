// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and tensors from OpenCL notes.

use gpureplay_compile::notes::{self, Choices, Proposal, ProposeError, launches, propose};
use gpureplay_compile::touched::Bytes;
use gpureplay_compile::{
    Capture, Compiled, Found, Options, Role, Touched, compile_found, differential, tag_all,
};
use gpureplay_tensors::{ElementType, Form, Stated, StatedError, Tensor, simplify};
use gpureplay_trace::note::{
    Argument, Content, Direction, Launch, Note, Object, ObjectKind, Place, Transfer, Value,
    content_hash,
};

use crate::app::*;
use crate::driver::{Driver, vector_add, vector_add_code};

pub(crate) fn renamed(names: &[(&str, &str)]) -> Stated {
    let names = names
        .iter()
        .map(|(old, new)| (old.to_string(), new.to_string()));
    Stated {
        rename: names.collect(),
        ..Stated::default()
    }
}

pub(crate) fn out_is(name: &str) -> Choices {
    Choices {
        stated: renamed(&[(name, "out")]),
        ..Choices::default()
    }
}

pub(crate) fn fixed(output: &str) -> Choices {
    Choices {
        fixed_weights: true,
        ..out_is(output)
    }
}

/// In order of creation.
pub(crate) const OBJECTS: [u64; 5] = [A, B, SUM, TOTAL, OUT];

pub(crate) struct Noted {
    pub(crate) driver: Driver,
    launches: u32,
}

impl Noted {
    pub(crate) fn start() -> Self {
        let mut driver = driver(&OBJECTS, &[]);
        driver.store(CODE + 0x80, &vector_add_code());
        let mut noted = Noted {
            driver,
            launches: 0,
        };
        for (id, _) in (0..).zip(OBJECTS) {
            noted.made(id);
        }
        noted
    }

    pub(crate) fn made(&mut self, id: u32) {
        self.driver.note(&Note::Object(Object {
            id,
            kind: ObjectKind::Buffer,
            size: 4096,
        }));
    }

    pub(crate) fn moved(&mut self, direction: Direction, va: u64, bytes: &[u8]) {
        let content = Content::Hash(content_hash(bytes));
        self.transfer(direction, va, content, true);
    }

    pub(crate) fn transfer(
        &mut self,
        direction: Direction,
        va: u64,
        content: Content,
        complete: bool,
    ) {
        self.driver.note(&Note::Transfer(Transfer {
            direction,
            at: place(va),
            size: 4 * COUNT as u64,
            content,
            queue: Some(0),
            complete,
        }));
    }

    pub(crate) fn write(&mut self, va: u64, tensor: &Tensor) {
        self.driver.store(va, tensor.bytes());
        self.moved(Direction::Write, va, tensor.bytes());
    }

    pub(crate) fn read(&mut self, va: u64) -> Tensor {
        let bytes = self.driver.load(va, 4 * COUNT);
        self.moved(Direction::Read, va, &bytes);
        Tensor::new(ElementType::F32, &[COUNT as u64], bytes).unwrap()
    }

    pub(crate) fn add(&mut self, kernel: &str, a: u64, b: u64, sum: u64) {
        self.add_with(kernel, [a, b, sum], (COUNT as u64, 7));
    }

    /// `sizes`: work-items, and a number argument.
    pub(crate) fn add_with(&mut self, kernel: &str, operands: [u64; 3], sizes: (u64, u8)) {
        self.queue(kernel, operands, sizes);
        self.work(operands);
        self.driver.note(&Note::Idle { queue: 0 });
    }

    pub(crate) fn work(&mut self, [a, b, sum]: [u64; 3]) {
        let job = vector_add(POOL, CODE + 0x80, a, b, sum);
        self.driver.run(POOL, &job);
    }

    pub(crate) fn queue(
        &mut self,
        kernel: &str,
        [a, b, sum]: [u64; 3],
        (items, scalar): (u64, u8),
    ) {
        let argument = |name: &str, type_name: &str, value| Argument {
            name: name.into(),
            type_name: type_name.into(),
            value,
        };
        let buffer = |va| Value::Object(object(va));
        let id = self.launches;
        self.launches += 1;
        self.driver.note(&Note::Launch(Launch {
            id,
            queue: 0,
            kernel: kernel.into(),
            global: [items, 1, 1],
            local: None,
            arguments: vec![
                argument("a", "const float*", buffer(a)),
                argument("b", "const float*", buffer(b)),
                argument("sum", "float*", buffer(sum)),
                argument("n", "uchar", Value::Scalar(vec![scalar])),
            ],
        }));
    }

    pub(crate) fn finish(self) -> Capture {
        Capture::read(self.driver.finish().as_slice()).unwrap()
    }
}

pub(crate) fn object(va: u64) -> u32 {
    OBJECTS.iter().position(|at| *at == va).unwrap() as u32
}

pub(crate) fn replayed(
    record: impl Fn(u64) -> (Tensor, Capture),
    choices: &Choices,
    input: &str,
) -> Proposal {
    let (first, second) = (record(1).1, record(3).1);
    let found = propose(&first, Some(&second), choices).unwrap();
    let recording = compiled(&first, found.tensors.clone());
    assert_eq!(answer(&recording, input, &tags(5)), record(5).0);
    found
}

pub(crate) fn place(va: u64) -> Place {
    Place {
        object: object(va),
        offset: 0,
    }
}

pub(crate) fn flat(tensor: &Tensor) -> Tensor {
    Tensor::new(tensor.dtype(), &[COUNT as u64], tensor.bytes().to_vec()).unwrap()
}

fn two_layers(a: &Tensor, b: &Tensor) -> (Tensor, Capture) {
    let mut app = Noted::start();
    app.write(B, b);
    app.write(A, a);
    app.add("first", A, B, SUM);
    app.add("second", SUM, B, OUT);
    let out = app.read(OUT);
    (out, app.finish())
}

pub(crate) fn names(tensors: &[Found]) -> Vec<(Role, &str)> {
    tensors.iter().map(|t| (t.role, t.name.as_str())).collect()
}

pub(crate) fn compiled(capture: &Capture, tensors: Vec<Found>) -> Compiled {
    compile_found(capture, tensors, &Options::default(), |_, _| None).unwrap()
}

/// The only output must be called `out`.
pub(crate) fn answer(compiled: &Compiled, input: &str, value: &Tensor) -> Tensor {
    let out = replay(compiled, &[&[(input, value)]]).remove(0);
    flat(&out)
}

#[test]
fn tensors_are_those_that_tagging_finds() {
    let (a, b, a2) = (tags(1), tags(2), tags(3));
    let (out, first) = two_layers(&a, &b);
    let (out2, second) = two_layers(&a2, &b);
    let mut stated = renamed(&[("second.sum", "out"), ("first.a", "picture")]);
    let form = "f32[32,32]".parse::<Form>().unwrap();
    stated.forms.insert("picture".to_owned(), form);
    let choices = Choices {
        stated,
        ..Choices::default()
    };
    let found = propose(&first, Some(&second), &choices).unwrap();
    assert!(
        found.sure && found.remarks.is_empty(),
        "{:?}",
        found.remarks
    );
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Weight, "first.b"),
            (Role::Input, "picture"),
            (Role::Output, "out")
        ]
    );
    let files = [
        file(Role::Weight, "first.b", &flat(&b)),
        file(Role::Input, "picture", &a),
        file(Role::Output, "out", &out),
    ];
    let tagged = tag_all(&first, &files).unwrap();
    for (noted, tagged) in found.tensors.iter().zip(&tagged) {
        let places = |tensor: &Found| {
            let pieces = tensor.layout.pieces.iter();
            let places: Vec<_> = pieces.map(|p| (p.va, simplify(&p.axes))).collect();
            (tensor.layout.dtype, places)
        };
        assert_eq!(places(noted), places(tagged));
        assert_eq!((noted.job, &noted.shape), (tagged.job, &tagged.shape));
        assert_eq!(noted.tensor, tagged.tensor);
    }
    let other = |name: &str| {
        let mut values = found.second.iter();
        values.find(|(n, _)| n == name).map(|(_, t)| t.clone())
    };
    assert_eq!(
        (other("picture"), other("out")),
        (Some(a2.clone()), Some(out2.clone()))
    );
    // No trace has seen it.
    let a3 = tags(4);
    let recording = compiled(&first, found.tensors);
    let mut workspace = gpureplay_core::Workspace::new();
    let given = [("picture", &a3), ("first.b", &flat(&b))];
    let mut values = crate::app::values(&recording, &given);
    let view = gpureplay_kit::view(&recording.recording);
    let mut session = open(&view, &mut workspace, &mut values);
    session.run(&mut values).unwrap();
    assert_eq!(flat(&crate::app::out(&values)), two_layers(&a3, &b).0);
}

#[test]
fn tensors_may_swap_their_names() {
    let (a, b, b2) = (tags(1), tags(2), tags(3));
    let ((_, first), (out2, second)) = (two_layers(&a, &b), two_layers(&a, &b2));
    let choices = Choices {
        stated: renamed(&[("first.b", "second.sum"), ("second.sum", "first.b")]),
        ..Choices::default()
    };
    let found = propose(&first, Some(&second), &choices).unwrap();
    let named = |name: &str| {
        let mut values = found.second.iter();
        values.find(|(n, _)| n == name).map(|(_, t)| flat(t))
    };
    assert!(named("second.sum") == Some(flat(&b2)));
    assert!(named("first.b") == Some(flat(&out2)));
}

#[test]
fn what_was_tagged_keeps_its_name() {
    let (a, b) = (tags(1), tags(2));
    let (_, first) = two_layers(&a, &b);
    let mut found = propose(&first, None, &Choices::default()).unwrap();
    assert!(!found.sure);
    let tagged = tag_all(&first, &[file(Role::Input, "a", &a)]).unwrap();
    found.leave_to(&tagged);
    assert_eq!(
        names(&found.tensors),
        [(Role::Input, "first.b"), (Role::Output, "second.sum")]
    );
}

#[test]
fn each_chain_has_the_name_of_its_launch() {
    let (_, capture) = two_layers(&tags(1), &tags(2));
    let named = launches(&capture);
    let kernels: Vec<_> = named.chains.iter().flatten().map(|d| &*d.kernel).collect();
    assert_eq!(kernels, ["first", "second"]);
    assert!(named.unexplained.is_empty());

    let mut app = Noted::start();
    app.write(A, &tags(1));
    app.add_with("wrong", [A, A, SUM], (1000, 0));
    app.work([SUM, SUM, TOTAL]);
    app.add("right", SUM, TOTAL, OUT);
    let named = launches(&app.finish());
    let kernel = |chain: usize| named.chains[chain].as_ref().map(|d| d.kernel.as_str());
    assert_eq!(
        [kernel(0), kernel(1), kernel(2)],
        [None, None, Some("right")]
    );
    assert_eq!(
        named.unexplained,
        [
            "launch 0 (wrong, 1000 x 1 x 1): no job of its queue computes as many work-items; its jobs have no name"
        ]
    );
}

#[test]
fn an_input_that_is_read_back_is_no_output() {
    let mut app = Noted::start();
    app.write(A, &tags(1));
    app.read(A);
    app.add("twice", A, A, OUT);
    app.read(A);
    app.read(OUT);
    app.read(OUT);
    // Mapped for reading and writing, and left alone.
    let bytes = app.driver.load(A, 4 * COUNT);
    app.moved(Direction::Unchanged, A, &bytes);
    let found = propose(&app.finish(), None, &Choices::default()).unwrap();
    assert_eq!(
        names(&found.tensors),
        [(Role::Input, "twice.a"), (Role::Output, "twice.sum")]
    );
}

#[test]
fn memory_that_the_app_clears_is_no_weight() {
    let record = |input: &Tensor| {
        let mut app = Noted::start();
        app.write(TOTAL, &tensor(|_| 0.0));
        app.write(B, &tags(2));
        app.write(A, input);
        app.add("first", TOTAL, B, SUM);
        app.add("second", SUM, A, OUT);
        app.read(OUT);
        app.finish()
    };
    let (first, second) = (record(&tags(1)), record(&tags(3)));
    let found = propose(&first, Some(&second), &Choices::default()).unwrap();
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Weight, "first.b"),
            (Role::Input, "second.b"),
            (Role::Output, "second.sum")
        ]
    );
}

#[test]
fn a_weight_that_is_written_between_jobs_can_be_fixed() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(A, &tags(seed));
        app.add("first", A, A, SUM);
        app.write(TOTAL, &tags(2));
        app.add("second", SUM, TOTAL, OUT);
        let out = app.read(OUT);
        (out, app.finish())
    };
    let (first, second) = (record(1).1, record(3).1);
    let mut choices = out_is("second.sum");
    let found = propose(&first, Some(&second), &choices).unwrap();
    let refused = compile_found(&first, found.tensors, &Options::default(), |_, _| None);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("weight 'second.b'"), "{text}");
    assert!(
        text.contains("--fixed-weights makes a constant of it"),
        "{text}"
    );
    choices.fixed_weights = true;
    replayed(record, &choices, "first.a");
}

#[test]
fn a_buffer_that_is_written_twice_is_two_inputs_at_their_places() {
    let record = |a: &Tensor, b: &Tensor| {
        let mut app = Noted::start();
        app.write(A, &tags(9));
        app.write(A, a);
        app.add("one", A, A, SUM);
        app.write(A, b);
        app.add("two", A, SUM, OUT);
        let out = app.read(OUT);
        (out, app.finish())
    };
    let (a, b) = (tags(1), tags(2));
    let (_, first) = record(&a, &b);
    let (_, second) = record(&tags(3), &tags(4));
    let choices = out_is("two.sum");
    let found = propose(&first, Some(&second), &choices).unwrap();
    let places: Vec<_> = found
        .tensors
        .iter()
        .map(|t| (t.name.as_str(), t.job))
        .collect();
    assert_eq!(places, [("one.a", 0), ("two.a", 1), ("out", 1)]);
    let recording = compiled(&first, found.tensors);
    let (a, b) = (tags(5), tags(6));
    let values = [("one.a", &a), ("two.a", &b)];
    let out = replay(&recording, &[&values]).remove(0);
    assert_eq!(flat(&out), record(&a, &b).0);
}

#[test]
fn what_the_app_carries_from_one_launch_to_another_one_is_said() {
    let record = |seed| {
        let mut app = Noted::start();
        app.write(B, &tags(2));
        app.write(A, &tags(seed));
        app.add("first", A, B, SUM);
        let middle = app.read(SUM);
        app.write(TOTAL, &middle);
        app.add("second", TOTAL, B, OUT);
        app.read(OUT);
        app.finish()
    };
    let found = propose(&record(1), Some(&record(5)), &Choices::default()).unwrap();
    let inputs = found.tensors.iter().filter(|t| t.role == Role::Input);
    assert_eq!(
        inputs.map(|t| t.name.as_str()).collect::<Vec<_>>(),
        ["first.a", "second.a"]
    );
    let said = "'second.a' is what the app read before as 'first.sum'";
    assert!(
        found.remarks.iter().any(|text| text.starts_with(said)),
        "{:?}",
        found.remarks
    );
    let (_, plain) = two_layers(&tags(1), &tags(2));
    let found = propose(&plain, None, &Choices::default()).unwrap();
    assert!(
        !found
            .remarks
            .iter()
            .any(|text| text.contains("read before"))
    );
}

#[test]
fn an_app_that_waits_only_at_the_end_has_its_transfers_between_its_launches() {
    let record = |a: &Tensor, b: &Tensor| {
        let mut app = Noted::start();
        let size = (COUNT as u64, 7);
        app.write(A, a);
        let [one, two] = [[A, A, SUM], [A, SUM, OUT]];
        app.queue("one", one, size);
        let content = Content::Hash(content_hash(b.bytes()));
        app.transfer(Direction::Write, A, content, false);
        app.queue("two", two, size);
        app.transfer(Direction::Read, OUT, Content::Later(5), false);
        app.queue("three", [A, A, OUT], size);
        app.work(one);
        app.driver.store(A, b.bytes());
        app.work(two);
        let bytes = app.driver.load(OUT, 4 * COUNT);
        app.work([A, A, OUT]);
        let hash = content_hash(&bytes);
        app.driver.note(&Note::Content { id: 5, hash });
        app.driver.note(&Note::Idle { queue: 0 });
        let out = Tensor::new(ElementType::F32, &[COUNT as u64], bytes).unwrap();
        (out, app.finish())
    };
    let (_, first) = record(&tags(1), &tags(2));
    let (_, second) = record(&tags(3), &tags(4));
    let named = launches(&first);
    let kernels: Vec<_> = named.chains.iter().flatten().map(|d| &*d.kernel).collect();
    assert_eq!(kernels, ["one", "two", "three"]);
    let choices = out_is("two.sum");
    let found = propose(&first, Some(&second), &choices).unwrap();
    assert!(found.remarks.is_empty(), "{:?}", found.remarks);
    let places = found.tensors.iter().map(|t| (t.name.as_str(), t.job));
    let places: Vec<_> = places.collect();
    assert_eq!(places, [("one.a", 0), ("two.a", 1), ("out", 1)]);
}

#[test]
fn of_a_loop_the_last_turn_counts() {
    let record = |inputs: [u64; 3]| {
        let mut app = Noted::start();
        app.write(B, &tags(2));
        let mut out = None;
        for seed in inputs {
            app.write(A, &tags(seed));
            app.add("infer", A, B, OUT);
            out = Some(app.read(OUT));
        }
        (out.unwrap(), app.finish())
    };
    let (_, first) = record([10, 11, 12]);
    let (_, second) = record([20, 21, 22]);
    let choices = fixed("infer.sum");
    let found = propose(&first, Some(&second), &choices).unwrap();
    assert_eq!(found.turns, Some(3));
    assert_eq!(
        names(&found.tensors),
        [(Role::Input, "infer.a"), (Role::Output, "out")]
    );
    assert_eq!(found.tensors[0].job, 2);
    let recording = compiled(&first, found.tensors);
    assert_eq!(
        (recording.summary.setup_chains, recording.summary.run_chains),
        (1, 1)
    );
    let input = tags(33);
    assert_eq!(answer(&recording, "infer.a", &input), record([1, 2, 33]).0);
}

#[test]
fn a_loop_may_make_its_buffers_anew() {
    let record = |seeds: [u64; 2]| {
        let mut app = Noted::start();
        app.write(TOTAL, &tags(2));
        for ([from, to], seed) in [[A, SUM], [B, OUT]].into_iter().zip(seeds) {
            app.write(from, &tags(seed));
            app.add("infer", from, TOTAL, to);
            app.read(to);
        }
        app.finish()
    };
    let (first, second) = (record([10, 11]), record([20, 21]));
    let found = propose(&first, Some(&second), &Choices::default()).unwrap();
    assert_eq!(found.turns, Some(2));
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Weight, "infer.b"),
            (Role::Input, "infer.a"),
            (Role::Output, "infer.sum")
        ]
    );
    let first_input = A..A + 4 * COUNT as u64;
    assert_eq!(
        found.earlier.as_slice(),
        core::slice::from_ref(&first_input)
    );
    let compare = |earlier: &[std::ops::Range<u64>]| {
        differential::compare(&first, &found.tensors, &second, &found.second, earlier)
    };
    compare(&found.earlier).unwrap();
    assert!(compare(&[]).unwrap_err().to_string().contains("bytes"));
}

#[test]
fn a_computation_that_depends_on_values_is_refused() {
    let (a, b) = (tags(1), tags(2));
    let (_, two) = two_layers(&a, &b);
    let record = |kernel: &str, scalar: u8| {
        let mut app = Noted::start();
        app.write(B, &b);
        app.write(A, &a);
        app.add("first", A, B, SUM);
        app.add_with(kernel, [SUM, B, OUT], (COUNT as u64, scalar));
        app.read(OUT);
        app.finish()
    };
    let refused = |second: &Capture| {
        let refused = propose(&two, Some(second), &Choices::default());
        refused.unwrap_err().to_string()
    };
    let error = refused(&record("other", 7));
    assert!(error.contains("launch 1 (second, 1024 x 1 x 1)"), "{error}");
    let error = refused(&record("second", 8));
    assert!(
        error.contains("launch 1 (second) depends on the input"),
        "{error}"
    );
    assert!(error.contains("'n'"), "{error}");
}

#[test]
fn wishes_that_do_not_fit_name_what_there_is() {
    let (_, capture) = two_layers(&tags(1), &tags(2));
    let wish = |rename: &[(&str, &str)], forms: &[(&str, &str)]| {
        let forms = forms
            .iter()
            .map(|(name, form)| (name.to_string(), form.parse().unwrap()));
        let choices = Choices {
            stated: Stated {
                forms: forms.collect(),
                ..renamed(rename)
            },
            ..Choices::default()
        };
        match propose(&capture, None, &choices).unwrap_err() {
            ProposeError::Stated(error) => error,
            other => panic!("{other}"),
        }
    };
    assert!(
        matches!(wish(&[("x", "y")], &[]), StatedError::Name { known, .. } if known.len() == 3)
    );
    assert!(matches!(
        wish(&[], &[("x", "f32[4]")]),
        StatedError::Name { .. }
    ));
    assert!(matches!(
        wish(&[], &[("first.a", "f32[4]")]),
        StatedError::Form { bytes: 4096, .. }
    ));
    assert!(matches!(
        wish(&[("first.a", "first.b")], &[]),
        StatedError::Twice { .. }
    ));
    let silent = App::default().record(&tags(1), &tags(2)).capture();
    let error = notes::propose(&silent, None, &Choices::default()).unwrap_err();
    assert_eq!(error, ProposeError::NoNotes);
}

/// `total += input`, `out = total + b`; if `numbered`, each launch gets its step's number.
fn steps(inputs: &[Tensor], b: &Tensor, numbered: bool) -> (Vec<Tensor>, Capture) {
    let mut app = Noted::start();
    app.write(B, b);
    app.write(TOTAL, &tags(9));
    let mut out = Vec::new();
    for (step, input) in (0u8..).zip(inputs) {
        let size = (COUNT as u64, if numbered { step } else { 7 });
        app.write(A, input);
        app.add_with("step", [TOTAL, A, TOTAL], size);
        app.add_with("answer", [TOTAL, B, OUT], size);
        out.push(app.read(OUT));
    }
    app.read(TOTAL);
    (out, app.finish())
}

fn elements(at: u64, first: usize, count: usize) -> Bytes {
    let mut out = Bytes::default();
    out.insert(at + 4 * first as u64, 4 * count as u64);
    out
}

fn sum_of(read: [u64; 2], written: u64) -> Touched {
    let mut touched = Touched {
        written: elements(written, 0, COUNT),
        ..Touched::default()
    };
    for at in read {
        touched.read.add(&elements(at, 0, COUNT));
    }
    touched
}

fn step_memory(steps: usize) -> Vec<Touched> {
    let one = [sum_of([TOTAL, A], TOTAL), sum_of([TOTAL, B], OUT)];
    std::iter::repeat_n(one, steps).flatten().collect()
}

#[test]
fn what_a_step_leaves_for_the_next_one_is_a_state() {
    let (b, inputs) = (tags(2), [tags(1), tags(3), tags(4)]);
    let (out, capture) = steps(&inputs[..2], &b, false);
    let kept = notes::kept(&capture, &step_memory(2)).unwrap();
    let places: Vec<_> = kept
        .iter()
        .map(|kept| (kept.va, kept.name.as_str()))
        .collect();
    assert_eq!(places, [(TOTAL, "step.a")]);
    let turn = notes::first_turn(&capture).unwrap();
    assert_eq!((turn.turns, turn.jobs), (2, 2));
    let first = capture.until(turn.jobs, turn.notes);
    let choices = Choices {
        step: Some(turn),
        kept,
        ..out_is("answer.sum")
    };
    let found = propose(&first, None, &choices).unwrap();
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Weight, "answer.b"),
            (Role::State, "step.a"),
            (Role::Input, "step.b"),
            (Role::Output, "out")
        ]
    );
    let recording = compiled(&first, found.tensors);
    let values: Vec<_> = inputs.iter().map(|input| [("step.b", input)]).collect();
    let runs: Vec<&[_]> = values.iter().map(|values| values.as_slice()).collect();
    let replayed = replay(&recording, &runs);
    assert_eq!(flat(&replayed[0]), out[0]);
    assert_eq!(flat(&replayed[1]), out[1]);
    let (live, _) = steps(&inputs, &b, false);
    assert_eq!(flat(&replayed[2]), live[2]);
}

#[test]
fn an_object_that_the_next_step_is_not_given_is_no_state() {
    let mut app = Noted::start();
    app.write(TOTAL, &tags(2));
    for ([from, to], seed) in [[A, SUM], [B, OUT]].into_iter().zip([10, 11]) {
        app.write(from, &tags(seed));
        app.add("infer", from, TOTAL, to);
        app.read(to);
    }
    let capture = app.finish();
    assert_eq!(notes::first_turn(&capture).unwrap().turns, 2);
    // It lies where the first result was.
    let memory = [sum_of([A, TOTAL], SUM), sum_of([SUM, TOTAL], OUT)];
    assert_eq!(notes::kept(&capture, &memory).unwrap(), []);
}

#[test]
fn a_launch_that_depends_on_the_step_is_named() {
    let (_, capture) = steps(&[tags(1), tags(3)], &tags(2), true);
    let error = notes::kept(&capture, &step_memory(2)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("launch 0 (step) depends on the step"),
        "{text}"
    );
    assert!(text.contains("argument 'n'"), "{text}");
}

#[test]
fn a_launch_whose_size_depends_on_the_step_is_named() {
    let (b, inputs) = (tags(2), [tags(1), tags(3)]);
    let record = |goes_on: bool| {
        let mut app = Noted::start();
        app.write(B, &b);
        app.write(TOTAL, &tags(9));
        for (step, input) in (0..).zip(&inputs) {
            app.write(A, input);
            app.add_with("step", [TOTAL, A, TOTAL], (COUNT as u64 - step, 7));
            app.read(OUT);
        }
        let capture = app.finish();
        let left = if goes_on { TOTAL } else { SUM };
        let memory = [sum_of([left, A], TOTAL), sum_of([left, A], TOTAL)];
        notes::kept(&capture, &memory)
    };
    let text = record(true).unwrap_err().to_string();
    let expected = format!(
        "launch 0 (step, {COUNT} x 1 x 1) depends on the step: in the second step it is launch 1 (step, {} x 1 x 1)",
        COUNT - 1
    );
    assert!(text.contains(&expected), "{text}");
    assert_eq!(record(false), Ok(vec![]));
}

#[test]
fn what_is_written_before_it_is_read_is_no_state() {
    let (_, capture) = steps(&[tags(1), tags(3)], &tags(2), false);
    // The second step reads the total only after writing it.
    let mut memory = step_memory(2);
    memory[2].read = elements(A, 0, COUNT);
    assert_eq!(notes::kept(&capture, &memory), Ok(vec![]));
}

/// A cache of keys and values.
#[test]
fn what_is_written_in_part_before_it_is_read_is_a_state() {
    let (_, capture) = steps(&[tags(1), tags(3)], &tags(2), false);
    let mut memory = step_memory(2);
    for (step, job) in [(0, 0), (1, 2)] {
        memory[job].read = elements(A, 0, COUNT);
        memory[job].written = elements(TOTAL, step, 1);
    }
    let kept = notes::kept(&capture, &memory).unwrap();
    assert_eq!(kept.iter().map(|kept| kept.va).collect::<Vec<_>>(), [TOTAL]);
    // Each step takes only its own part: nothing of it lasts.
    for (step, job) in [(0, 1), (1, 3)] {
        memory[job].read = elements(TOTAL, step, 1);
    }
    assert_eq!(notes::kept(&capture, &memory), Ok(vec![]));
}
