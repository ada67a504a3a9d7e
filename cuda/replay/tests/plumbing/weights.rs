// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights in a file of their own.

use std::fs;

use crate::app::turns::{input, weights};
use crate::stage::Stage;

/// A `.safetensors` file of 32-bit floats, without the library that reads it.
pub(crate) fn file(tensors: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut at = 0;
    let entries = tensors.iter().map(|(name, bytes)| {
        let (begin, count) = (at, bytes.len() / 4);
        at += bytes.len();
        format!(r#""{name}":{{"dtype":"F32","shape":[{count}],"data_offsets":[{begin},{at}]}}"#)
    });
    let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    tensors.iter().for_each(|(_, bytes)| file.extend(bytes));
    file
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn recorded() -> Stage {
    let stage = Stage::new();
    let ones = [1f32; 64].map(f32::to_le_bytes).concat();
    let held = [
        ("first", weights(0)),
        ("ones", ones.clone()),
        ("second", weights(1)),
    ];
    stage.write("w.safetensors", file(&held));
    let said = stage.record("--run --weights w.safetensors", "turns weights");
    let found = "run 0: 2 of 3 tensors are in w.safetensors, 2.0 kB";
    assert!(said.err.contains(found), "{said:?}");
    assert!(
        said.err.contains("cross-checked: 3 later turns"),
        "{said:?}"
    );
    stage
}

#[test]
fn weights_are_named_and_not_kept() {
    let stage = recorded();
    let needle = weights(1);
    let objects = stage.objects();
    for object in &objects {
        let bytes = fs::read(object).unwrap();
        let held = bytes.windows(64).any(|window| window == &needle[256..320]);
        assert!(!held, "the recording does not hold the weights");
    }
    assert!(objects.len() > 2);
    stage
        .run("info rec")
        .says("2 of 3 tensors of w.safetensors");
    stage.run("verify rec").gave(0);
    for how in ["", "--no-graph", "--weights w.safetensors"] {
        stage
            .run(&format!("run rec {how}"))
            .gave(0)
            .says("3 of 3 later turns");
    }
    stage.run("bench rec --runs 2").gave(0);
}

#[test]
fn other_weights_give_other_answers() {
    let stage = recorded();
    let other: Vec<f32> = floats(&weights(1)).iter().map(|x| x * 0.5 + 7.0).collect();
    let bytes: Vec<u8> = other.iter().flat_map(|x| x.to_le_bytes()).collect();
    let ones = [1f32; 64].map(f32::to_le_bytes).concat();
    let held = [
        ("first", weights(0)),
        ("ones", ones),
        ("second", bytes.clone()),
    ];
    stage.write("other.safetensors", file(&held));
    stage.write("x", input(3));
    stage
        .run("run rec --weights other.safetensors --input x --output out1=y")
        .gave(0)
        .warns("1 tensors of the weights are others");
    let expected: Vec<f32> = other.iter().map(|x| x * 3.0).collect();
    assert_eq!(floats(&stage.read("y")), expected);
    stage.run("run rec --output out1=y").gave(0);
    assert_ne!(floats(&stage.read("y")), expected);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let stage = recorded();
    let ones = [1f32; 64].map(f32::to_le_bytes).concat();
    let twos = [2f32; 64].map(f32::to_le_bytes).concat();
    let all = |ones: &Vec<u8>, second: Vec<u8>| {
        file(&[
            ("first", weights(0)),
            ("ones", ones.clone()),
            ("second", second),
        ])
    };
    let mut lies = all(&ones, weights(1));
    lies[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    for (bytes, reason) in [
        (
            all(&twos, weights(1)),
            "ones is not as recorded, and was not found",
        ),
        (
            all(&ones, weights(1)[..512].to_vec()),
            "second is F32[128], not F32[256]",
        ),
        (file(&[("first", weights(0))]), "ones is missing"),
        (lies, "a header of 18446744073709551615 bytes"),
        (b"short".to_vec(), "shorter than the length of its header"),
        (
            vec![2, 0, 0, 0, 0, 0, 0, 0, b'{', b'}', 0],
            "not that of the tensors",
        ),
    ] {
        stage.write("bad.safetensors", bytes);
        let said = stage.run("run rec --weights bad.safetensors");
        assert!(matches!(said.code, Some(2 | 4)), "{said:?}");
        assert!(said.err.contains(reason), "{reason}: {said:?}");
    }
    stage.write("w.safetensors", all(&ones, weights(2)));
    stage
        .run("run rec")
        .warns("second of the weights: is not as recorded");
    fs::remove_file(stage.path("w.safetensors")).unwrap();
    stage
        .run("run rec")
        .gave(2)
        .warns("does not lie beside the recording");
}

fn recorded_with(extra: &[(&str, Vec<u8>)], found: &str) -> Stage {
    let stage = Stage::new();
    let mut held = extra.to_vec();
    held.extend([("first", weights(0)), ("second", weights(1))]);
    stage.write("w.safetensors", file(&held));
    stage
        .record("--run --weights w.safetensors", "turns weights")
        .gave(0)
        .warns(found);
    stage
}

#[test]
fn tensors_that_were_alike_stay_alike() {
    // One place, two names: undecidable.
    let stage = recorded_with(&[("twin", weights(1))], "run 0: 2 of 3 tensors");
    let run = |second: Vec<u8>, twin: Vec<u8>| {
        let held = [("first", weights(0)), ("second", second), ("twin", twin)];
        stage.write("other.safetensors", file(&held));
        stage.run("run rec --weights other.safetensors --output out1=y")
    };
    for (second, twin) in [(2, 1), (1, 2), (2, 3)] {
        run(weights(second), weights(twin))
            .gave(2)
            .warns("cannot be told apart");
    }
    run(weights(2), weights(2)).gave(0);
    let expected: Vec<f32> = floats(&weights(2)).iter().map(|x| x * 3.0).collect();
    assert_eq!(floats(&stage.read("y")), expected);
}

#[test]
fn a_tensor_is_not_found_in_the_place_of_another() {
    // Zeros first, as where the first tensor was.
    let long = [vec![0; 16 + 256], weights(1)].concat();
    let stage = recorded_with(&[("long", long)], "run 0: 2 of 3 tensors");
    stage.run("run rec").gave(0);
}
