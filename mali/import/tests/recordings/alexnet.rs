// SPDX-License-Identifier: MIT OR Apache-2.0
//! Silicon's AlexNet on the G71 model, against double precision.

use std::collections::BTreeMap;

use fastrand::Rng;
use gpureplay_core::Gpu;
use gpureplay_kit::network::{
    Image, convolution, fully_connected, max_pool, normalise_channels, random, softmax,
};

use crate::common::difference;

const ARENA: (u64, u64) = (0xffff_ad80_0000, 0xffff_ae7a_0000);

type Weights = BTreeMap<&'static str, Vec<f32>>;

fn weights(from: &mut Rng) -> Weights {
    let layers = [
        ("conv1.weight", "conv1.bias", 96, 363),
        ("conv2.weight", "conv2.bias", 256, 1200),
        ("conv3.weight", "conv3.bias", 384, 2304),
        ("conv4.weight", "conv4.bias", 384, 1728),
        ("conv5.weight", "conv5.bias", 256, 1728),
        ("fc6.weight", "fc6.bias", 4096, 9216),
        ("fc7.weight", "fc7.bias", 4096, 4096),
        ("fc8.weight", "fc8.bias", 1000, 4096),
    ];
    let mut weights = BTreeMap::new();
    for (weight, bias, outputs, inputs) in layers {
        let scale = (5.0 / inputs as f32).sqrt();
        weights.insert(weight, random(from, outputs * inputs, scale));
        weights.insert(bias, random(from, outputs, 0.1));
    }
    weights
}

fn grouped(image: &Image, w: &Weights, layer: (&str, &str), kernel: usize, pad: usize) -> Image {
    let (weight, bias) = (&w[layer.0], &w[layer.1]);
    let half = image.channels / 2;
    let group = |g: usize| {
        let part = |v: &[f32]| v[g * v.len() / 2..(g + 1) * v.len() / 2].to_vec();
        let channels = image.channels(g * half, half);
        convolution(&channels, &part(weight), &part(bias), kernel, 1, pad)
    };
    group(0).join(&group(1))
}

fn reference(w: &Weights, input: &[f32]) -> Vec<(&'static str, Vec<f64>)> {
    let image = Image::from_f32(227, 227, 3, input);
    let conv1 = convolution(&image, &w["conv1.weight"], &w["conv1.bias"], 11, 4, 0).relu();
    let norm1 = normalise_channels(&conv1, 5, 1e-4, 0.75);
    let pool1 = max_pool(&norm1, 3, 2);
    let conv2 = grouped(&pool1, w, ("conv2.weight", "conv2.bias"), 5, 2).relu();
    let norm2 = normalise_channels(&conv2, 5, 1e-4, 0.75);
    let pool2 = max_pool(&norm2, 3, 2);
    let conv3 = convolution(&pool2, &w["conv3.weight"], &w["conv3.bias"], 3, 1, 1).relu();
    let conv4 = grouped(&conv3, w, ("conv4.weight", "conv4.bias"), 3, 1).relu();
    let conv5 = grouped(&conv4, w, ("conv5.weight", "conv5.bias"), 3, 1).relu();
    let pool5 = max_pool(&conv5, 3, 2);
    // Channel, height, width: the order of the weights.
    let planar: Vec<f64> = (0..256)
        .flat_map(|c| (0..36).map(move |p| (p, c)))
        .map(|(p, c)| pool5.data[p * 256 + c])
        .collect();
    let positive = |v: Vec<f64>| v.into_iter().map(|x| x.max(0.0)).collect::<Vec<_>>();
    let fc6 = positive(fully_connected(&planar, &w["fc6.weight"], &w["fc6.bias"]));
    let fc7 = positive(fully_connected(&fc6, &w["fc7.weight"], &w["fc7.bias"]));
    let fc8 = fully_connected(&fc7, &w["fc8.weight"], &w["fc8.bias"]);
    let probabilities = softmax(&fc8);
    vec![
        ("conv1", conv1.data),
        ("norm1", norm1.data),
        ("pool1", pool1.data),
        ("conv2", conv2.data),
        ("norm2", norm2.data),
        ("pool2", pool2.data),
        ("conv3", conv3.data),
        ("conv4", conv4.data),
        ("conv5", conv5.data),
        ("pool5", pool5.data),
        ("fc6", fc6),
        ("fc7", fc7),
        ("fc8", fc8),
        ("probabilities", probabilities),
    ]
}

#[test]
fn every_layer_matches() {
    let Some((_, imported)) = crate::common::import("alexnet") else {
        return;
    };
    let mut from = Rng::with_seed(2);
    let weights = weights(&mut from);
    let begun = std::time::Instant::now();
    crate::common::on_g71(&imported, &weights, |session, values| {
        eprintln!("open: {:.1?}", begun.elapsed());
        let count = (ARENA.1 - ARENA.0) as usize / 4;
        let garbage = random(&mut from, count, 1e6);
        let garbage: Vec<u8> = garbage.iter().flat_map(|v| v.to_le_bytes()).collect();
        session.gpu().write_memory(ARENA.0, &garbage).unwrap();
        let input = random(&mut from, 227 * 227 * 3, 1.0);
        values.set("input", gpureplay_kit::floats(&input));
        let begun = std::time::Instant::now();
        session.run(values).unwrap();
        eprintln!("run: {:.1?}", begun.elapsed());
        for (name, expected) in reference(&weights, &input) {
            let found = values.floats(name);
            let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            let d = difference(&found, &expected);
            eprintln!("{name}: {d:.1e} of {largest:.3}");
            let most = if name == "probabilities" {
                1e-5
            } else {
                3e-5 * largest.max(1.0)
            };
            assert!(d <= most, "{name}: {d:e}");
        }
    });
}
