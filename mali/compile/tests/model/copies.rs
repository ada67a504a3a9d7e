// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies and fills, followed or refused.

use gpureplay_compile::notes::{Choices, Proposal, ProposeError, propose, propose_unnoted};
use gpureplay_compile::{Capture, Role, differential};
use gpureplay_tensors::{ElementType, Tensor};
use gpureplay_trace::note::{Copied, Filled, Note, Place};

use crate::app::*;
use crate::driver::{Driver, vector_add, vector_add_code};
use crate::notes::{Noted, answer, compiled, fixed, flat, names, object, out_is, place, replayed};

const BYTES: u64 = 4 * COUNT as u64;

fn copy(from: u64, to: u64, size: u64) -> Copied {
    Copied {
        from: place(from),
        to: place(to),
        size,
        to_size: size,
        dense: true,
        queue: Some(0),
        call: "clEnqueueCopyBuffer".into(),
    }
}

fn second_half(from: u64, to: u64) -> Copied {
    let mut end = copy(from, to, BYTES / 2);
    (end.from.offset, end.to.offset) = (BYTES / 2, BYTES / 2);
    end
}

fn agree(first: &Capture, second: &Capture, found: &Proposal) {
    let (ours, theirs) = (&found.tensors, &found.second);
    differential::compare(first, ours, second, theirs, &found.earlier).unwrap();
}

impl Noted {
    fn read_and_finish(mut self, from: u64) -> (Tensor, Capture) {
        (self.read(from), self.finish())
    }

    fn copied(&mut self, note: Copied) {
        let address = |place: Place| crate::notes::OBJECTS[place.object as usize] + place.offset;
        let bytes = self.driver.load(address(note.from), note.size as usize);
        self.driver.store(address(note.to), &bytes);
        self.driver.note(&Note::Copy(note));
    }

    fn copy(&mut self, from: u64, to: u64) {
        self.copied(copy(from, to, BYTES));
    }

    fn mapped(&mut self, va: u64) {
        self.driver.renew(va, 1);
        self.made(object(va));
    }
}

/// `first(a, b → sum)`, a copy to `total`, `second(total, b → out)`.
fn copied(seed: u64, copy: impl Fn(&mut Noted)) -> Capture {
    let mut app = Noted::start();
    app.write(B, &tags(2));
    app.write(A, &tags(seed));
    app.add("first", A, B, SUM);
    copy(&mut app);
    app.add("second", TOTAL, B, OUT);
    app.read(OUT);
    app.finish()
}

fn refused(capture: &Capture, second: Option<&Capture>) -> String {
    let refused = propose(capture, second, &Choices::default());
    let error = refused.unwrap_err();
    assert!(matches!(error, ProposeError::Copied { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_copy_of_what_a_launch_computed_is_refused() {
    let copy = |app: &mut Noted| app.copy(SUM, TOTAL);
    let (first, second) = (copied(1, copy), copied(3, copy));
    for second in [None, Some(&second)] {
        let text = refused(&first, second);
        let words = "launch 1 (second) reads its argument 'a' from a memory object that clEnqueueCopyBuffer filled with what launch 0 (first) computed";
        assert!(text.starts_with(words), "{text}");
        assert!(!text.contains("--fixed-weights"), "{text}");
    }
}

#[test]
fn rectangles_images_and_copies_of_copies_are_refused_too() {
    let with_gaps = |app: &mut Noted| {
        app.copied(Copied {
            dense: false,
            call: "clEnqueueCopyBufferRect".into(),
            ..copy(SUM, TOTAL, BYTES)
        });
    };
    let text = refused(&copied(1, with_gaps), None);
    assert!(
        text.contains("that clEnqueueCopyBufferRect filled"),
        "{text}"
    );
    let image = |app: &mut Noted| {
        app.copied(Copied {
            size: 0,
            to_size: 0,
            dense: false,
            call: "clEnqueueCopyImage".into(),
            ..copy(SUM, TOTAL, BYTES)
        });
    };
    let text = refused(&copied(1, image), None);
    assert!(text.contains("that clEnqueueCopyImage filled"), "{text}");
    let twice = |app: &mut Noted| {
        app.copied(copy(SUM, OUT, BYTES));
        app.copied(copy(OUT, TOTAL, 64));
    };
    let text = refused(&copied(1, twice), None);
    assert!(text.contains("what launch 0 (first) computed"), "{text}");
}

#[test]
fn memory_that_a_kernel_may_write_and_does_not_is_the_hosts() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(SUM, &tags(seed));
        app.write(B, &tags(2));
        app.queue("look", [B, B, SUM], (COUNT as u64, 7));
        app.work([B, B, A]);
        app.driver.note(&Note::Idle { queue: 0 });
        app.copy(SUM, TOTAL);
        app.add("second", TOTAL, B, OUT);
        app.read_and_finish(OUT)
    };
    let choices = fixed("second.sum");
    let (first, second) = (record(1).1, record(3).1);
    let found = propose(&first, Some(&second), &choices).unwrap();
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Input, "look.sum"),
            (Role::Input, "second.a"),
            (Role::Output, "out")
        ]
    );
    let input = tags(5);
    let recording = compiled(&first, found.tensors);
    let both = [("look.sum", &input), ("second.a", &input)];
    let out = replay(&recording, &[&both]).remove(0);
    assert_eq!(flat(&out), record(5).0);
}

