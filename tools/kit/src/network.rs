// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random weights, and layers in double precision.

use fastrand::Rng;

/// Channels are innermost.
#[derive(Clone)]
pub struct Image {
    /// Pixels.
    pub height: usize,
    /// Pixels.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
    /// By row.
    pub data: Vec<f64>,
}

impl Image {
    /// `data` has a value per channel.
    pub fn new(height: usize, width: usize, channels: usize, data: Vec<f64>) -> Self {
        assert_eq!(data.len(), height * width * channels);
        Self {
            height,
            width,
            channels,
            data,
        }
    }

    /// See [`Image::new`].
    pub fn from_f32(height: usize, width: usize, channels: usize, data: &[f32]) -> Self {
        let data = data.iter().copied().map(f64::from).collect();
        Self::new(height, width, channels, data)
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            data: self.data.into_iter().map(f).collect(),
            ..self
        }
    }

    /// Makes negative values zero.
    pub fn relu(self) -> Self {
        self.map(|v| v.max(0.0))
    }

    /// Some channels of each pixel.
    pub fn channels(&self, first: usize, count: usize) -> Self {
        let data = self
            .data
            .chunks_exact(self.channels)
            .flat_map(|pixel| &pixel[first..first + count])
            .copied()
            .collect();
        Self::new(self.height, self.width, count, data)
    }

    /// An image with the channels of both.
    pub fn join(&self, other: &Self) -> Self {
        let pixels = self.data.chunks_exact(self.channels);
        let data = pixels
            .zip(other.data.chunks_exact(other.channels))
            .flat_map(|(a, b)| a.iter().chain(b))
            .copied()
            .collect();
        Self::new(
            self.height,
            self.width,
            self.channels + other.channels,
            data,
        )
    }
}

/// Weights: output channel, height, width, input channel.
pub fn convolution(
    image: &Image,
    weights: &[f32],
    bias: &[f32],
    kernel: usize,
    stride: usize,
    pad: usize,
) -> Image {
    let (height, width) = (
        (image.height + 2 * pad - kernel) / stride + 1,
        (image.width + 2 * pad - kernel) / stride + 1,
    );
    let (inputs, outputs) = (image.channels, bias.len());
    assert_eq!(weights.len(), outputs * kernel * kernel * inputs);
    let weights: Vec<f64> = weights.iter().copied().map(f64::from).collect();
    let mut data = Vec::with_capacity(height * width * outputs);
    for y in 0..height {
        for x in 0..width {
            for (o, &offset) in bias.iter().enumerate() {
                let mut sum = f64::from(offset);
                for ky in 0..kernel {
                    for kx in 0..kernel {
                        let (iy, ix) = (y * stride + ky, x * stride + kx);
                        let inside = (pad..image.height + pad).contains(&iy)
                            && (pad..image.width + pad).contains(&ix);
                        if inside {
                            let at = ((iy - pad) * image.width + ix - pad) * inputs;
                            let w = ((o * kernel + ky) * kernel + kx) * inputs;
                            let pixel = &image.data[at..at + inputs];
                            let weight = &weights[w..w + inputs];
                            sum += pixel.iter().zip(weight).map(|(a, b)| a * b).sum::<f64>();
                        }
                    }
                }
                data.push(sum);
            }
        }
    }
    Image::new(height, width, outputs, data)
}

/// Windows lie inside of the image.
pub fn max_pool(image: &Image, size: usize, stride: usize) -> Image {
    let height = (image.height - size) / stride + 1;
    let width = (image.width - size) / stride + 1;
    let mut data = Vec::with_capacity(height * width * image.channels);
    for y in 0..height {
        for x in 0..width {
            for c in 0..image.channels {
                let mut most = f64::NEG_INFINITY;
                for ky in 0..size {
                    for kx in 0..size {
                        let at = (y * stride + ky) * image.width + x * stride + kx;
                        most = most.max(image.data[at * image.channels + c]);
                    }
                }
                data.push(most);
            }
        }
    }
    Image::new(height, width, image.channels, data)
}

/// Weights: output, input.
pub fn fully_connected(input: &[f64], weights: &[f32], bias: &[f32]) -> Vec<f64> {
    let rows = weights.chunks_exact(input.len());
    rows.zip(bias)
        .map(|(row, &b)| {
            let products = row.iter().zip(input).map(|(&w, &x)| f64::from(w) * x);
            f64::from(b) + products.sum::<f64>()
        })
        .collect()
}

/// Adds up to 1.
pub fn softmax(input: &[f64]) -> Vec<f64> {
    let most = input.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = input.iter().map(|v| (v - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// `x / (1 + alpha / size * sum of squares of neighbours)^beta`, across channels.
pub fn normalise_channels(image: &Image, size: usize, alpha: f64, beta: f64) -> Image {
    let reach = size / 2;
    let data = image
        .data
        .chunks_exact(image.channels)
        .flat_map(|pixel| {
            (0..pixel.len()).map(move |c| {
                let first = c.saturating_sub(reach);
                let last = (c + reach).min(pixel.len() - 1);
                let squares: f64 = pixel[first..=last].iter().map(|v| v * v).sum();
                pixel[c] / (1.0 + alpha / size as f64 * squares).powf(beta)
            })
        })
        .collect();
    Image::new(image.height, image.width, image.channels, data)
}

/// Up to `scale`, either sign.
pub fn random(from: &mut Rng, count: usize, scale: f32) -> Vec<f32> {
    (0..count)
        .map(|_| (2.0 * from.f32() - 1.0) * scale)
        .collect()
}
