// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many inputs and runs, and Ctrl-C.

use std::fs;

use gpureplay_tensors::{ElementType, Tensor, read_npy, write_npy};

use crate::start::Ended;
use crate::user_files::Copy;

#[test]
fn each_input_has_a_row() {
    let copy = Copy::of("digits-g52");
    let all = "run rec --inputs rec/inputs --output all.npy";
    let (code, out, error) = copy.ran(all);
    assert!(code == 0 && out.contains("per second"), "{out}{error}");
    let rows = read_npy(&copy.at("all.npy")).unwrap();
    let mut files: Vec<_> = fs::read_dir(copy.at("rec/inputs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(rows.shape(), [files.len() as u64, 10]);
    copy.ran("run rec --inputs rec/inputs -o probabilities=all.csv --quiet")
        .gave(0);
    let text = fs::read_to_string(copy.at("all.csv")).unwrap();
    assert_eq!(text.lines().next(), Some("input,0,1,2,3,4,5,6,7,8,9"));
    for ((row, line), file) in rows
        .bytes()
        .chunks(40)
        .zip(text.lines().skip(1))
        .zip(&files)
    {
        let name = file.to_str().unwrap();
        copy.ran(&format!("run rec --input {name} --output one.npy --force"))
            .gave(0);
        assert_eq!(
            read_npy(&copy.at("one.npy")).unwrap().bytes(),
            row,
            "{name}"
        );
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[0], file.file_name().unwrap().to_str().unwrap());
        let values: Vec<u8> = cells[1..]
            .iter()
            .flat_map(|cell| cell.parse::<f32>().unwrap().to_le_bytes())
            .collect();
        assert_eq!(values, row, "{name}");
    }
}

#[test]
fn rows_replace_no_input_and_have_a_format() {
    let copy = Copy::of("digits-g52");
    for (file, said) in [
        ("rec/inputs/3.npy", "this command reads"),
        ("none/x.npy", "does not exist"),
        ("x.txt", "x.txt"),
    ] {
        copy.ran(&format!("run rec --inputs rec/inputs --force -o {file}"))
            .failed(said);
    }
    copy.ran("run rec --inputs rec/inputs --json -o -")
        .ended(2, "standard output");
}

#[test]
fn ctrl_c_keeps_the_states_of_the_last_complete_run() {
    let copy = Copy::of("train-perceptron-g52");
    let run = "run rec --json --state-out";
    let words = format!("{run} stopped.safetensors --repeat 4000000");
    let report = copy.interrupted(&words);
    let after = report["stopped"]["after"].as_u64().unwrap();
    assert_eq!(report["stopped"]["of"], 4_000_000);
    assert!(after > 0 && report["runs"] == after, "{report}");
    let words = format!("{run} whole.safetensors --repeat {after}");
    let out = copy.ran(&words).gave(0);
    assert!(!out.contains("stopped"), "{out}");
    let file = |name: &str| fs::read(copy.at(name)).unwrap();
    assert_eq!(file("stopped.safetensors"), file("whole.safetensors"));
}

#[test]
fn ctrl_c_keeps_the_rows_of_complete_inputs() {
    let copy = Copy::of("digits-g52");
    let one = read_npy(&copy.at("rec/inputs/3.npy")).unwrap();
    let bytes = one.bytes().repeat(200_000);
    let many = Tensor::new(ElementType::F32, &[200_000, 8, 8], bytes).unwrap();
    write_npy(&copy.at("many.npy"), &many).unwrap();
    let report = copy.interrupted("run rec --inputs many.npy --json -o rows.npy");
    let after = report["stopped"]["after"].as_u64().unwrap();
    assert_eq!(report["answers"].as_array().unwrap().len() as u64, after);
    let rows = read_npy(&copy.at("rows.npy")).unwrap();
    assert_eq!(rows.shape(), [after, 10]);
    let answers = report["answers"].as_array().unwrap();
    assert!(answers.iter().all(|answer| answer["class"] == 3));
    let (first, last) = (
        rows.bytes().chunks(40).next(),
        rows.bytes().chunks(40).last(),
    );
    assert_eq!(first, last);
}
