// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that go on from each other: `--repeat`, `--state-in`, `--state-out`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/train-digits-g52")
}

/// Trains in a directory, with the batch that was recorded in every step.
fn train(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .current_dir(directory)
        .arg("run")
        .arg(recording())
        .args(arguments)
        .output()
        .unwrap()
}

fn losses(directory: &Path, name: &str, arguments: &[&str]) -> Vec<u8> {
    let to = format!("loss={name}");
    let output = train(directory, &[arguments, &["--output", &to]].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    std::fs::read(directory.join(name)).unwrap()
}

#[test]
fn a_file_of_states_goes_on_with_the_training() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let whole = losses(path, "whole.bin", &["--repeat", "4"]);
    assert_eq!(whole.len(), 4 * 4);
    let first = losses(
        path,
        "first.bin",
        &["--repeat", "2", "--state-out", "s.safetensors"],
    );
    // A job of the second half fails, and the second attempt begins where the first half ended.
    let second = losses(
        path,
        "second.bin",
        &[
            "--repeat",
            "2",
            "--state-in",
            "s.safetensors",
            "--inject",
            "job-fault@300",
            "--retry",
            "1",
        ],
    );
    assert_eq!([first, second].concat(), whole);
    // One run goes on as well.
    let third = losses(path, "third.bin", &["--state-in", "s.safetensors"]);
    assert_eq!(third, whole[8..12]);
}

#[test]
fn inputs_come_run_by_run_from_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = recording().join("inputs");
    let inputs = inputs.to_str().unwrap();
    let path = directory.path();
    let whole = losses(path, "whole.bin", &["--repeat", "2"]);
    let same = losses(path, "same.bin", &["--repeat", "2", "--inputs", inputs]);
    assert_eq!(same, whole);
    let wrong = train(path, &["--repeat", "2", "--inputs", "."]);
    assert_eq!(wrong.status.code(), Some(4));
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(text.contains("has no NAME.npy of an input"), "{text}");
    let wrong = train(path, &["--state-out", "states.npy"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Writes a thousand characters, and compares them with those that NumPy wrote.
fn write(recording: &str, inputs: &[&str], written: &str) {
    let directory = tempfile::tempdir().unwrap();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [option, values] = inputs else {
        unreachable!()
    };
    let output = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
        .current_dir(directory.path())
        .arg("run")
        .arg(top.join(recording))
        .arg(option)
        .arg(top.join(values))
        .args(["--repeat", "1000", "--output", "text.bin"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let found = std::fs::read(directory.path().join("text.bin")).unwrap();
    let expected = std::fs::read(top.join(written)).unwrap();
    assert_eq!(
        String::from_utf8(found).unwrap(),
        String::from_utf8(expected).unwrap()
    );
}

#[test]
fn a_thousand_characters_of_a_recurrent_network_are_those_of_numpy() {
    write(
        "recordings/generate-g52",
        &["--input", "recordings/generate-g52/inputs/forced2.npy"],
        "tools/generation/written.txt",
    );
}

/// Its keys and values of the last 128 positions go from run to run, and each run has another place and another mask.
#[test]
fn a_thousand_characters_of_a_transformer_are_those_of_numpy() {
    write(
        "recordings/decode-g52",
        &["--inputs", "tools/decoding/steps"],
        "tools/decoding/written.txt",
    );
}

/// The arrays of a .safetensors file by name.
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

/// The rows of a matrix times a vector, and a bias.
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
    let directory = tempfile::tempdir().unwrap();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let gpureplay = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gpureplay"))
            .current_dir(directory.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
    };
    let at = |path: &str| top.join(path).to_str().unwrap().to_owned();
    let (training, inference) = (
        at("recordings/train-perceptron-g52"),
        at("recordings/perceptron-g52"),
    );
    let image = at("recordings/perceptron-g52/inputs/3.npy");
    gpureplay(&[
        "run",
        &training,
        "--repeat",
        "5",
        "--state-out",
        "learnt.safetensors",
    ]);
    let infer = ["run", &inference, "--input", &image, "--output"];
    gpureplay(&[&infer[..], &["own.npy"]].concat());
    gpureplay(
        &[
            &infer[..],
            &["learnt.npy", "--weights", "learnt.safetensors"],
        ]
        .concat(),
    );

    let learnt = arrays(&directory.path().join("learnt.safetensors"));
    let image: Vec<f64> = gpureplay_io::read_npy(Path::new(&image))
        .unwrap()
        .values()
        .collect();
    let mut hidden = layer(&learnt("fc1.weight"), &learnt("fc1.bias"), &image);
    hidden.iter_mut().for_each(|value| *value = value.max(0.0));
    let scores = layer(&learnt("fc2.weight"), &learnt("fc2.bias"), &hidden);
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    let read = |name: &str| gpureplay_io::read_npy(&directory.path().join(name)).unwrap();
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