#[test]
fn a_copy_of_the_input_is_the_input() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.mapped(SUM);
        app.mapped(TOTAL);
        app.write(B, &tags(2));
        app.write(A, &tags(seed));
        app.copy(A, SUM);
        app.write(A, &tags(9));
        app.copy(SUM, TOTAL);
        app.add("only", TOTAL, B, OUT);
        app.read_and_finish(OUT)
    };
    let choices = fixed("only.sum");
    let (first, second) = (record(1).1, record(3).1);
    for second in [None, Some(&second)] {
        let found = propose(&first, second, &choices).unwrap();
        assert!(found.remarks.is_empty(), "{:?}", found.remarks);
        let inputs: Vec<_> = found.tensors.iter().map(|t| t.name.as_str()).collect();
        assert!(inputs.contains(&"only.a"), "{inputs:?}");
        if let Some(second) = second {
            assert_eq!(inputs, ["only.a", "out"]);
            agree(&first, second, &found);
        }
    }
    replayed(record, &choices, "only.a");
}

#[test]
fn an_input_and_its_copy_are_one_input_at_two_places() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.mapped(A);
        app.mapped(TOTAL);
        app.write(A, &tags(seed));
        app.copy(A, TOTAL);
        app.add("twice", A, TOTAL, OUT);
        app.read_and_finish(OUT)
    };
    let choices = out_is("twice.sum");
    let (first, second) = (record(1).1, record(3).1);
    for second in [None, Some(&second)] {
        let found = propose(&first, second, &choices).unwrap();
        assert_eq!(
            names(&found.tensors),
            [(Role::Input, "twice.a"), (Role::Output, "out")]
        );
        let places = found.tensors[0].layout.pieces.iter().map(|piece| piece.va);
        assert_eq!(places.collect::<Vec<_>>(), [A, TOTAL]);
        if let Some(second) = second {
            agree(&first, second, &found);
        }
        let recording = compiled(&first, found.tensors);
        assert_eq!(answer(&recording, "twice.a", &tags(5)), record(5).0);
    }
}

#[test]
fn a_later_copy_of_the_input_is_an_input_that_a_remark_explains() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(A, &tags(seed));
        app.add("one", A, A, SUM);
        app.copy(A, TOTAL);
        app.add("two", SUM, TOTAL, OUT);
        app.read(OUT);
        app.finish()
    };
    let found = propose(&record(1), Some(&record(3)), &Choices::default()).unwrap();
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Input, "one.a"),
            (Role::Input, "two.b"),
            (Role::Output, "two.sum")
        ]
    );
    let said = "'two.b' is what the app copies from 'one.a' at another time";
    assert!(found.remarks[0].starts_with(said), "{:?}", found.remarks);
}

#[test]
fn parts_of_a_write_are_inputs() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(B, &tags(2));
        app.write(A, &tags(seed));
        app.copied(copy(A, TOTAL, BYTES / 2));
        app.copied(second_half(A, TOTAL));
        app.add("only", TOTAL, B, OUT);
        app.read_and_finish(OUT)
    };
    let choices = fixed("only.sum");
    let (first, second) = (record(1).1, record(3).1);
    let found = propose(&first, Some(&second), &choices).unwrap();
    assert_eq!(
        names(&found.tensors),
        [
            (Role::Input, "only.a"),
            (Role::Input, "only.a-2"),
            (Role::Output, "out")
        ]
    );
    let input = tags(5);
    let half = |bytes: &[u8]| {
        let count = bytes.len() as u64 / 4;
        Tensor::new(ElementType::F32, &[count], bytes.to_vec()).unwrap()
    };
    let (low, high) = input.bytes().split_at(BYTES as usize / 2);
    let (low, high) = (half(low), half(high));
    let recording = compiled(&first, found.tensors);
    let out = replay(&recording, &[&[("only.a", &low), ("only.a-2", &high)]]).remove(0);
    assert_eq!(flat(&out), record(5).0);
}

