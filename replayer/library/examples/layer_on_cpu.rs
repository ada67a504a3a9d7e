// SPDX-License-Identifier: MIT OR Apache-2.0
//! One layer on the CPU, the others replayed: `cargo run --example layer_on_cpu -p gpureplay-library`.
//!
//! Replaces the layer after conv2: the maximum of 2 x 2 pixels.

use gpureplay_library::{Options, Recording, Result, Tensor};

/// Compares the two answers.
pub fn main() -> Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/digits-g52");
    let recording = Recording::open(directory)?;
    let mut session = recording.session(Options::default())?;
    session.bind_file("input", format!("{directory}/inputs/3.npy"))?;
    let pool = session.layer("pool1")?;
    let layers = recording.layers().len();

    session.run()?;
    let all_on_gpu = session.read("probabilities")?;

    // conv2 is the result of the last layer before pool1.
    session.keep("conv2")?;
    session.run_layers(0..pool)?;
    let conv2 = session.read("conv2")?;
    session.bind("pool1", maximum(&conv2))?;
    // Goes on after pool1, whose value is given.
    session.run_layers(pool + 1..layers)?;
    let one_on_cpu = session.read("probabilities")?;

    println!("GPU only:         {}", line(&all_on_gpu));
    println!("one layer on CPU: {}", line(&one_on_cpu));
    assert_eq!(one_on_cpu, all_on_gpu);
    Ok(())
}

fn maximum(image: &Tensor) -> Tensor {
    let extent = |dimension: usize| image.shape().get(dimension).copied().unwrap_or(1) as usize;
    let (height, width, channels) = (extent(0), extent(1), extent(2));
    let at = |row: usize, column: usize, channel: usize| {
        image.value((row * width + column) * channels + channel)
    };
    let mut values = Vec::new();
    for row in (0..height).step_by(2) {
        for column in (0..width).step_by(2) {
            for channel in 0..channels {
                let upper = at(row, column, channel).max(at(row, column + 1, channel));
                let lower = at(row + 1, column, channel).max(at(row + 1, column + 1, channel));
                values.push(upper.max(lower) as f32);
            }
        }
    }
    let shape = [height / 2, width / 2, channels].map(|extent| extent as u64);
    Tensor::from_f32(&shape, &values).expect("as many values as the shape says")
}

fn line(probabilities: &Tensor) -> String {
    let best = (0..probabilities.len())
        .max_by(|a, b| probabilities.value(*a).total_cmp(&probabilities.value(*b)))
        .unwrap_or_default();
    format!("digit {best} ({:.3})", probabilities.value(best))
}
