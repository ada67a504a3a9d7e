// SPDX-License-Identifier: MIT OR Apache-2.0
//! Silicon's recording with trained weights, against double precision.

use std::path::Path;

const WEIGHTS: [(&str, usize); 8] = [
    ("conv1.weight", 32 * 9),
    ("conv1.bias", 32),
    ("conv2.weight", 32 * 9 * 32),
    ("conv2.bias", 32),
    ("conv3.weight", 32 * 9 * 32),
    ("conv3.bias", 32),
    ("fc.weight", 10 * 1568),
    ("fc.bias", 10),
];

fn elements(path: &Path, count: usize) -> Vec<u8> {
    let file = std::fs::read(path).unwrap();
    assert_eq!(&file[..6], b"\x93NUMPY");
    file[file.len() - count..].to_vec()
}

/// 8x8, 0 to 16, becomes 28x28, 0 to 1, linearly interpolated.
fn scaled_up(image: &[u8]) -> Vec<f32> {
    let place = |i: usize| {
        let at = ((i as f64 + 0.5) * 8.0 / 28.0 - 0.5).clamp(0.0, 7.0);
        let low = (at as usize).min(6);
        (low, at - low as f64)
    };
    let pixel = |y: usize, x: usize| f64::from(image[8 * y + x]);
    let mut out = Vec::with_capacity(28 * 28);
    for (y, v) in (0..28).map(place) {
        for (x, u) in (0..28).map(place) {
            let row = |x| pixel(y, x) * (1.0 - v) + pixel(y + 1, x) * v;
            out.push(((row(x) * (1.0 - u) + row(x + 1) * u) / 16.0) as f32);
        }
    }
    out
}

#[test]
fn held_out_digits() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let Some((_, imported)) = crate::common::import("mnist") else {
        return;
    };
    let directory = top.unwrap().join("tools/train/digits");
    let images = elements(&directory.join("held-out/images.npy"), 360 * 64);
    let labels = elements(&directory.join("held-out/labels.npy"), 360);
    let predictions = elements(&directory.join("held-out/predictions.npy"), 360);
    let weights = WEIGHTS
        .iter()
        .map(|&(name, count)| {
            let bytes = elements(&directory.join(format!("weights/{name}.npy")), 4 * count);
            let values = bytes.chunks_exact(4);
            let values = values.map(|value| f32::from_le_bytes(value.try_into().unwrap()));
            (name, values.collect())
        })
        .collect();
    crate::common::on_g71(&imported, &weights, |session, values| {
        let mut right = 0;
        for (index, image) in images.chunks_exact(64).enumerate() {
            values.set("input", gpureplay_kit::floats(&scaled_up(image)));
            session.run(values).unwrap();
            let probabilities = values.floats("probabilities");
            let best = (0..10).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
            let best = best.unwrap() as u8;
            assert_eq!(best, predictions[index], "image {index}: {probabilities:?}");
            right += u32::from(best == labels[index]);
        }
        eprintln!("{right} of 360 held-out digits are right");
        assert_eq!(right, 350);
    });
}
