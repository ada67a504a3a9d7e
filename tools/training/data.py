#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes what training the digits network takes, and what NumPy makes of it.

    python3 -m venv venv && venv/bin/pip install -r ../digits/requirements.txt
    venv/bin/python data.py DIR [--network convolutions] [--epochs 8] [--seed 5] [--rate 0.02]
    python3 data.py DIR --sample 24                       needs NumPy alone: so many steps on the held-out images, to compare, not to learn

DIR/inputs/images.npy   float32 steps x 32 x 8 x 8    the batches, in the order of the steps
DIR/inputs/labels.npy   int32 steps x 32
DIR/inputs/rate.npy     float32 steps x 1             the learning rate; it falls to a tenth along a cosine
DIR/initial.safetensors and DIR/initial/NAME.npy      random weights, and velocities of zero
DIR/expected/losses.npy and losses64.npy              the loss of each step by NumPy, in float32 and in float64
DIR/expected/NAME.npy                                 the weights that NumPy has learnt, in float32

    python3 data.py DIR --right [--network convolutions]

says how many of the 360 held-out images NumPy, in float64, names rightly with the weights that it has learnt, with those of a live app (DIR/live/NAME.npy)
and with those of a replay (DIR/learnt.safetensors, of --state-out).

The images are those of tools/digits: a fifth, drawn by the same seed, takes no part in training.
"""

import argparse
import json
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  (after the variables that it reads)
import perceptron  # noqa: E402
import step  # noqa: E402
import train  # noqa: E402  (beside the network, where step looks for it)

NETWORKS = {
    "convolutions": (step.network.LAYERS, step.gradients, step.network.probabilities),
    "perceptron": (perceptron.LAYERS, perceptron.gradients, perceptron.probabilities),
}
HELD_OUT = 360


def safetensors(arrays):
    """The bytes of a .safetensors file with float32 arrays."""
    entries, offset = {}, 0
    for name, array in arrays.items():
        entries[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": (offset, offset + array.nbytes)}
        offset += array.nbytes
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    data = b"".join(array.astype("<f4").tobytes() for array in arrays.values())
    return len(header).to_bytes(8, "little") + header + data


def held_out():
    """The images and labels that take no part in training."""
    folder = Path(__file__).resolve().parent.parent / "digits" / "held-out"
    return np.load(folder / "images.npy").astype(np.float32), np.load(folder / "labels.npy").astype(np.int32)


def training_images():
    """All other images, and their labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = (digits.images / 16).astype(np.float32), digits.target.astype(np.int32)
    rest = np.sort(np.random.default_rng(5).permutation(len(images))[HELD_OUT:])
    return images[rest], labels[rest]


def batches(images, labels, epochs, seed, rate):
    """Images, labels and learning rates by step."""
    random = np.random.default_rng(seed)
    per_epoch = len(images) // step.BATCH
    chosen = [random.permutation(np.arange(len(images)))[: per_epoch * step.BATCH] for _ in range(epochs)]
    chosen = np.concatenate(chosen).reshape(-1, step.BATCH)
    done = np.arange(len(chosen)) / len(chosen)
    rates = (rate * (0.55 + 0.45 * np.cos(np.pi * done))).astype(np.float32)
    # Moved, with other ink, and with noise: that teaches more, and leaves no two neighbourhoods of equal pixels. Where all are paper
    # the largest of four would be one of equals, which each arithmetic takes from its own rounding.
    batch = np.stack([train.moved(images[indices].astype(np.float64), random) for indices in chosen])
    batch += random.normal(0, 0.04, batch.shape)
    return batch.astype(np.float32), labels[chosen], rates[:, np.newaxis]


def right(network, weights):
    """How many held-out images weights name rightly."""
    layers, _, probabilities = NETWORKS[network]
    names = [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]
    images, labels = held_out()
    answers = probabilities({name: weights[name].astype(np.float64) for name in names}, images.astype(np.float64))
    return int((answers.argmax(axis=1) == labels).sum())


def folder_of(path):
    """The arrays of a folder, by name."""
    return {file.stem: np.load(file) for file in path.glob("*.npy")}


def file_of(path):
    """The float32 arrays of a .safetensors file, by name."""
    content, found = path.read_bytes(), {}
    length = int.from_bytes(content[:8], "little")
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", name
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(content[start:end], "<f4").reshape(entry["shape"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--network", choices=NETWORKS, default="convolutions")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--sample", type=int, default=0, metavar="STEPS")
    parser.add_argument("--right", action="store_true")
    options = parser.parse_args()
    folder = options.folder
    if not options.right:
        return write(folder, options)
    learnt = folder_of(folder / "expected"), folder_of(folder / "live"), file_of(folder / "learnt.safetensors")
    print(*(right(options.network, weights) for weights in learnt))


def write(folder, options):
    layers, gradients, _ = NETWORKS[options.network]
    given = held_out() if options.sample else training_images()
    images, labels, rates = batches(*given, options.epochs, options.seed, options.rate)
    count = options.sample or len(images)
    images, labels, rates = images[:count], labels[:count], rates[:count]
    for name in ("inputs", "initial", "expected"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, array in (("images", images), ("labels", labels), ("rate", rates)):
        np.save(folder / "inputs" / f"{name}.npy", array)
    state = step.initial(options.seed, layers=layers)
    names = [name for name in state if not name.endswith(".velocity")]
    for name, array in state.items():
        np.save(folder / "initial" / f"{name}.npy", array)
    (folder / "initial.safetensors").write_bytes(safetensors(state))
    precise = {name: array.astype(np.float64) for name, array in state.items()}
    losses, precise_losses = [], []
    for batch, truth, rate in zip(images, labels, rates[:, 0]):
        losses.append(step.step(state, batch, truth, rate, gradients))
        precise_losses.append(step.step(precise, batch, truth, rate, gradients))
    np.save(folder / "expected" / "losses.npy", np.array(losses, np.float32))
    np.save(folder / "expected" / "losses64.npy", np.array(precise_losses))
    for name in names:
        np.save(folder / "expected" / f"{name}.npy", state[name].astype(np.float32))
    for kind, weights in (("float32", state), ("float64", precise)):
        count = right(options.network, weights)
        print(f"{kind}: {len(images)} steps, {count} of {HELD_OUT} held-out images right")
    drift = np.abs(np.array(losses) - precise_losses) / np.abs(precise_losses)
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f}; float32 and float64 differ by {drift.max():.1e} of it at most")


if __name__ == "__main__":
    main()
