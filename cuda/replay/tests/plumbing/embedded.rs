// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs open CUDA runs as recordings, on the stand-in.

use std::path::Path;

use gpureplay_cuda_replay::embed::{from_bytes, open};
use gpureplay_library::{Class, ElementType, Options, Recorded, Replay, Tensor, TensorKind, Trust};

use crate::app::turns::{TURNS, input, weights};
use crate::stage::{Stage, ended};

const INSIDE: &str = "PLUMBING_INSIDE";

fn recorded(what: &str, words: &str) -> Stage {
    let stage = Stage::new();
    stage.record_turns(what, words);
    stage
}

/// Runs the test again in a process with the stand-in; true in there.
fn inside(name: &str, stage: impl FnOnce() -> Stage) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    ended(&mut stage().test_command(name, INSIDE))
        .gave(0)
        .says("1 passed");
    false
}

fn answer(turn: usize) -> Vec<u8> {
    std::fs::read(format!("answers/{turn}")).unwrap()
}

fn opened() -> Box<dyn Recorded> {
    open(Path::new("rec"), &Trust::default()).unwrap()
}

fn numbers(turn: usize) -> Tensor {
    Tensor::new(ElementType::F32, &[16, 16], input(turn)).unwrap()
}

fn run(session: &mut dyn Replay, turn: usize) -> Vec<u8> {
    session.bind("x", numbers(turn)).unwrap();
    session.run().unwrap();
    session.read("out0").unwrap().into_bytes()
}

const FORMS: &str = "--name in0=x --tensor x=f32[16,16]";

#[test]
fn states_stay_from_run_to_run_until_they_are_reset() {
    if !inside(
        "embedded::states_stay_from_run_to_run_until_they_are_reset",
        || recorded("state", FORMS),
    ) {
        return;
    }
    let recording = opened();
    let names: Vec<_> = recording
        .tensors()
        .iter()
        .map(|info| (&*info.name, info.kind, info.to_string()))
        .collect();
    assert_eq!(
        names,
        [
            ("x", TensorKind::Input, "f32[16,16]".to_owned()),
            ("out0", TensorKind::Output, "u8[1024]".to_owned())
        ]
    );
    let mut session = recording.replay(Options::default()).unwrap();
    for _ in 0..2 {
        for turn in 0..TURNS {
            assert_eq!(run(&mut *session, turn), answer(turn), "turn {turn}");
        }
        session.reset_states().unwrap();
    }
    assert!(session.timing().run > std::time::Duration::ZERO);
    let moved = std::thread::spawn(move || run(&mut *session, 0));
    assert_eq!(moved.join().unwrap(), answer(0));
    let mut next = recording.replay(Options::default()).unwrap();
    assert_eq!(run(&mut *next, 0), answer(0));
    // The other session holds the addresses; this one may try again later.
    let mut other = recording.replay(Options::default()).unwrap();
    other.bind("x", numbers(0)).unwrap();
    let error = other.run().unwrap_err();
    assert_eq!(error.class(), Class::Device);
    assert!(error.to_string().contains("are taken"), "{error}");
    drop(next);
    assert_eq!(run(&mut *other, 0), answer(0));
}

#[test]
fn a_pack_is_used_from_memory() {
    let stage = || {
        let stage = recorded("state", FORMS);
        stage.run("pack rec -o rec.gprpack").gave(0);
        stage.run("pack rec -o rec.gprpack").gave(2);
        for words in ["run rec.gprpack", "verify rec.gprpack", "info rec.gprpack"] {
            stage.run(words).gave(0);
        }
        std::fs::rename(stage.path("rec"), stage.path("gone")).unwrap();
        stage
    };
    if !inside("embedded::a_pack_is_used_from_memory", stage) {
        return;
    }
    let mut bytes = std::fs::read("rec.gprpack").unwrap();
    let by_path = open(Path::new("rec.gprpack"), &Trust::default()).unwrap();
    for recording in [by_path, from_bytes(bytes.clone()).unwrap()] {
        let mut session = recording.replay(Options::default()).unwrap();
        for turn in 0..TURNS {
            assert_eq!(run(&mut *session, turn), answer(turn), "turn {turn}");
        }
    }
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(from_bytes(bytes).err().unwrap().class(), Class::Recording);
}