#[test]
fn a_copy_of_the_output_is_read_at_its_source() {
    let record = |seed: u64, parts: bool| {
        let mut app = Noted::start();
        app.mapped(SUM);
        app.write(B, &tags(2));
        app.write(A, &tags(seed));
        app.add("only", A, B, SUM);
        app.copy(SUM, OUT);
        if parts {
            app.copied(copy(OUT, TOTAL, BYTES / 2));
            app.copied(second_half(OUT, TOTAL));
        } else {
            app.copy(OUT, TOTAL);
        }
        app.read_and_finish(TOTAL)
    };
    for parts in [false, true] {
        let choices = fixed("only.sum");
        let (first, second) = (record(1, parts).1, record(3, parts).1);
        for second in [None, Some(&second)] {
            let found = propose(&first, second, &choices).unwrap();
            assert!(found.remarks.is_empty(), "{:?}", found.remarks);
            let outputs: Vec<_> = found.tensors.iter().filter(|t| t.is_result()).collect();
            assert_eq!(outputs.len(), 1);
            assert_eq!(outputs[0].layout.address_range(), Some((SUM, SUM + BYTES)));
            if let Some(second) = second {
                agree(&first, second, &found);
                let recording = compiled(&first, found.tensors);
                assert_eq!(answer(&recording, "only.a", &tags(5)), record(5, parts).0);
            }
        }
    }
}

#[test]
fn a_copy_that_the_gpu_does_is_a_launch() {
    for known in [true, false] {
        let record = |seed: u64| {
            let mut app = Noted::start();
            if known {
                app.mapped(TOTAL);
            }
            app.write(B, &tags(2));
            app.write(A, &tags(seed));
            app.add("first", A, B, SUM);
            app.driver.note(&Note::Copy(copy(SUM, TOTAL, BYTES)));
            let nothing = POOL + 0x3000;
            app.work([SUM, nothing, TOTAL]);
            app.add("second", TOTAL, B, OUT);
            app.read_and_finish(OUT)
        };
        let found = replayed(record, &fixed("second.sum"), "first.a");
        let doubt = |text: &String| text.starts_with("whether the GPU or the CPU does");
        assert_eq!(found.remarks.iter().any(doubt), !known);
        assert_eq!(
            names(&found.tensors),
            [(Role::Input, "first.a"), (Role::Output, "out")]
        );
    }
    // A runtime job that writes elsewhere is no copy.
    let mut app = Noted::start();
    app.mapped(TOTAL);
    app.write(B, &tags(2));
    app.write(A, &tags(1));
    app.add("first", A, B, SUM);
    app.copy(SUM, TOTAL);
    app.work([A, B, OUT]);
    app.add("second", TOTAL, B, OUT);
    app.read(OUT);
    refused(&app.finish(), None);
}

#[test]
fn what_weights_alone_make_may_be_copied_if_they_are_fixed() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(B, &tags(2));
        app.add("prepare", B, B, SUM);
        app.copy(SUM, TOTAL);
        app.write(A, &tags(seed));
        app.add("infer", A, TOTAL, OUT);
        app.read_and_finish(OUT)
    };
    let (first, second) = (record(1).1, record(3).1);
    let text = refused(&first, Some(&second));
    assert!(text.contains("--fixed-weights"), "{text}");
    // One run does not tell whether it is a copied weight.
    let weights_stay = Choices {
        fixed_weights: true,
        ..Choices::default()
    };
    let text = propose(&first, None, &weights_stay)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("clEnqueueCopyBuffer") && !text.contains("--fixed-weights"),
        "{text}"
    );
    replayed(record, &fixed("infer.sum"), "infer.a");
}

