// SPDX-License-Identifier: MIT OR Apache-2.0
//! recordings/digits-g52: the replay answers as the network does on the CPU, for every held-out digit.
#![allow(clippy::indexing_slicing)]

use std::path::Path;

use gpureplay_kit::command::Words;
use gpureplay_library::{Options, Recording};
use gpureplay_tensors::{ElementType, Tensor, read_npy};

use crate::start::{ran_in, repository, shipped};

/// Largest difference of a probability from the one in double precision.
const TOLERANCE: f64 = 1e-5;
/// Digits.
const CLASSES: usize = 10;
/// Replays at the same time, each on a GPU of its own.
const SESSIONS: usize = 4;

fn held_out(name: &str) -> Tensor {
    read_npy(&repository().join(format!("tools/digits/held-out/{name}.npy"))).unwrap()
}

/// Opens the recording once, with other weights if there are any, and runs it for each image (8 x 8 float32).
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
    // A network that calls every digit by another name: the classes in reverse.
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

/// What the command prints in the repository on both streams, and whether it succeeded.
fn gpureplay(words: &(impl Words + ?Sized)) -> (bool, String) {
    gpureplay_in(&repository(), words)
}

fn gpureplay_in(folder: &Path, words: &(impl Words + ?Sized)) -> (bool, String) {
    let (code, out, err) = ran_in(folder, words);
    (code == 0, out + &err)
}

#[test]
fn the_command_runs_layers_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let recording = "recordings/digits-g52";
    let image = format!("input={recording}/inputs/3.npy");
    let (conv2, pool2) = (file("conv2.npy"), file("pool2.npy"));
    let run = |arguments: &[&str]| {
        let (good, text) = gpureplay(&[&["run", recording], arguments].concat());
        assert!(good, "{text}");
        text
    };
    let text = run(&[
        "--input",
        &image,
        "--until",
        "conv2",
        "--output-layer",
        &conv2,
    ]);
    assert!(
        text.contains("layers 1 to 2 of 7 (conv1 to conv2)"),
        "{text}"
    );
    let expected = format!("probabilities={recording}/expected/3.npy");
    let given = format!("conv2={conv2}");
    let text = run(&[
        "--input", &given, "--layers", "pool1..", "--expect", &expected,
    ]);
    assert!(
        text.contains("those before skipped") && text.contains("bit for bit"),
        "{text}"
    );
    let text = run(&[
        "--input",
        &image,
        "--layers",
        "3..5",
        "--output-layer",
        &pool2,
    ]);
    assert!(
        text.contains("(pool1 to pool2, those before ran first)"),
        "{text}"
    );

    let text = run(&[
        "--input", &given, "--layers", "pool2..", "--expect", &expected,
    ]);
    assert!(
        text.contains("those from pool1 on ran first") && text.contains("bit for bit"),
        "{text}"
    );

    // One layer by itself: the maximum of 2 x 2 pixels.
    let pool1 = file("pool1.npy");
    run(&[
        "--input",
        &given,
        "--layers",
        "pool1",
        "--output-layer",
        &pool1,
    ]);
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
    // Without the name of a file.
    let absolute = repository().join(recording).display().to_string();
    let last = [
        "run",
        &absolute,
        "--force",
        "--until",
        "3",
        "--output-layer",
    ];
    let (good, text) = gpureplay_in(folder.path(), &last);
    assert!(good && text.contains("to pool1.npy"), "{text}");

    let (good, text) = gpureplay(&["run", recording, "--layers", "conv9"]);
    assert!(
        !good && text.contains("no layer conv9; its layers are 1 conv1, 2 conv2"),
        "{text}"
    );
    let (_, text) = gpureplay(&["info", recording]);
    assert!(
        text.contains("run 3        pool1") && text.contains("takes conv2; gives pool1"),
        "{text}"
    );
}

#[test]
fn the_last_line_says_what_ran_and_how_it_compares() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace").display().to_string();
    let image = "recordings/digits-g52/inputs/3.npy";
    let run = ["run", "recordings/digits-g52", "--input", image];
    let (good, text) = gpureplay(&run);
    let line = text.lines().last().unwrap();
    let parts: Vec<&str> = line.split(" · ").collect();
    assert!(good && parts.len() == 3, "{text}");
    assert_eq!(parts[0], "→ digit 3 (1.000)");
    assert!(parts[1].starts_with("12 jobs, ") && parts[1].contains(" loading, "));
    assert!(parts[1].ends_with(" on the model"), "{line}");
    assert_eq!(parts[2], "matches the recorded stack bit for bit");

    // What the recording declares is what the model counts, job by job.
    let (_, text) = gpureplay(&[&run[..], &["--json", "--trace-lines", &trace]].concat());
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| report[key].as_u64().unwrap();
    let traced = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(number("jobs"), 12);
    assert_eq!(
        number("jobs") + number("setup_jobs"),
        traced.lines().count() as u64
    );
    let (_, text) = gpureplay(&[&run[..], &["--until", "conv2", "--json"]].concat());
    let part: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(part["jobs"].as_u64().unwrap() < 12, "{text}");
}