#[test]
fn layers_run_one_by_one() {
    let stage = || {
        let stage = Stage::new();
        stage.record("--run --name in0=x", "region ranges").gave(0);
        stage
    };
    if !inside("embedded::layers_run_one_by_one", stage) {
        return;
    }
    let recording = opened();
    let names: Vec<&str> = recording
        .layers()
        .iter()
        .map(|layer| &*layer.name)
        .collect();
    assert_eq!(names, ["outer", "last"]);
    assert_eq!(recording.layers()[0].jobs, 3);
    let mut session = recording.replay(Options::default()).unwrap();
    let ones = Tensor::new(ElementType::U8, &[1024], 1f32.to_le_bytes().repeat(256)).unwrap();
    session.bind("x", ones).unwrap();
    let first = |session: &mut dyn Replay| {
        let bytes = session.read("out0").unwrap().into_bytes();
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    session.run_layers(0..1).unwrap();
    let error = session.read("out0").unwrap_err().to_string();
    assert!(error.contains("nothing has run"), "{error}");
    session.run().unwrap();
    assert_eq!(first(&mut *session), 30.0);
    session.run_layers(0..1).unwrap();
    session.run_layers(1..2).unwrap();
    assert_eq!(first(&mut *session), 30.0);
    session.reset_states().unwrap();
    // The first layer's memory is missing.
    session.run_layers(1..2).unwrap();
    assert_ne!(first(&mut *session), 30.0);
    let error = session.run_layers(1..3).unwrap_err().to_string();
    assert!(error.contains("no layer 1..3"), "{error}");
}

#[test]
fn numbers_of_the_host_are_inputs() {
    if !inside("embedded::numbers_of_the_host_are_inputs", || {
        recorded("number", FORMS)
    }) {
        return;
    }
    let recording = opened();
    let mut session = recording.replay(Options::default()).unwrap();
    session.bind("x", numbers(0)).unwrap();
    let error = session.run().unwrap_err().to_string();
    assert!(error.contains("input host0 f32[] has no value"), "{error}");
    for turn in 0..TURNS {
        let factor = (turn as f32 + 2.0).to_le_bytes().to_vec();
        let factor = Tensor::new(ElementType::F32, &[], factor).unwrap();
        session.bind("host0", factor).unwrap();
        assert_eq!(run(&mut *session, turn), answer(turn), "turn {turn}");
    }
    for (name, form, part) in [
        ("x", &[1024][..], "expected f32[16,16]"),
        ("y", &[16, 16], "no tensor y"),
        ("out0", &[16, 16], "its kind is output"),
    ] {
        let value = Tensor::zeros(ElementType::F32, form).unwrap();
        let error = session.bind(name, value).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_run_that_does_not_hold_is_not_opened() {
    if !inside("embedded::a_run_that_does_not_hold_is_not_opened", || {
        recorded("slot", FORMS)
    }) {
        return;
    }
    let error = opened().replay(Options::default()).err().unwrap();
    assert_eq!(error.class(), Class::Usage);
    let text = error.to_string();
    assert!(text.contains("does not hold for other inputs"), "{text}");
}

#[test]
fn a_session_takes_other_weights() {
    let stage = || {
        let stage = Stage::new();
        for (name, second) in [("model", 1), ("other", 2)] {
            let held = [("first", weights(0)), ("second", weights(second))];
            let path = stage.path(&format!("{name}.safetensors"));
            std::fs::write(path, crate::weights::file(&held)).unwrap();
        }
        let weights = stage.path("model.safetensors");
        let words = format!("{FORMS} --weights {}", weights.display());
        stage
            .record(&format!("--run {words}"), "turns weights")
            .gave(0);
        stage
    };
    if !inside("embedded::a_session_takes_other_weights", stage) {
        return;
    }
    let mut session = opened().replay(Options::default()).unwrap();
    let tripled = |number: usize| -> Vec<u8> {
        let words = weights(number);
        let numbers = words.as_chunks::<4>().0.iter();
        numbers
            .flat_map(|word| (f32::from_le_bytes(*word) * 3.0).to_le_bytes())
            .collect()
    };
    run(&mut *session, 1);
    assert_eq!(session.read("out1").unwrap().into_bytes(), tripled(1));
    session
        .bind_weights(Path::new("other.safetensors"))
        .unwrap();
    run(&mut *session, 1);
    assert_eq!(session.read("out1").unwrap().into_bytes(), tripled(2));
}

#[test]
fn a_reset_that_fails_midway_leaves_no_session_that_is_half_reset() {
    const NAME: &str = "embedded::a_reset_that_fails_midway_leaves_no_session_that_is_half_reset";
    if std::env::var_os(INSIDE).is_none() {
        let stage = recorded("state", FORMS);
        let mut failed = 0;
        for call in 1..2000 {
            let mut command = stage.test_command(NAME, INSIDE);
            let said = ended(command.env("GPUREPLAY_FAKE_FAIL", call.to_string())).gave(0);
            failed += usize::from(said.out.contains("the reset fails"));
            if !said.err.contains("fails on purpose") {
                said.says("the reset works");
                assert!(failed >= 2, "only {failed} calls of the reset failed");
                return;
            }
        }
        panic!("no reset worked");
    }
    // Earlier failures end the process: only the reset's count.
    let recording = opened();
    let Ok(mut session) = recording.replay(Options::default()) else {
        return;
    };
    for turn in 0..2 {
        session.bind("x", numbers(turn)).unwrap();
        if session.run().is_err() {
            return;
        }
    }
    match session.reset_states() {
        Ok(()) => println!("the reset works"),
        Err(_) => println!("the reset fails"),
    }
    // From the beginning, or not at all.
    session.bind("x", numbers(0)).unwrap();
    if session.run().is_ok() {
        let found = session.read("out0").unwrap().into_bytes();
        assert_eq!(found, answer(0));
    }
}
