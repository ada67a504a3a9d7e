// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--repeat`, `--state-in`, `--state-out`.

use std::path::Path;

use crate::start::{Ended, Folder, ran, ran_in, repository, shipped};

fn train(directory: &Path, words: &str) -> (i32, String, String) {
    let recording = shipped("train-perceptron-g52");
    ran_in(directory, &format!("run {} {words}", recording.display()))
}

fn losses(directory: &Path, name: &str, words: &str) -> Vec<u8> {
    train(directory, &format!("{words} --output loss={name}")).gave(0);
    std::fs::read(directory.join(name)).unwrap()
}

#[test]
fn a_file_of_states_goes_on_with_the_training() {
    let directory = Folder::default();
    let path = directory.path();
    let whole = losses(path, "whole.bin", "--repeat 4");
    assert_eq!(whole.len(), 4 * 4);
    let first = losses(path, "first.bin", "--repeat 2 --state-out s.safetensors");
    // The second attempt begins after the first half.
    let second = losses(
        path,
        "second.bin",
        "--repeat 2 --state-in s.safetensors --inject job-fault@100 --retry 1",
    );
    assert_eq!([first, second].concat(), whole);
    let third = losses(path, "third.bin", "--state-in s.safetensors");
    assert_eq!(third, whole[8..12]);
}

#[test]
fn inputs_come_run_by_run_from_a_directory() {
    let directory = Folder::default();
    let inputs = shipped("train-perceptron-g52").join("inputs");
    let inputs = inputs.display();
    let path = directory.path();
    let whole = losses(path, "whole.bin", "--repeat 2");
    let same = losses(path, "same.bin", &format!("--repeat 2 --inputs {inputs}"));
    assert_eq!(same, whole);
    let wrong = train(path, "--repeat 2 --inputs .");
    assert_eq!(wrong.0, 4);
    assert!(
        wrong.2.contains("has no NAME.npy of an input"),
        "{}",
        wrong.2
    );
    let wrong = train(path, "--state-out states.npy");
    assert_eq!(wrong.0, 2);
}

fn write(words: &str, written: &str) {
    let directory = Folder::default();
    let text = directory.at("text.bin");
    ran(&format!(
        "run {words} --repeat 1000 --output {}",
        text.display()
    ))
    .gave(0);
    let expected = std::fs::read_to_string(repository().join(written)).unwrap();
    assert_eq!(std::fs::read_to_string(text).unwrap(), expected);
}

#[test]
fn a_thousand_characters_of_a_recurrent_network_are_those_of_numpy() {
    write(
        "recordings/generate-g52 --input recordings/generate-g52/inputs/forced2.npy",
        "tools/generation/written.txt",
    );
}

/// The state keeps the last 128 positions; the inputs `place` and `mask` change in each run.
#[test]
fn a_thousand_characters_of_a_transformer_are_those_of_numpy() {
    write(
        "recordings/decode-g52 --inputs tools/decoding/steps",
        "tools/decoding/written.txt",
    );
}

fn arrays(path: &Path) -> impl Fn(&str) -> Vec<f64> + use<> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = bytes[8..].split_at(length);
    let header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let data = data.to_vec();
    move |name| {
        let place = |end: usize| header[name]["data_offsets"][end].as_u64().unwrap() as usize;
        let values = data[place(0)..place(1)].chunks_exact(4);
        values
            .map(|four| f32::from_le_bytes(four.try_into().unwrap()).into())
            .collect()
    }
}

fn layer(weights: &[f64], bias: &[f64], input: &[f64]) -> Vec<f64> {
    let rows = weights.chunks_exact(input.len()).zip(bias);
    let sums = rows.map(|(row, bias)| {
        let products = row.iter().zip(input).map(|(weight, value)| weight * value);
        bias + products.sum::<f64>()
    });
    sums.collect()
}

#[test]
fn what_the_perceptron_learns_runs_in_its_inference() {
    let directory = Folder::default();
    let gpureplay = |words: &str| {
        ran_in(directory.path(), words).gave(0);
    };
    let training = shipped("train-perceptron-g52");
    let inference = shipped("perceptron-g52");
    let image = inference.join("inputs/3.npy");
    let training = training.display();
    gpureplay(&format!(
        "run {training} --repeat 5 --state-out learnt.safetensors"
    ));
    let infer = format!(
        "run {} --input {} --output",
        inference.display(),
        image.display()
    );
    gpureplay(&format!("{infer} own.npy"));
    gpureplay(&format!("{infer} learnt.npy --weights learnt.safetensors"));

    let learnt = arrays(&directory.at("learnt.safetensors"));
    let image: Vec<f64> = gpureplay_tensors::read_npy(&image)
        .unwrap()
        .values()
        .collect();
    let mut hidden = layer(&learnt("fc1.weight"), &learnt("fc1.bias"), &image);
    hidden.iter_mut().for_each(|value| *value = value.max(0.0));
    let scores = layer(&learnt("fc2.weight"), &learnt("fc2.bias"), &hidden);
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    let read = |name: &str| gpureplay_tensors::read_npy(&directory.at(name)).unwrap();
    let (found, own) = (read("learnt.npy"), read("own.npy"));
    assert_eq!(found.len(), 10);
    for (found, score) in found.values().zip(&scores) {
        let expected = score.exp() / sum;
        assert!(
            (found - expected).abs() <= 1e-5 * expected,
            "{found} {expected}"
        );
    }
    assert_ne!(found.bytes(), own.bytes());
}
