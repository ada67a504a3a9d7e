// SPDX-License-Identifier: MIT OR Apache-2.0
//! recordings/digits-g52 answers every held-out digit as the CPU does.
#![allow(clippy::indexing_slicing)]

use std::path::Path;

use gpureplay_kit::command::Words;
use gpureplay_library::{Options, Recording};
use gpureplay_tensors::{ElementType, Tensor, read_npy};

use crate::start::{Ended, Folder, Says, json, ran, ran_in, repository, shipped};
use crate::values::{self, png};

/// For a probability, against double precision.
const TOLERANCE: f64 = 1e-5;
const CLASSES: usize = 10;
const SESSIONS: usize = 4;

fn held_out(name: &str) -> Tensor {
    read_npy(&repository().join(format!("tools/digits/held-out/{name}.npy"))).unwrap()
}

/// Images are 8 x 8 float32.
fn replay<'a>(
    images: impl Iterator<Item = &'a [u8]>,
    weights: &[(&str, &Tensor)],
) -> Vec<[f64; CLASSES]> {
    let recording = Recording::open(shipped("digits-g52")).unwrap();
    let mut options = Options::default();
    options.model.threads = Some(1);
    let mut session = recording.session(options).unwrap();
    for (name, value) in weights {
        session.bind(name, (*value).clone()).unwrap();
    }
    images
        .map(|image| {
            let image = Tensor::new(ElementType::F32, &[8, 8], image.to_vec()).unwrap();
            session.bind("input", image).unwrap();
            session.run().unwrap();
            let probabilities = session.read("probabilities").unwrap();
            std::array::from_fn(|class| probabilities.value(class))
        })
        .collect()
}

fn largest(probabilities: &[f64]) -> usize {
    (0..CLASSES)
        .max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
        .unwrap()
}

#[test]
fn the_replay_answers_as_the_cpu_does_for_every_held_out_digit() {
    let (images, labels) = (held_out("images"), held_out("labels"));
    let expected: Vec<f64> = held_out("probabilities").values().collect();
    let images: Vec<&[u8]> = images.bytes().chunks_exact(4 * 64).collect();
    assert_eq!(images.len(), labels.len());

    let mut found = Vec::new();
    std::thread::scope(|scope| {
        let parts = images.chunks(images.len().div_ceil(SESSIONS));
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(|| replay(part.iter().copied(), &[])))
            .collect();
        for thread in threads {
            found.extend(thread.join().unwrap());
        }
    });

    let (mut right, mut right_on_cpu, mut worst) = (0, 0, 0f64);
    for (image, found) in found.iter().enumerate() {
        let expected = &expected[image * CLASSES..][..CLASSES];
        let label = labels.value(image) as usize;
        assert_eq!(largest(found), largest(expected), "image {image}");
        right += usize::from(largest(found) == label);
        right_on_cpu += usize::from(largest(expected) == label);
        for (a, b) in found.iter().zip(expected) {
            worst = worst.max((a - b).abs());
        }
    }
    println!(
        "replay: {right} of {} right; CPU: {right_on_cpu}, the same images; largest difference {worst:.1e}",
        found.len()
    );
    assert_eq!(right, right_on_cpu);
    assert!(right * 100 >= found.len() * 99, "{right}");
    assert!(worst <= TOLERANCE, "{worst:e}");
}

#[test]
fn other_weights_give_another_network() {
    let reversed = |name: &str, row: usize| {
        let path = repository().join(format!("tools/digits/weights/{name}.npy"));
        let tensor = read_npy(&path).unwrap();
        let rows = tensor.bytes().chunks_exact(4 * row).rev();
        Tensor::new(
            ElementType::F32,
            tensor.shape(),
            rows.flatten().copied().collect(),
        )
        .unwrap()
    };
    let (weight, bias) = (reversed("fc.weight", 128), reversed("fc.bias", 1));
    let images = held_out("images");
    let some = || images.bytes().chunks_exact(4 * 64).take(20);
    let original = replay(some(), &[]);
    let renamed = replay(some(), &[("fc.weight", &weight), ("fc.bias", &bias)]);
    for (original, mut renamed) in original.into_iter().zip(renamed) {
        renamed.reverse();
        assert_eq!(largest(&renamed), largest(&original));
        for (a, b) in renamed.iter().zip(original) {
            assert!((a - b).abs() <= TOLERANCE, "{a} {b}");
        }
    }
}

