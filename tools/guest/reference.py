#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Inputs of the example programs and what they must compute, by NumPy in double precision.

reference.py APP DIR writes DIR/inputs/*.npy and DIR/expected/*.npy, and DIR/layers/*.npy for apps that are cut into layers. Files come in two sets: NAME.npy is what a
recording is made with, NAME2.npy is a second input for its replay. Inputs are deterministic. Apps may have samples
besides, to which the recorded stack itself gives the answers.
"""
import pathlib
import sys

import numpy as np

SEED = 20220228
TOOLS = pathlib.Path(__file__).resolve().parent.parent
DIGITS = TOOLS / "digits"


def random(generator, *shape):
    """Elements of both signs that all differ, so that each can be found in GPU memory."""
    while True:
        array = generator.uniform(-2, 2, shape).astype(np.float32)
        if len(np.unique(array)) == array.size:
            return array


def saxpy(generator):
    def compute(x, y):
        return {"out": 2.5 * x + y}

    return [{"x": random(generator, 1000), "y": random(generator, 1000)} for _ in range(2)], {}, compute


def acl_gemm(generator):
    def compute(a, b):
        return {"out": a @ b}

    weights = {"b": random(generator, 40, 56)}
    return [{"a": random(generator, 24, 40)} for _ in range(2)], weights, compute


def acl_conv(generator):
    def compute(x, w, bias):
        height, width, _ = x.shape
        padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
        out = np.zeros((height, width, len(w))) + bias
        for j in range(w.shape[1]):
            for i in range(w.shape[2]):
                out += padded[j : j + height, i : i + width] @ w[:, j, i].T
        return {"out": out}

    weights = {"w": random(generator, 7, 3, 3, 5), "bias": random(generator, 7)}
    return [{"x": random(generator, 14, 18, 5)} for _ in range(2)], weights, compute


def digits(generator):
    sys.path.insert(0, str(DIGITS))
    import network

    def compute(input, **weights):
        return {"probabilities": network.probabilities(weights, input[np.newaxis])[0]}

    weights = {path.stem: np.load(path) for path in sorted((DIGITS / "weights").glob("*.npy"))}
    return [{"input": random(generator, 8, 8)} for _ in range(2)], weights, compute


def perceptron(generator):
    sys.path.insert(0, str(TOOLS / "training"))
    import perceptron as network

    def compute(input, **weights):
        return {"probabilities": network.probabilities(weights, input[np.newaxis])[0]}

    weights = {path.stem: np.load(path) for path in sorted((TOOLS / "training" / "weights").glob("*.npy"))}
    return [{"input": random(generator, 8, 8)} for _ in range(2)], weights, compute


def layers(app, inputs, weights):
    """What each layer of an app computes from its first inputs, by name; the compiler finds layers by these values."""
    if app != "digits":
        return {}
    import network

    found = network.layers(weights, inputs["input"][np.newaxis])
    return {name: array[0] for name, array in found.items() if name != "probabilities"}


def samples(app, compute, weights):
    """Further inputs by name: of each digit the first held-out image that the network names rightly."""
    if app not in ("digits", "perceptron"):
        return {}
    images, labels = (np.load(DIGITS / "held-out" / f"{name}.npy") for name in ("images", "labels"))
    right = np.array([compute(image, **weights)["probabilities"].argmax() for image in images]) == labels
    return {str(digit): images[np.flatnonzero((labels == digit) & right)[0]] for digit in range(10)}


def train_digits(top):
    sys.path.insert(0, str(TOOLS / "training"))
    import step

    training(top, step, step.network.LAYERS, step.gradients)


def train_perceptron(top):
    sys.path.insert(0, str(TOOLS / "training"))
    import perceptron
    import step

    training(top, step, perceptron.LAYERS, perceptron.gradients)


def training(top, step, layers, gradients):
    """Two steps of training for each set; what is expected is the loss of the first."""
    (top / "initial").mkdir(parents=True, exist_ok=True)
    for name, array in step.initial(5, layers=layers).items():
        np.save(top / "initial" / f"{name}.npy", array)
    generator = np.random.default_rng(SEED)
    for suffix, rate in (("", 0.02), ("2", 0.03)):
        images = generator.uniform(0, 1, (2, step.BATCH, 8, 8)).astype(np.float32)
        labels = generator.integers(0, 10, (2, step.BATCH)).astype(np.int32)
        rates = np.full((2, 1), rate, np.float32)
        write_steps(top, suffix, {"images": images, "labels": labels, "rate": rates})
        loss, _ = gradients(step.initial(5, np.float64, layers), images[0].astype(np.float64), labels[0])
        np.save(top / "expected" / f"loss{suffix}.npy", np.array([loss], np.float32))


def generate(top):
    """Two characters for each set; in the first one the first token is forced, the others are the network's own."""
    sys.path.insert(0, str(TOOLS / "generation"))
    import network

    (top / "weights").mkdir(parents=True, exist_ok=True)
    weights = {path.stem: np.load(path) for path in sorted((TOOLS / "generation" / "weights").glob("*.npy"))}
    for name, array in weights.items():
        np.save(top / "weights" / f"{name}.npy", array)
    for suffix, first in (("", network.ALPHABET.index("t")), ("2", -1)):
        forced = np.array([[first], [-1]], np.int32)
        write_steps(top, suffix, {"forced": forced})
        tokens, _ = network.generate(weights, 1, forced[0])
        letters = np.frombuffer(network.ALPHABET.encode(), np.uint8)
        np.save(top / "expected" / f"character{suffix}.npy", letters[tokens])


def decode(top):
    """Two characters for each set; the first set begins in the middle of a text, with a cache that holds nothing of it."""
    sys.path.insert(0, str(TOOLS / "decoding"))
    import network

    (top / "weights").mkdir(parents=True, exist_ok=True)
    weights = {path.stem: np.load(path) for path in sorted((TOOLS / "decoding" / "weights").glob("*.npy"))}
    for name, array in weights.items():
        np.save(top / "weights" / f"{name}.npy", array)
    letters = np.frombuffer(network.ALPHABET.encode(), np.uint8)
    for suffix, first in (("", network.ALPHABET.index("t")), ("2", -1)):
        write_steps(top, suffix, network.inputs(2, [first]))
        tokens, _ = network.generate(weights, 1, [first])
        np.save(top / "expected" / f"character{suffix}.npy", letters[tokens])


def write_steps(top, suffix, arrays):
    """What the program reads, and the first step alone."""
    for folder in ("steps", "inputs", "expected"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(top / "steps" / f"{name}{suffix}.npy", array)
        np.save(top / "inputs" / f"{name}{suffix}.npy", array[0])


def main():
    sys.path.insert(0, str(TOOLS / "networks"))
    from networks import NETWORKS

    if len(sys.argv) == 3 and sys.argv[1] in NETWORKS:
        import layers as network

        return network.write(sys.argv[1], sys.argv[2])
    by_steps = {
        "train-digits": train_digits,
        "train-clblast": train_digits,
        "train-perceptron": train_perceptron,
        "generate": generate,
        "decode": decode,
    }
    if len(sys.argv) == 3 and sys.argv[1] in by_steps:
        return by_steps[sys.argv[1]](pathlib.Path(sys.argv[2]))
    apps = {"saxpy": saxpy, "acl-gemm": acl_gemm, "acl-conv": acl_conv, "digits": digits, "perceptron": perceptron}
    if len(sys.argv) != 3 or sys.argv[1] not in apps:
        sys.exit(f"usage: reference.py {'|'.join([*apps, *by_steps, *NETWORKS])} DIR")
    top = pathlib.Path(sys.argv[2])
    for folder in ("inputs", "expected"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    cases, weights, compute = apps[sys.argv[1]](np.random.default_rng(SEED))
    for name, array in weights.items():
        np.save(top / "inputs" / f"{name}.npy", array)
    for suffix, inputs in zip(("", "2"), cases):
        for name, array in inputs.items():
            np.save(top / "inputs" / f"{name}{suffix}.npy", array)
        precise = {name: array.astype(np.float64) for name, array in (weights | inputs).items()}
        if not suffix:
            for name, array in layers(sys.argv[1], inputs, weights).items():
                (top / "layers").mkdir(exist_ok=True)
                np.save(top / "layers" / f"{name}.npy", array.astype(np.float32))
        for name, array in compute(**precise).items():
            np.save(top / "expected" / f"{name}{suffix}.npy", array.astype(np.float32))
    for name, array in samples(sys.argv[1], compute, weights).items():
        np.save(top / "inputs" / f"{name}.npy", array)


main()