/// A .safetensors file by its specification: length, JSON, data.
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
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        &data,
    ]
    .concat()
}

#[test]
fn one_recording_serves_other_trained_models() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "recordings/digits-g52/expected/3.npy";
    let run = |arguments: &[&str]| {
        let image = "input=recordings/digits-g52/inputs/3.npy";
        let first = ["run", "recordings/digits-g52", "--input", image];
        gpureplay(&[&first[..], arguments].concat())
    };
    // The network's own weights, from the script that trained them.
    let (good, text) = run(&["--weights", "tools/digits/weights", "--expect", expected]);
    assert!(good && text.contains("bit for bit"), "{text}");
    // One of them, by its name.
    let one = "conv1.weight=tools/digits/weights/conv1.weight.npy";
    let (good, text) = run(&["--bind", one, "--expect", expected]);
    assert!(good && text.contains("bit for bit"), "{text}");
    // Nobody said what other weights should give; without an input it is the manifest's first.
    let (good, text) = gpureplay(&["run", "recordings/digits-g52", "--bind", one]);
    assert!(
        good && text.contains("→ digit 0") && text.contains("nothing to compare"),
        "{text}"
    );

    // Another model in one file: the classes in reverse, so a 3 is called 6.
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
    let file = folder.path().join("reversed.safetensors");
    std::fs::write(&file, safetensors(&model)).unwrap();
    let (good, text) = run(&["--weights", file.to_str().unwrap()]);
    assert!(good && text.contains("→ digit 6 (1.000)"), "{text}");

    // A model that lacks a weight, and one that is no model.
    model.retain(|(name, _)| name != "conv2.bias");
    std::fs::write(&file, safetensors(&model)).unwrap();
    let (good, text) = run(&["--weights", file.to_str().unwrap()]);
    assert!(
        !good && text.contains("reversed.safetensors: has no tensor conv2.bias"),
        "{text}"
    );
    let (good, text) = run(&["--weights", "recordings"]);
    assert!(
        !good && text.contains("recordings/conv1.weight.npy: "),
        "{text}"
    );
    let (good, text) = run(&["--weights", expected]);
    assert!(
        !good && text.contains("or from a .safetensors file"),
        "{text}"
    );
}

#[test]
fn a_picture_of_a_digit_is_read() {
    // Ink on white paper, 80 x 80 pixels: the held-out 3, each pixel ten times as wide and high.
    let digit = read_npy(&repository().join("recordings/digits-g52/inputs/3.npy")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pixels: Vec<u8> = (0..80 * 80)
        .map(|i| {
            let ink = digit.value(i / 80 / 10 * 8 + i % 80 / 10);
            (255.0 * (1.0 - ink)).round() as u8
        })
        .collect();
    let mut encoder = png::Encoder::new(
        std::fs::File::create(folder.path().join("3.png")).unwrap(),
        80,
        80,
    );
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    let jpeg = repository().join("replayer/library/tests/pictures/digit-3.jpg");
    std::fs::copy(jpeg, folder.path().join("3.jpg")).unwrap();
    let answer = |picture: &Path| {
        let file = picture.to_str().unwrap();
        gpureplay(&["run", "recordings/digits-g52", "--input", file])
    };
    for name in ["3.png", "3.jpg"] {
        let picture = folder.path().join(name);
        let (good, text) = answer(&picture);
        assert!(good && text.contains("→ digit 3"), "{text}");
        assert!(text.contains("is inverted (black is 1)"), "{text}");
        assert!(!text.contains("stretched"), "{text}");
        // Decoders would make up the lower half.
        let half = std::fs::metadata(&picture).unwrap().len() / 2;
        let file = std::fs::File::options().write(true).open(&picture).unwrap();
        file.set_len(half).unwrap();
        let (good, text) = answer(&picture);
        assert!(!good, "{name}: {text}");
    }
}

#[test]
fn a_picture_with_other_proportions_is_called_stretched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.png");
    let mut encoder = png::Encoder::new(std::fs::File::create(&path).unwrap(), 80, 40);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[200; 80 * 40]).unwrap();
    writer.finish().unwrap();
    let file = path.to_str().unwrap();
    let (good, text) = gpureplay(&["run", "recordings/digits-g52", "--input", file]);
    assert!(
        good && text.contains("stretched from 80x40 to 8x8"),
        "{text}"
    );
}