fn gpureplay(words: &(impl Words + ?Sized)) -> (i32, String) {
    let (code, out, err) = ran(words);
    (code, out + &err)
}

#[test]
fn the_command_runs_layers_by_themselves() {
    let folder = Folder::default();
    let recording = "recordings/digits-g52";
    let image = format!("input={recording}/inputs/3.npy");
    let (conv2, pool2) = (folder.text("conv2.npy"), folder.text("pool2.npy"));
    let run = |arguments: &str| gpureplay(&format!("run {recording} {arguments}")).gave(0);
    run(&format!(
        "--input {image} --until conv2 --output-layer {conv2}"
    ))
    .says("layers 1 to 2 of 7 (conv1 to conv2)");
    let expected = format!("probabilities={recording}/expected/3.npy");
    let given = format!("conv2={conv2}");
    let from = |layers| {
        run(&format!(
            "--input {given} --layers {layers} --expect {expected}"
        ))
    };
    from("pool1..")
        .says("those before skipped")
        .says("bit for bit");
    run(&format!(
        "--input {image} --layers 3..5 --output-layer {pool2}"
    ))
    .says("(pool1 to pool2, those before ran first)");
    from("pool2..")
        .says("those from pool1 on ran first")
        .says("bit for bit");

    let pool1 = folder.text("pool1.npy");
    run(&format!(
        "--input {given} --layers pool1 --output-layer {pool1}"
    ));
    let (before, after) = (
        read_npy(conv2.as_ref()).unwrap(),
        read_npy(pool1.as_ref()).unwrap(),
    );
    assert_eq!(
        (before.shape(), after.shape()),
        (&[8, 8, 32][..], &[4, 4, 32][..])
    );
    for element in 0..after.len() {
        let (row, column, channel) = (element / 128, element / 32 % 4, element % 32);
        let at =
            |y: usize, x: usize| before.value(((2 * row + y) * 8 + 2 * column + x) * 32 + channel);
        let largest = at(0, 0).max(at(0, 1)).max(at(1, 0)).max(at(1, 1));
        assert_eq!(after.value(element), largest, "element {element}");
    }
    let absolute = repository().join(recording).display().to_string();
    let last = format!("run {absolute} --force --until 3 --output-layer");
    ran_in(folder.path(), &last).gave(0).says("to pool1.npy");

    gpureplay(&format!("run {recording} --layers conv9"))
        .ended(2, "no layer conv9; its layers are 1 conv1, 2 conv2");
    let (_, text) = gpureplay(&format!("info {recording}"));
    text.says("run 3        pool1")
        .says("takes conv2; gives pool1");
}

#[test]
fn the_last_line_says_what_ran_and_how_it_compares() {
    let folder = Folder::default();
    let trace = folder.text("trace");
    let image = "recordings/digits-g52/inputs/3.npy";
    let run = |more: &str| {
        gpureplay(&format!("run recordings/digits-g52 --input {image} {more}")).gave(0)
    };
    let text = run("");
    let line = text.lines().last().unwrap();
    let parts: Vec<&str> = line.split(" · ").collect();
    assert_eq!(parts.len(), 3, "{text}");
    assert_eq!(parts[0], "→ digit 3 (1.000)");
    assert!(parts[1].starts_with("12 jobs, ") && parts[1].contains(" loading, "));
    assert!(parts[1].ends_with(" on the model"), "{line}");
    assert_eq!(parts[2], "matches the recorded stack bit for bit");

    let report = json(&run(&format!("--json --trace-lines {trace}")));
    let number = |key: &str| report[key].as_u64().unwrap();
    let traced = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(number("jobs"), 12);
    assert_eq!(
        number("jobs") + number("setup_jobs"),
        traced.lines().count() as u64
    );
    let text = run("--until conv2 --json");
    let part = json(&text);
    assert!(part["jobs"].as_u64().unwrap() < 12, "{text}");
}

