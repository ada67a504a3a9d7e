// SPDX-License-Identifier: MIT OR Apache-2.0
//! Silicon's MNIST on the G71 model, against double precision.

use std::collections::BTreeMap;

use fastrand::Rng;
use gpureplay_core::Gpu;
use gpureplay_kit::network::{Image, convolution, fully_connected, max_pool, random, softmax};

use crate::common::difference;

/// Their contents before a run must not matter.
const INTERMEDIATE: [(u64, u64); 4] = [
    (0xffff_b7b8_9000, 0xffff_b7bc_9000),
    (0xffff_b7bc_9000, 0xffff_b7c0_9000),
    (0xffff_b7c2_d000, 0xffff_b7c4_9000),
    (0xffff_b7c6_d000, 0xffff_b7c8_9000),
];

fn weights(from: &mut Rng) -> BTreeMap<&'static str, Vec<f32>> {
    BTreeMap::from([
        ("conv1.weight", random(from, 32 * 9, 0.5)),
        ("conv1.bias", random(from, 32, 0.2)),
        ("conv2.weight", random(from, 32 * 9 * 32, 0.1)),
        ("conv2.bias", random(from, 32, 0.2)),
        ("conv3.weight", random(from, 32 * 9 * 32, 0.1)),
        ("conv3.bias", random(from, 32, 0.2)),
        ("fc.weight", random(from, 10 * 1568, 0.05)),
        ("fc.bias", random(from, 10, 0.2)),
    ])
}

fn reference(w: &BTreeMap<&str, Vec<f32>>, input: &[f32]) -> Vec<(&'static str, Vec<f64>)> {
    let image = Image::from_f32(28, 28, 1, input);
    let conv1 = convolution(&image, &w["conv1.weight"], &w["conv1.bias"], 3, 1, 1);
    let conv2 = convolution(&conv1, &w["conv2.weight"], &w["conv2.bias"], 3, 1, 1);
    let pool1 = max_pool(&conv2, 2, 2);
    let conv3 = convolution(&pool1, &w["conv3.weight"], &w["conv3.bias"], 3, 1, 1);
    let pool2 = max_pool(&conv3, 2, 2);
    let fc = fully_connected(&pool2.data, &w["fc.weight"], &w["fc.bias"]);
    let probabilities = softmax(&fc);
    vec![
        ("conv1", conv1.data),
        ("conv2", conv2.data),
        ("pool1", pool1.data),
        ("conv3", conv3.data),
        ("flatten", pool2.data.clone()),
        ("pool2", pool2.data),
        ("fc", fc),
        ("probabilities", probabilities),
    ]
}

#[test]
fn every_layer_matches_on_ten_inputs() {
    let Some((_, imported)) = crate::common::import("mnist") else {
        return;
    };
    let mut from = Rng::with_seed(1);
    let weights = weights(&mut from);
    crate::common::on_g71(&imported, &weights, |session, values| {
        let mut worst: BTreeMap<&str, f64> = BTreeMap::new();
        for round in 0..10 {
            for (start, end) in INTERMEDIATE {
                let garbage = random(&mut from, (end - start) as usize / 4, 1e6);
                let garbage: Vec<u8> = garbage.iter().flat_map(|v| v.to_le_bytes()).collect();
                session.gpu().write_memory(start, &garbage).unwrap();
            }
            let input = random(&mut from, 28 * 28, 1.0);
            values.set("input", gpureplay_kit::floats(&input));
            session.run(values).unwrap();
            for (name, expected) in reference(&weights, &input) {
                let d = difference(&values.floats(name), &expected);
                assert!(d <= 3e-5, "round {round}, {name}: {d:e}");
                let w = worst.entry(name).or_default();
                *w = w.max(d);
            }
        }
        eprintln!("largest absolute differences: {worst:?}");
    });
}
