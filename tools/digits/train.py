#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Trains the digits network and writes what recordings/digits-g52 and its tests need.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python train.py [--output DIR] [--epochs 40] [--seed 5]

The images are the 1,797 handwritten digits (8x8, 17 grey levels) that come with scikit-learn. A fifth of them, drawn
by the seed, never takes part in training. Written are

    weights/LAYER.weight.npy, LAYER.bias.npy    float32
    held-out/images.npy          float32 N x 8 x 8, 0 (paper) to 1 (ink)
    held-out/labels.npy          int32 N, what the writer meant
    held-out/probabilities.npy   float64 N x 10, by network.py from the float32 weights

The same seed gives the same files with the same NumPy; another build of its linear algebra may round differently,
which is why the files are kept rather than trained again.
"""

import argparse
import os
from pathlib import Path

# One thread sums in one order.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  (after the variables that it reads)

import network  # noqa: E402

HELD_OUT = 360
BATCH = 32


def windows(x):
    """The 3x3 neighbourhood of each pixel, in the order of the weights: N H W x 9 C."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    _, height, width, channels = x.shape
    parts = [padded[:, r:r + height, c:c + width] for r in range(3) for c in range(3)]
    return np.stack(parts, axis=3).reshape(-1, 9 * channels)


class Convolution:
    """A 3x3 convolution with ReLU as a matrix product."""

    def forward(self, x, weight, bias):
        self.weight, self.shape = weight, x.shape
        self.columns = windows(x)
        out = np.maximum(self.columns @ weight.reshape(len(weight), -1).T + bias, 0)
        self.positive = out > 0
        return out.reshape(x.shape[:3] + (-1,))

    def backward(self, gradient):
        gradient = gradient.reshape(self.positive.shape) * self.positive
        by_weight = (gradient.T @ self.columns).reshape(self.weight.shape)
        images, height, width, channels = self.shape
        columns = (gradient @ self.weight.reshape(len(self.weight), -1)).reshape(images, height, width, 9, channels)
        padded = np.zeros((images, height + 2, width + 2, channels))
        for row in range(3):
            for column in range(3):
                padded[:, row:row + height, column:column + width] += columns[:, :, :, 3 * row + column]
        return padded[:, 1:-1, 1:-1], by_weight, gradient.sum(axis=0)


class Maximum:
    """The largest of each 2x2 block."""

    def forward(self, x):
        images, height, width, channels = self.shape = x.shape
        blocks = x.reshape(images, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 5, 2, 4)
        blocks = blocks.reshape(images, height // 2, width // 2, channels, 4)
        self.choice = blocks.argmax(axis=4)
        return blocks.max(axis=4)

    def backward(self, gradient):
        images, height, width, channels = self.shape
        blocks = np.zeros(gradient.shape + (4,))
        np.put_along_axis(blocks, self.choice[..., np.newaxis], gradient[..., np.newaxis], axis=4)
        blocks = blocks.reshape(images, height // 2, width // 2, channels, 2, 2).transpose(0, 1, 4, 2, 5, 3)
        return blocks.reshape(self.shape)


def gradients(weights, images, labels):
    """Gradient of the mean cross entropy by each array of weights."""
    first, second, third = Convolution(), Convolution(), Convolution()
    pool, last_pool = Maximum(), Maximum()
    x = first.forward(images[..., np.newaxis], weights["conv1.weight"], weights["conv1.bias"])
    x = pool.forward(second.forward(x, weights["conv2.weight"], weights["conv2.bias"]))
    x = last_pool.forward(third.forward(x, weights["conv3.weight"], weights["conv3.bias"]))
    flat = x.reshape(len(x), -1)
    scores = flat @ weights["fc.weight"].T + weights["fc.bias"]
    error = np.exp(scores - scores.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)

    found = {"fc.weight": error.T @ flat, "fc.bias": error.sum(axis=0)}
    back = last_pool.backward((error @ weights["fc.weight"]).reshape(x.shape))
    back, found["conv3.weight"], found["conv3.bias"] = third.backward(back)
    back, found["conv2.weight"], found["conv2.bias"] = second.backward(pool.backward(back))
    _, found["conv1.weight"], found["conv1.bias"] = first.backward(back)
    return found


def moved(images, random):
    """Each image moved by up to one pixel in both directions, with other ink and a little noise."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    out = np.empty_like(images)
    for i, (row, column) in enumerate(random.choice(3, (len(images), 2), p=(0.2, 0.6, 0.2))):
        out[i] = padded[i, row:row + 8, column:column + 8]
    out *= random.uniform(0.85, 1.1, (len(images), 1, 1))
    return np.clip(out + random.normal(0, 0.04, out.shape), 0, 1)


def train(images, labels, epochs, random):
    """Adam with decoupled weight decay; the step falls to nothing along a cosine."""
    weights = {}
    for layer, shape in network.LAYERS.items():
        weights[f"{layer}.weight"] = random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        weights[f"{layer}.bias"] = np.zeros(shape[0])
    mean = {name: np.zeros_like(w) for name, w in weights.items()}
    square = {name: np.zeros_like(w) for name, w in weights.items()}
    batches = len(images) // BATCH
    for step in range(epochs * batches):
        if step % batches == 0:
            order = random.permutation(len(images))
            if step and step // batches % 10 == 0:
                print(f"{step // batches} of {epochs} epochs", flush=True)
        chosen = order[step % batches * BATCH:][:BATCH]
        found = gradients(weights, moved(images[chosen], random), labels[chosen])
        rate = 2e-3 * (1 + np.cos(np.pi * step / (epochs * batches))) / 2
        for name, gradient in found.items():
            mean[name] = 0.9 * mean[name] + 0.1 * gradient
            square[name] = 0.999 * square[name] + 0.001 * gradient**2
            corrected = mean[name] / (1 - 0.9 ** (step + 1))
            scale = np.sqrt(square[name] / (1 - 0.999 ** (step + 1))) + 1e-8
            decay = 0.02 if name.endswith("weight") else 0
            weights[name] -= rate * (corrected / scale + decay * weights[name])
    return {name: w.astype(np.float32) for name, w in weights.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder (default: this script's)")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()

    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = digits.images / 16, digits.target
    random = np.random.default_rng(options.seed)
    order = random.permutation(len(images))
    held_out, rest = np.sort(order[:HELD_OUT]), np.sort(order[HELD_OUT:])
    weights = train(images[rest], labels[rest], options.epochs, random)

    folder = options.output / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in weights.items():
        np.save(folder / f"{name}.npy", array)
    weights = network.load(folder)
    for name, chosen in (("training", rest), ("held-out", held_out)):
        right = (network.probabilities(weights, images[chosen]).argmax(axis=1) == labels[chosen]).sum()
        print(f"{name}: {right} of {len(chosen)} right ({right / len(chosen):.2%})")
    folder = options.output / "held-out"
    folder.mkdir(exist_ok=True)
    np.save(folder / "images.npy", images[held_out].astype(np.float32))
    np.save(folder / "labels.npy", labels[held_out].astype(np.int32))
    np.save(folder / "probabilities.npy", network.probabilities(weights, images[held_out].astype(np.float32)))


if __name__ == "__main__":
    main()