fn safetensors(tensors: &[(String, Tensor)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, tensor) in tensors {
        let begin = data.len();
        data.extend_from_slice(tensor.bytes());
        let entry = serde_json::json!({
            "dtype": "F32", "shape": tensor.shape(), "data_offsets": [begin, data.len()],
        });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::from(header).to_string();
    [values::safetensors(&header), data].concat()
}

#[test]
fn one_recording_serves_other_trained_models() {
    let folder = Folder::default();
    let expected = "recordings/digits-g52/expected/3.npy";
    let run = |arguments: &str| {
        let image = "input=recordings/digits-g52/inputs/3.npy";
        gpureplay(&format!(
            "run recordings/digits-g52 --input {image} {arguments}"
        ))
    };
    run(&format!(
        "--weights tools/digits/weights --expect {expected}"
    ))
    .ended(0, "bit for bit");
    let one = "conv1.weight=tools/digits/weights/conv1.weight.npy";
    run(&format!("--bind {one} --expect {expected}")).ended(0, "bit for bit");
    // Without --input: that of the manifest's first case.
    gpureplay(&format!("run recordings/digits-g52 --bind {one}"))
        .ended(0, "→ digit 0")
        .says("nothing to compare");

    // Reversed classes: a 3 is called 6.
    let mut model = Vec::new();
    for entry in std::fs::read_dir(repository().join("tools/digits/weights")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut tensor = read_npy(&path).unwrap();
        if name.starts_with("fc.") {
            let rows = tensor.bytes().chunks_exact(tensor.bytes().len() / CLASSES);
            let bytes = rows.rev().flatten().copied().collect();
            tensor = Tensor::new(ElementType::F32, tensor.shape(), bytes).unwrap();
        }
        model.push((name, tensor));
    }
    let file = folder.at("reversed.safetensors");
    std::fs::write(&file, safetensors(&model)).unwrap();
    let weights = format!("--weights {}", file.display());
    run(&weights).ended(0, "→ digit 6 (1.000)");

    model.retain(|(name, _)| name != "conv2.bias");
    std::fs::write(&file, safetensors(&model)).unwrap();
    run(&weights).ended(4, "reversed.safetensors: has no tensor conv2.bias");
    run("--weights recordings").ended(4, "recordings/conv1.weight.npy: ");
    run(&format!("--weights {expected}")).ended(4, "or from a .safetensors file");
}

#[test]
fn a_picture_of_a_digit_is_read() {
    // A held-out 3, ten times as wide and high, in ink on white paper.
    let digit = read_npy(&repository().join("recordings/digits-g52/inputs/3.npy")).unwrap();
    let folder = Folder::default();
    let pixels: Vec<u8> = (0..80 * 80)
        .map(|i| {
            let ink = digit.value(i / 80 / 10 * 8 + i % 80 / 10);
            (255.0 * (1.0 - ink)).round() as u8
        })
        .collect();
    std::fs::write(folder.at("3.png"), png(80, 80, &pixels)).unwrap();
    let jpeg = repository().join("replayer/library/tests/pictures/digit-3.jpg");
    std::fs::copy(jpeg, folder.at("3.jpg")).unwrap();
    let answer = |picture: &Path| {
        let file = picture.to_str().unwrap();
        gpureplay(&format!("run recordings/digits-g52 --input {file}"))
    };
    for name in ["3.png", "3.jpg"] {
        let picture = folder.at(name);
        let text = answer(&picture).ended(0, "→ digit 3");
        text.says("is inverted (black is 1)");
        assert!(!text.contains("stretched"), "{text}");
        // Decoders would make up the lower half.
        let half = std::fs::metadata(&picture).unwrap().len() / 2;
        let file = std::fs::File::options().write(true).open(&picture).unwrap();
        file.set_len(half).unwrap();
        answer(&picture).gave(4);
    }
}

#[test]
fn a_picture_with_other_proportions_is_called_stretched() {
    let folder = Folder::default();
    let path = folder.at("wide.png");
    std::fs::write(&path, png(80, 40, &[200; 80 * 40])).unwrap();
    let file = path.to_str().unwrap();
    gpureplay(&format!("run recordings/digits-g52 --input {file}"))
        .ended(0, "stretched from 80x40 to 8x8");
}

#[test]
fn a_file_of_any_name_is_npy_or_raw_by_its_first_bytes() {
    let folder = Folder::default();
    let npy = std::fs::read(repository().join("recordings/digits-g52/inputs/3.npy")).unwrap();
    let run = |name: &str, contents: &[u8]| {
        let path = folder.at(name);
        std::fs::write(&path, contents).unwrap();
        let file = path.to_str().unwrap();
        gpureplay(&format!("run recordings/digits-g52 --input {file}"))
    };
    let raw = &npy[npy.len() - 256..];
    for (name, contents) in [("x.dat", &npy[..]), ("x", &npy), ("y.dat", raw), ("y", raw)] {
        run(name, contents).ended(0, "→ digit 3");
    }
    for (name, contents, said) in [
        ("z.dat", &raw[1..], "255 bytes, but input f32[8,8] has 256"),
        ("z", &npy[..130], "z:"),
        ("z.npy", raw, "not an .npy file"),
    ] {
        run(name, contents).ended(4, said);
    }
}

#[test]
fn all_held_out_digits_run_in_one_process() {
    let held_out = |name: &str| {
        let path = repository().join(format!("tools/digits/held-out/{name}.npy"));
        path.display().to_string()
    };
    let (images, labels) = (held_out("images"), held_out("labels"));
    let run = format!("run recordings/digits-g52 --inputs {images} --truth {labels} --json");
    let text = gpureplay(&run).gave(0);
    let value = json(&text);
    assert_eq!(
        (&value["inputs"], &value["right"]),
        (&360.into(), &359.into())
    );
    let text = gpureplay(&run.replace("g52", "g57")).gave(0);
    let other = json(&text);
    assert_eq!(
        (&other["inputs"], &other["right"]),
        (&360.into(), &359.into())
    );
    for threads in [1, 5] {
        let text = gpureplay(&format!("{run} --threads {threads}")).gave(0);
        let answers = json(&text);
        assert_eq!(value["answers"], answers["answers"]);
    }
    let confusion = value["confusion"].as_array().unwrap().iter();
    let rows = confusion.map(|row| row.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()));
    assert_eq!(rows.flatten().sum::<u64>(), 360);
    let folder = Folder::default();
    let truth = folder.at("truth.txt");
    let names: Vec<String> = (0..10).map(|digit| format!("digit {digit}")).collect();
    std::fs::create_dir(folder.at("pictures")).unwrap();
    for digit in 0..10 {
        let from = repository().join(format!("recordings/digits-g52/inputs/{digit}.npy"));
        let to = folder.at(&format!("pictures/{digit}.npy"));
        std::fs::copy(from, to).unwrap();
    }
    std::fs::write(&truth, names.join("\n")).unwrap();
    let pictures = folder.text("pictures");
    let truth = truth.display().to_string();
    let run = format!("run recordings/digits-g52 --inputs {pictures} --truth {truth}");
    gpureplay(&run).ended(0, "10 of 10 right (100.0 %)");
    for digit in [4, 5, 8] {
        let path = folder.at(&format!("pictures/{digit}.npy"));
        std::fs::write(path, "no picture").unwrap();
    }
    for threads in ["1", "2", "4"] {
        gpureplay(&format!("{run} --threads {threads}")).ended(4, "4.npy");
    }
    for digit in [4, 5, 8] {
        let from = repository().join(format!("recordings/digits-g52/inputs/{digit}.npy"));
        let to = folder.at(&format!("pictures/{digit}.npy"));
        std::fs::copy(from, to).unwrap();
    }
    let run = format!("run recordings/digits-g52 --inputs {pictures} --truth {labels}");
    gpureplay(&run).ended(4, "360 classes for 10 inputs");
}