#[test]
fn an_output_without_an_input_is_said() {
    let record = |seed: u64| {
        let mut app = Noted::start();
        app.write(A, &tags(seed));
        app.write(B, &tags(2));
        app.add("first", A, B, SUM);
        app.read(SUM);
        app.add("second", B, B, OUT);
        app.read(OUT);
        app.finish()
    };
    let found = propose(&record(1), Some(&record(3)), &Choices::default()).unwrap();
    assert_eq!(
        found.remarks,
        ["output 'second.sum' depends on no input: a replay gives the same answer for every input"]
    );
}

#[test]
fn a_fill_after_the_last_kernel_is_said() {
    let record = |size: u64| {
        let mut app = Noted::start();
        app.write(A, &tags(1));
        app.add("only", A, A, OUT);
        app.driver.store(OUT, &vec![0; size as usize]);
        app.driver.note(&Note::Fill(Filled {
            at: place(OUT),
            size,
            queue: Some(0),
            call: "clEnqueueFillBuffer".into(),
        }));
        app.read(OUT);
        propose(&app.finish(), None, &Choices::default()).unwrap()
    };
    let found = record(64);
    assert!(found.lost_output);
    let said = "'only.sum' is no output: clEnqueueFillBuffer overwrites a part of it";
    assert!(
        found.remarks.len() == 1 && found.remarks[0].starts_with(said),
        "{:?}",
        found.remarks
    );
    let found = record(BYTES);
    assert!(!found.lost_output);
    assert!(
        found.remarks[0].starts_with("no output"),
        "{:?}",
        found.remarks
    );
}

/// `sum = a + b`, the CPU's part, `out = total + b`.
fn silent(seed: u64, two: bool, between: impl Fn(&mut Driver)) -> (Tensor, Capture) {
    let mut driver = driver(&crate::notes::OBJECTS, &[]);
    driver.store(CODE + 0x80, &vector_add_code());
    driver.store(A, tags(seed).bytes());
    driver.store(B, tags(2).bytes());
    if two {
        driver.run(POOL, &vector_add(POOL, CODE + 0x80, A, B, SUM));
    }
    between(&mut driver);
    let other = if two { B } else { A };
    driver.run(POOL, &vector_add(POOL, CODE + 0x80, TOTAL, other, OUT));
    let out = Tensor::new(ElementType::F32, &[32, 32], driver.load(OUT, 4 * COUNT)).unwrap();
    let capture = Capture::read(driver.finish().as_slice()).unwrap();
    (out, capture)
}

fn moved(from: u64, to: u64) -> impl Fn(&mut Driver) {
    move |driver| {
        let bytes = driver.load(from, BYTES as usize);
        driver.store(to, &bytes);
    }
}

#[test]
fn without_notes_a_copy_of_what_a_job_computed_is_no_input() {
    let record = |seed| silent(seed, true, moved(SUM, TOTAL)).1;
    let refused = propose_unnoted(&record(1), &record(3), &Choices::default());
    let text = refused.unwrap_err().to_string();
    let words = "'input-2', which the CPU writes before job 1, is what job 0 computed";
    assert!(text.starts_with(words), "{text}");
    let half = |driver: &mut Driver| {
        let bytes = driver.load(SUM + BYTES / 2, BYTES as usize / 2);
        driver.store(TOTAL + 64, &bytes);
    };
    let record = |seed| silent(seed, true, half).1;
    let refused = propose_unnoted(&record(1), &record(3), &Choices::default());
    assert!(matches!(refused, Err(ProposeError::Carried { .. })));
    let record = |seed: u64| {
        let other = tags(seed + 10);
        silent(seed, true, move |driver| driver.store(TOTAL, other.bytes())).1
    };
    let found = propose_unnoted(&record(1), &record(3), &Choices::default()).unwrap();
    let inputs = found.tensors.iter().filter(|t| t.role == Role::Input);
    assert_eq!(inputs.count(), 2);
}

#[test]
fn without_notes_a_copy_of_the_input_is_the_input() {
    let record = |seed| silent(seed, false, moved(A, TOTAL));
    let choices = out_is("output");
    let (first, second) = (record(1).1, record(3).1);
    let found = propose_unnoted(&first, &second, &choices).unwrap();
    assert_eq!(
        names(&found.tensors),
        [(Role::Input, "input"), (Role::Output, "out")]
    );
    let agrees = differential::compare(&first, &found.tensors, &second, &found.second, &[]);
    agrees.unwrap();
    let recording = compiled(&first, found.tensors);
    let input = tags(5);
    assert_eq!(answer(&recording, "input", &input), flat(&record(5).0));
}
