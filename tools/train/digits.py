#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Trains the network of the MNIST recording from silicon on scikit-learn's digits, scaled up to 28x28.

The network is that of the recording: three 3x3 convolutions without activation functions, two 2x2 maxima, one fully
connected layer, softmax. Needs NumPy and scikit-learn. Writes NAME.npy for each weight; the held-out images as
scikit-learn has them (held-out.npy), their labels and what a network in double precision makes of them (predictions.npy); and ten
images ready for use (DIGIT.npy) with the expected probabilities.

    python3 tools/train/digits.py trained/
    gpureplay import DIR --weights trained/ --output digits-g71

What it made is kept beside it, in digits/.
"""

import argparse
import json
import pathlib

import numpy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def scaled_up(images):
    """8x8 images of 0..16 as 28x28 images of 0..1, linearly interpolated."""
    at = numpy.clip((numpy.arange(28) + 0.5) * 8 / 28 - 0.5, 0, 7)
    low = numpy.minimum(at.astype(int), 6)
    part = at - low
    rows = images[:, low] * (1 - part)[None, :, None] + images[:, low + 1] * part[None, :, None]
    both = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    return (both / 16).astype(numpy.float32)


def shifts(image):
    """The nine shifted views of a padded batch of images."""
    height, width = image.shape[1:3]
    padded = numpy.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return [padded[:, y : y + height, x : x + width] for y in range(3) for x in range(3)]


def convolve(image, weight, bias):
    """Weights in the order output, height, width, input."""
    taps = weight.reshape(weight.shape[0], 9, -1)
    return sum(view @ taps[:, k].T for k, view in enumerate(shifts(image))) + bias


def convolve_back(image, gradient):
    """Gradient of the weights and of the bias."""
    flat = gradient.reshape(-1, gradient.shape[-1])
    taps = [flat.T @ view.reshape(-1, view.shape[-1]) for view in shifts(image)]
    shape = (flat.shape[1], 3, 3, image.shape[-1])
    return numpy.stack(taps, axis=1).reshape(shape), flat.sum(0)


def windows(image):
    count, height, width, channels = image.shape
    return image.reshape(count, height // 2, 2, width // 2, 2, channels)


def pool_back(image, pooled, gradient):
    mask = windows(image) == pooled[:, :, None, :, None]
    share = gradient / mask.sum(axis=(2, 4))
    return (mask * share[:, :, None, :, None]).reshape(image.shape)


def filters(weights, images):
    """The layers up to the first maximum."""
    x = convolve(images[..., None], weights["conv1.weight"], weights["conv1.bias"])
    x = convolve(x, weights["conv2.weight"], weights["conv2.bias"])
    return windows(x).max(axis=(2, 4))


def classify(weights, features):
    """The layers from the first maximum on."""
    x = convolve(features, weights["conv3.weight"], weights["conv3.bias"])
    pooled = windows(x).max(axis=(2, 4))
    flat = pooled.reshape(len(features), -1)
    scores = flat @ weights["fc.weight"].T + weights["fc.bias"]
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return x, pooled, flat, powers / powers.sum(axis=1, keepdims=True)


def gradients(weights, features, labels):
    x, pooled, flat, probabilities = classify(weights, features)
    right = (probabilities.argmax(1) == labels).sum()
    error = probabilities
    error[numpy.arange(len(labels)), labels] -= 1
    error /= len(labels)
    g = {"fc.weight": error.T @ flat, "fc.bias": error.sum(0)}
    d = (error @ weights["fc.weight"]).reshape(pooled.shape)
    d = pool_back(x, pooled, d)
    g["conv3.weight"], g["conv3.bias"] = convolve_back(features, d)
    return g, right


def train(images, labels, epochs, generator):
    """The two first convolutions stay a random filter bank; without an activation function they are one linear map."""
    shapes = {"conv1": (32, 3, 3, 1), "conv2": (32, 3, 3, 32), "conv3": (32, 3, 3, 32), "fc": (10, 1568)}
    weights = {}
    for name, shape in shapes.items():
        scale = (1 / numpy.prod(shape[1:])) ** 0.5
        weights[name + ".weight"] = generator.normal(0, scale, shape).astype(numpy.float32)
        weights[name + ".bias"] = numpy.zeros(shape[0], numpy.float32)
    batches = numpy.array_split(images, len(images) // 48)
    features = numpy.concatenate([filters(weights, batch) for batch in batches])
    trained = ("conv3.weight", "conv3.bias", "fc.weight", "fc.bias")
    first = {name: numpy.zeros_like(weights[name]) for name in trained}
    second = {name: numpy.zeros_like(weights[name]) for name in trained}
    step = 0
    for epoch in range(epochs):
        order = generator.permutation(len(labels))
        rate = 2e-3 * 0.5 * (1 + numpy.cos(numpy.pi * epoch / epochs))
        right = 0
        for chosen in numpy.array_split(order, len(order) // 48):
            found, good = gradients(weights, features[chosen], labels[chosen])
            right += good
            step += 1
            for name, gradient in found.items():
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                m, v = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
                change = rate * (m / (numpy.sqrt(v) + 1e-8) + 1e-3 * weights[name])
                weights[name] = (weights[name] - change).astype(numpy.float32)
        print(f"epoch {epoch + 1}: {right / len(labels):.2%} of the training images", flush=True)
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="where to write")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    digits = load_digits()
    images = scaled_up(digits.images)
    indices = numpy.arange(len(images))
    seen, unseen = train_test_split(indices, test_size=360, random_state=arguments.seed, stratify=digits.target)
    labels = digits.target[unseen]
    generator = numpy.random.default_rng(arguments.seed)
    weights = train(images[seen], digits.target[seen], arguments.epochs, generator)
    exact = {name: value.astype(numpy.float64) for name, value in weights.items()}
    *_, probabilities = classify(exact, filters(exact, images[unseen].astype(numpy.float64)))
    predictions = probabilities.argmax(1)
    right = int((predictions == labels).sum())
    arguments.directory.mkdir(parents=True, exist_ok=True)
    save = lambda name, value: numpy.save(arguments.directory / f"{name}.npy", value)
    for name, value in weights.items():
        save(name, value)
    save("held-out", digits.images[unseen].astype(numpy.uint8))
    save("labels", labels.astype(numpy.uint8))
    save("predictions", predictions.astype(numpy.uint8))
    for digit in range(10):
        first = numpy.flatnonzero(labels == digit)[0]
        save(f"{digit}", images[unseen[first]])
        save(f"{digit}-probabilities", probabilities[first].astype(numpy.float32))
    report = {"training": len(seen), "held_out": len(unseen), "right": right}
    (arguments.directory / "report.json").write_text(json.dumps(report) + "\n")
    print(f"{right} of {len(unseen)} held-out images: {right / len(unseen):.2%}")


if __name__ == "__main__":
    main()