#[test]
fn a_file_of_any_name_is_npy_or_raw_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let npy = std::fs::read(repository().join("recordings/digits-g52/inputs/3.npy")).unwrap();
    let run = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let file = path.to_str().unwrap();
        gpureplay(&["run", "recordings/digits-g52", "--input", file])
    };
    let raw = &npy[npy.len() - 256..];
    for (name, contents) in [("x.dat", &npy[..]), ("x", &npy), ("y.dat", raw), ("y", raw)] {
        let (good, text) = run(name, contents);
        assert!(good && text.contains("→ digit 3"), "{name} {text}");
    }
    for (name, contents, said) in [
        ("z.dat", &raw[1..], "255 bytes, but input f32[8,8] has 256"),
        ("z", &npy[..130], "z:"),
        // What is called .npy is nothing else.
        ("z.npy", raw, "not an .npy file"),
    ] {
        let (good, text) = run(name, contents);
        assert!(!good && text.contains(said), "{name} {text}");
    }
}

#[test]
fn all_held_out_digits_run_in_one_process() {
    let held_out = |name: &str| {
        let path = repository().join(format!("tools/digits/held-out/{name}.npy"));
        path.display().to_string()
    };
    let (images, labels) = (held_out("images"), held_out("labels"));
    let run = [
        "run",
        "recordings/digits-g52",
        "--inputs",
        &images,
        "--truth",
        &labels,
        "--json",
    ];
    let (good, text) = gpureplay(&run);
    assert!(good, "{text}");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&value["inputs"], &value["right"]),
        (&360.into(), &359.into())
    );
    // The same network, compiled for a GPU of Valhall.
    let valhall = run.map(|word| word.replace("g52", "g57"));
    let (good, text) = gpureplay(&valhall.each_ref().map(String::as_str));
    assert!(good, "{text}");
    let other: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&other["inputs"], &other["right"]),
        (&360.into(), &359.into())
    );
    // One session for each thread: the answers are those of one session, in the same order.
    let alone = [&run[..], &["--threads", "1"]].concat();
    let several = [&run[..], &["--threads", "5"]].concat();
    let answers = |run: &[&str]| -> serde_json::Value {
        let (good, text) = gpureplay(run);
        assert!(good, "{text}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["answers"].take()
    };
    assert_eq!(value["answers"], answers(&alone));
    assert_eq!(value["answers"], answers(&several));
    let confusion = value["confusion"].as_array().unwrap().iter();
    let rows = confusion.map(|row| row.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()));
    assert_eq!(rows.flatten().sum::<u64>(), 360);
    // A directory, and names of classes.
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.txt");
    let names: Vec<String> = (0..10).map(|digit| format!("digit {digit}")).collect();
    std::fs::create_dir(folder.path().join("pictures")).unwrap();
    for digit in 0..10 {
        let from = repository().join(format!("recordings/digits-g52/inputs/{digit}.npy"));
        let to = folder.path().join(format!("pictures/{digit}.npy"));
        std::fs::copy(from, to).unwrap();
    }
    std::fs::write(&truth, names.join("\n")).unwrap();
    let pictures = folder.path().join("pictures").display().to_string();
    let truth = truth.display().to_string();
    let run = [
        "run",
        "recordings/digits-g52",
        "--inputs",
        &pictures,
        "--truth",
        &truth,
    ];
    let (good, text) = gpureplay(&run);
    assert!(good && text.contains("10 of 10 right (100.0 %)"), "{text}");
    // Of several files that cannot be read, the first is named, whichever session comes to one first.
    for digit in [4, 5, 8] {
        let path = folder.path().join(format!("pictures/{digit}.npy"));
        std::fs::write(path, "no picture").unwrap();
    }
    for threads in ["1", "2", "4"] {
        let (good, text) = gpureplay(&[&run[..], &["--threads", threads]].concat());
        assert!(!good && text.contains("4.npy"), "{text}");
    }
    for digit in [4, 5, 8] {
        let from = repository().join(format!("recordings/digits-g52/inputs/{digit}.npy"));
        let to = folder.path().join(format!("pictures/{digit}.npy"));
        std::fs::copy(from, to).unwrap();
    }
    // As many truths as inputs.
    let run = [
        "run",
        "recordings/digits-g52",
        "--inputs",
        &pictures,
        "--truth",
        &labels,
    ];
    let (good, text) = gpureplay(&run);
    assert!(
        !good && text.contains("360 classes for 10 inputs"),
        "{text}"
    );
}
